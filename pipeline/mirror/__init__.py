"""From row images to a write of a table: layout of the lake, folding, and the plan of a merge.

Pure functions over names and Arrow tables. Decoding is `pipeline.binlog`; nothing here writes.
"""
