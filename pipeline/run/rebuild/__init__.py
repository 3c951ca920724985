"""Rebuild: writes a table as it was after a transaction of the past to a path of its
own."""
