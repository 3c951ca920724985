"""Makes a ledger and a lake that disagree agree again, when a person orders it."""
