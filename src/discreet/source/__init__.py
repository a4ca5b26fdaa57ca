"""Where the private rows are."""
