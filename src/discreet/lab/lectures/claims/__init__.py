"""One file for each claim; its name begins with the note and the place in it, so that files are in their order."""
