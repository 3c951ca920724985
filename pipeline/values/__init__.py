"""Values that the rest of `pipeline` is built on: positions, GTID sets, names of
tables, policies, errors, segments; and rules that need only these. They import no
structure of a table and no batch.
"""
