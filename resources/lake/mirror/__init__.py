"""Mirrors: how a write, a change of columns and upkeep are committed."""
