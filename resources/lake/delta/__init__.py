"""Delta tables in general: their logs, columns, versions, sizes and statements."""
