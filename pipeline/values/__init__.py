"""Values that know neither a structure nor a batch: positions, GTID sets, names of tables,
policies, errors, segments, and the rules that need nothing else.
"""
