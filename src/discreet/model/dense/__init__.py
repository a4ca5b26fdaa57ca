"""Dense models: a weight for every row of a small domain."""
