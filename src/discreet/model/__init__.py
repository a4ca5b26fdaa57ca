"""Distributions fitted to what is known: they answer every question, without a guarantee of their own."""
