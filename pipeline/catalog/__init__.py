"""Mirrors under names in a catalog: what is to be said there of each, and what that takes. Pure."""
