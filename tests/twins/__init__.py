"""A ledger in memory, for tests that make thousands of runs.

It obeys the rules of `resources/postgres/migrations`, by the same names: `tests/ledger` runs one
contract on it and on Postgres.
"""
