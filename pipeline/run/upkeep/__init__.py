"""Carries out upkeep: compacts mirrors' files, and deletes files and rows that nothing
needs."""
