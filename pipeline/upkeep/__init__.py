"""Decides upkeep of the lake: files of mirrors (`decide`), deletion of old changes
(`changes`), and of earlier values that settings hide now (`clearing`)."""
