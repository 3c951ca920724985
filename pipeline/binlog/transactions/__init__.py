"""Whole transactions: the buffer that lets no other out, and what it leaves to Python."""
