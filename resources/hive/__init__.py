"""The Hive metastore: mirrors registered there, by its own protocol."""
