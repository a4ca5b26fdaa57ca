"""Schema files: read, written, drafted, and read from the formats of other tools."""
