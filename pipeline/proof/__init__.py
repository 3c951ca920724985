"""Proves by hashes of rows that a mirror (the Delta table with the current rows) equals
its table.

Here are a row's canonical text, its hash, sums of hashes, and the search if sums
differ. Not here: reading rows from a server or a lake (`resources.mysql.row_hashes`,
`pipeline.run.proof`).
"""
