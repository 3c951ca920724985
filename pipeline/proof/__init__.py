"""The proof that a mirror has the rows of its table, by hashes of rows.

Here are a row's canonical text, its hash, sums of hashes, and what follows if they differ. Not
here: reading them from a server or a lake (`resources.mysql.row_hashes`, `pipeline.run.status`).
"""
