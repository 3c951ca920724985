"""Capturing: the binlog is read from a start to an end, and the changed rows are
written to Parquet files by table (segments)."""
