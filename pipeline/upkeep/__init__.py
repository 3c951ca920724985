"""Decisions of upkeep: files of mirrors (`decide`), old changes (`changes`), and earlier values
that settings hide now (`clearing`)."""
