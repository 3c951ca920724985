"""What Dagster's pages show: values of the domain as Dagster's metadata and events.

Belongs here: words, figures and tables for people. Does not: when they are logged.
"""
