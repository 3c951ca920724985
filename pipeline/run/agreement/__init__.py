"""The agreement of a ledger with its lake: claims on folders, Delta logs, and changelogs' files."""
