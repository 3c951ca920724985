"""What happens in Dagster by itself: schedules, and sensors that look and report.

All ask the ledger only when they must, and load without it.
"""
