"""The Hive metastore as a catalog of mirrors."""
