"""The checks of a source as a whole, on the step that acknowledges.

One op performs them all: a run spends a step on them, not one each. What they are is in `rules`.

Dagster reads the annotation of `context` as an object, so this module has no deferred
annotations.
"""

from __future__ import annotations

from collections.abc import Iterator

import dagster as dg

from assets.checks.rules import CHECKS
from assets.declared import Declaration
from assets.failures import failure
from assets.hints import evaluated
from assets.runs import SESSIONS, session_of
from assets.source_facts import gather
from pipeline.errors import LockstepError
from pipeline.preflight import pause_from_now
from resources.config import Settings


def source_checks(settings: Settings, source: str) -> dg.AssetChecksDefinition:
    """All of `CHECKS`, or those that somebody clicked."""
    names = Declaration.of(settings, source).names
    pause = pause_from_now(settings.source(source).schedule)
    keep = settings.keep()

    def checks(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        try:
            session = session_of(context, source)
            checked = gather(session.workplace(), session.adapters.consumers(), pause, keep)
        except LockstepError as error:
            raise failure(error) from error
        asked = {key.name for key in context.selected_asset_check_keys}
        for check in CHECKS:
            if check.name in asked:
                yield check.result(checked, names.acknowledged)

    return dg.multi_asset_check(
        name=names.op("checks"),
        specs=[
            dg.AssetCheckSpec(check.name, asset=names.acknowledged, description=check.description)
            for check in CHECKS
        ],
        can_subset=True,
        required_resource_keys={SESSIONS},
        description="What a person should know of the source; blocks nothing.",
    )(evaluated(checks))
