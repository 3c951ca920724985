"""Whether a ledger and its lake tell the same."""
