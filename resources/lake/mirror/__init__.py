"""Mirrors, the Delta tables with the current rows of source tables: how writes, changes
of columns and upkeep are committed."""
