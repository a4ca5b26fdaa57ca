"""Pages for people: HTML documents, SVG charts and plots, and the style sheet that all of them share."""
