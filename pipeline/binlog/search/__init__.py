"""Searches for places in a log, without capturing anything."""
