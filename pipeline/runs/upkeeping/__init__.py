"""Upkeep: mirrors' files made fewer, and what nothing needs any more deleted."""
