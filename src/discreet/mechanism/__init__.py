"""The one door: one file and one proof page for each mechanism."""
