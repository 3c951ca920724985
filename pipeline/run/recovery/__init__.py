"""A ledger and a lake that no longer tell the same, brought together again on a person's word."""
