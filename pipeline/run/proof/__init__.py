"""Compares MySQL with what Lockstep has: rows with the lake, structures with the
ledger."""
