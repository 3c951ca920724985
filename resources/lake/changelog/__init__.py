"""The files that a batch writes to the lake: row events that wait for their
transaction, segments (Parquet files of row images), and changelogs (Delta tables whose
files are the segments).
"""
