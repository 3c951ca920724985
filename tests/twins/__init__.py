"""The ports of the lake in memory, for tests and for trying a step without servers.

Twins answer the same calls with the same values and errors as the adapters; one contract suite per
port runs on both. The ledger has none: tests use it on Postgres (`tests/fix_ledger.py`). Does not
belong here: patches, recordings, anything that answers differently.
"""
