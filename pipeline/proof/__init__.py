"""Proving that a mirror holds what its table holds, from hashes of rows.

Belongs here: the text that stands for a row on both sides, its hash, sums of hashes, and what
follows from sums and hashes that do not fit. Does not: asking a server or a lake for them
(`resources.mysql.row_hashes`, `runs.inspecting`).
"""
