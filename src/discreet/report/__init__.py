"""Documents, charts and the one style sheet of every page that Discreet writes."""
