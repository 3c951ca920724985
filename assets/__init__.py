"""The Dagster graph, and nothing else: steps as assets, mirrors, checks, schedules.

Belongs here: what Dagster must be told, and errors and reports in its words. Does not:
decisions about data, connections, what the command line prints.
"""
