"""Spark: its jars, and its start, either as a Java process of this machine or as
sessions at a Spark Connect server.
"""
