"""The ledger (positions, batches, structure history and runs) on Postgres, embedded or
a server of the user's: everything that speaks to Postgres.

`ledger.open_ledger` is the entry; decisions about batches are made in `pipeline`.
"""
