"""The domain: values, rules and decoding, from event bytes to merge plans.

Does not belong here: drivers, Spark, Dagster, environment variables, clocks, files.
numpy, numba and pyarrow are welcome: they compute, they do not connect.
"""
