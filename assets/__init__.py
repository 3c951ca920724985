"""The Dagster graph, and nothing else: steps as assets, mirrors, checks, schedules."""
