"""Rebuild: make a table as it was after a transaction of the past, at a path of its own."""
