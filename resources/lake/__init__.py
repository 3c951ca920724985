"""The lake: Parquet segments, changelog and mirror Delta tables, and Spark's process.

Here belongs everything that touches Delta, Spark or the lake's files. What is written
and when is decided in `pipeline`. `room.open_lake` is the way in; importing this package
or any of its modules starts nothing, and pyspark is imported by the first `prepare`.
"""
