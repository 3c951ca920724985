"""Spark: its jars, its Java process on this machine, or a server elsewhere that is reached by Spark
Connect.
"""
