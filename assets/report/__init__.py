"""The report of a run or a span, as one HTML file that needs nothing beside it.

Belongs here: how it looks, and where the file is kept. Does not: what is in it
(`pipeline.runs.inspecting.span_report`), Dagster.
"""
