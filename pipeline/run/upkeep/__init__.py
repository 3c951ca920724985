"""Upkeep: compaction of mirrors' files, and deletion of files and rows that nothing needs."""
