"""Mirrors registered in a catalog, and kept registered."""
