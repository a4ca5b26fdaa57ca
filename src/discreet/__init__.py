"""A private data curator: exponentially many questions, one privacy budget."""
