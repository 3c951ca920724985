"""What a batch leaves in the lake: spooled rows, segments, and the changelogs that segments become
files of.
"""
