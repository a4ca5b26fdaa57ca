"""Textbook algorithms: PMW, MWEM, SmallDB, multiplicative weights, the lecture's k-means."""
