"""From row images to what the lake is told: layout, folding, the plan of a merge.

Pure functions over names and Arrow tables. Does not belong here: decoding
(`pipeline.binlog`), anything that writes.
"""
