"""Facts about the ledger: its contract on three kinds of it, and the database's rules."""
