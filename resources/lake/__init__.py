"""The lake: Parquet segments, changelog and mirror Delta tables, and Spark's process.

Everything that touches Delta, Spark or the lake's files belongs here. What is written, and when, is
decided in `pipeline`. `room.open_lake` opens a lake. Importing a module of this package starts
nothing; pyspark is imported by the first `prepare`.
"""
