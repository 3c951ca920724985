"""Errors of ours as Dagster's failures: the sentence and the cure."""

from __future__ import annotations

import dagster as dg

from pipeline.errors import LockstepError, Recovery


def failure(error: LockstepError) -> dg.Failure:
    """As Dagster's page shows it. What a person must mend is not retried by anybody."""
    return dg.Failure(
        description=f"{error.message}\nhint: {error.hint}",
        metadata={"hint": dg.MetadataValue.text(error.hint), "kind": type(error).__name__},
        allow_retries=error.recovery is Recovery.RETRY,
    )
