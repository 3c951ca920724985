"""Searches for places in a log, by moment or by GTID. They capture no rows."""
