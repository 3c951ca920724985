"""Every mirror as a declared asset with its check, clickable alone or as a subset.

A click merges what is captured for the chosen tables and says how they stand, and nothing
else; it captures and acknowledges nothing. One op stands behind all mirrors of a source: that
keeps 5,000 tables loading in seconds. It yields no outputs for mirrors, which would cost a
multiple at that number; what changed is logged as it is in a run. The checks are the same op's:
behind one of their own, a mirror that yielded nothing would leave its check planned for ever.

Dagster reads the annotation of `context` as an object, so this module has no deferred
annotations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import dagster as dg

from assets.catalogue import CatalogueEntry
from assets.declared import Declaration
from assets.failures import failure
from assets.hints import evaluated
from assets.names import SourceNames, check_output_name, keys_output_name, output_name
from assets.pages.tables import CHECK, KEYS, check_result, declared_metadata, keys_result
from assets.runs import SESSIONS, merge_and_log, session_of
from assets.table_news import standings_of
from pipeline.errors import LockstepError
from pipeline.runs.context import Workplace
from pipeline.runs.inspecting.repeated_keys import count_keys
from pipeline.shown import in_markdown
from pipeline.standing.tables import unseen
from pipeline.table import TableName
from resources.config import Settings
from resources.lake.paths import LakePath

DROPPED_TAG = "lockstep/dropped"

_LOG = "log"

_CHECKS = (
    (check_output_name, CHECK, "Whether the mirror follows its table and has all of it."),
    (
        keys_output_name,
        KEYS,
        "Whether the mirror has each key once; runs count small ones.",
    ),
)


def mirror_assets(
    settings: Settings, declared: Declaration, entries: Sequence[CatalogueEntry]
) -> list[dg.AssetsDefinition]:
    """The mirrors of the catalogue's entries; none where it has none."""
    shown = {number: entry for number, entry in enumerate(entries, 1) if not entry.ended}
    if not shown:
        return []
    names, lake = declared.names, settings.lake_path()
    specs = {number: _spec(declared, entry, lake) for number, entry in shown.items()}
    keys = {number: spec.key for number, spec in specs.items()}
    tables = {keys[number]: entry.table for number, entry in shown.items()}
    nothing = dg.Out(dg.Nothing, is_required=False)
    outputs = (output_name, check_output_name, keys_output_name)

    @dg.op(
        name=names.op("mirrors"),
        ins={_LOG: dg.In(dg.Nothing)},
        out={name(n): nothing for n in shown for name in outputs},
        required_resource_keys={SESSIONS},
        description="Merges what is captured for the chosen tables.",
    )
    @evaluated
    def mirrors(context: dg.AssetExecutionContext) -> Iterator[dg.AssetCheckResult]:
        session = session_of(context, names.source)
        chosen = frozenset(tables[key] for key in context.selected_asset_keys)
        if chosen:
            report = merge_and_log(context, settings, names, session, only=chosen)
            done = len(report.merged)
            context.log.info(
                f"{done} of {len(chosen)} chosen tables had captured changes to merge."
            )
        try:
            yield from _checked(session.workplace(), names, tables, context)
        except LockstepError as error:
            raise failure(error) from error

    return [
        dg.AssetsDefinition(
            keys_by_input_name={_LOG: names.log},
            keys_by_output_name={output_name(number): key for number, key in keys.items()},
            node_def=mirrors,
            specs=list(specs.values()),
            check_specs_by_output_name={
                output(number): dg.AssetCheckSpec(name, asset=key, description=told)
                for number, key in keys.items()
                for output, name, told in _CHECKS
            },
            can_subset=True,
        )
    ]


def _checked(
    work: Workplace,
    names: SourceNames,
    tables: Mapping[dg.AssetKey, TableName],
    context: dg.AssetExecutionContext,
) -> Iterator[dg.AssetCheckResult]:
    """What was asked of the mirrors."""
    asked = context.selected_asset_check_keys
    if not asked:
        return
    states, standings = work.ledger.table_states(work.source.name), standings_of(work)
    for check in asked:
        table = tables[check.asset_key]
        if check.name == CHECK:
            yield check_result(names, standings.get(table) or unseen(table))
        elif table in states:
            yield keys_result(names, count_keys(work, states[table]))


def _spec(declared: Declaration, entry: CatalogueEntry, lake: LakePath) -> dg.AssetSpec:
    gone = ", dropped at the source" if entry.dropped else ""
    spec = declared.spec(
        declared.names.default(entry.table),
        tags={DROPPED_TAG: "true"} if entry.dropped else {},
        deps=[declared.names.log],
        kinds={"delta"},
        description=f"The mirror of {in_markdown(str(entry.table))}{gone}.",
        metadata=declared_metadata(entry, lake),
    )
    return declared.translated(entry.table, spec)
