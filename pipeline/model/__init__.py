"""Values that the ledger (Lockstep's database in Postgres) and the Delta logs of the
lake keep: batches, loads, the life of a table, commits, claims, gaps.
"""
