"""The ports of ledger and lake in memory, for tests and for trying a step without servers.

Twins answer the same calls with the same values and errors as the adapters; one contract suite per
port runs on both. The ledger's obeys the rules of `resources/postgres/migrations`, by the same
names. Does not belong here: patches, recordings, anything that answers differently.
"""
