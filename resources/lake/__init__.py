"""The lake: segments (Parquet files with the changes of one table in one batch),
changelogs (Delta tables with all changes), mirrors (Delta tables with the present
rows), and Spark.

Everything that touches Delta, Spark or the lake's files belongs here. `pipeline`
decides what is written, and when. `room.open_lake` opens a lake. Importing a module of
this package starts nothing; the first `prepare` imports pyspark.
"""
