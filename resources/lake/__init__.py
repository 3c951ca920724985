"""The lake: segments (Parquet files with the changes of one table in one batch),
changelogs (Delta tables with all changes), mirrors (Delta tables with the present
rows), and Spark.

Everything that touches Delta, Spark or the lake's files belongs here. `pipeline`
decides what is written, and when. `lake.Lake` is an open lake. Importing a module of
this package starts nothing; the first `prepare` imports pyspark.
"""
