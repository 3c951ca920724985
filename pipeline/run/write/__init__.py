"""One table's write to its mirror: prepared from the ledger, then carried out."""
