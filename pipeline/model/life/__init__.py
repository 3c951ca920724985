"""The life of a captured table: what may happen to it, and what comes of it."""
