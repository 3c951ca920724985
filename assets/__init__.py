"""Everything that Dagster shows and starts: a run's steps and the mirrors as assets,
checks, schedules and sensors; and the HTML pages of runs."""
