"""What a row may be, and whom we protect."""
