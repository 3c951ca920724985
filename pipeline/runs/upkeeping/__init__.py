"""Upkeep: mirrors' files made fewer, and those deleted that no promised version needs."""
