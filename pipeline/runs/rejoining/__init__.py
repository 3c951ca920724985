"""How tables that stopped come back: through the log, from the source, from their changelog."""
