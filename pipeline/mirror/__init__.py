"""Rules for writing a table's changes to the lake.

A row image is a row before or after a change, as the binary log has it. A changelog is
a Delta table with all row images of a source table, a mirror a Delta table with its
current rows. Folding leaves one image per key. Nothing here decodes the log
(`pipeline.binlog`) or writes files (`resources.lake`).
"""
