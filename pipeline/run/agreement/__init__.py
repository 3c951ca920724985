"""Checks that a ledger and its lake agree: claims on folders, Delta logs, and
changelogs' files."""
