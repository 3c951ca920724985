"""Bytes in arrays, for compiled code: how the loops are compiled, and what they read and keep."""
