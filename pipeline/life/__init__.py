"""The life of a captured table: `rules` says what may happen to it, `step` what comes of it."""
