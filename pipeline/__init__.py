"""The domain: values, rules and decoding, from event bytes to merge plans.

Belongs here: whatever decides (pure functions from facts to named decisions), the
binlog's grammar, table structures and types, the ports the outside world is reached
through, and the steps of a run written against those ports.

Does not belong here: drivers, Spark, Dagster, environment variables, clocks, files.
numpy, numba and pyarrow are welcome: they compute, they do not connect.
"""
