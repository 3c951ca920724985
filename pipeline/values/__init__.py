"""Values that the rest of `pipeline` is built on: positions, GTID sets, names of
tables, policies, errors, segments; and rules that need only these. No module here
imports another room.
"""
