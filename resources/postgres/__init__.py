"""The ledger on Postgres, embedded or a server of the user's.

Belongs here: everything that speaks to Postgres (`ledger.open_ledger` is the door).
Does not: decisions about batches, which are made in `pipeline`.
"""
