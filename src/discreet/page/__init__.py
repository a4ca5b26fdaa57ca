"""Pages for people: one HTML file each that needs nothing else, no network and no script."""
