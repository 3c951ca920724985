"""Every mirror as a declared asset, clickable alone or as a subset.

A click merges what is captured for the chosen tables, and nothing else; it captures and
acknowledges nothing. One op stands behind all mirrors of a source: that keeps 5,000
tables loading in seconds. It yields no outputs, which would cost a multiple at that
number; what changed is logged as it is in a run.

Dagster reads the annotation of `context` as an object, so this module has no deferred
annotations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import dagster as dg

from assets.catalogue import CatalogueEntry
from assets.hints import evaluated
from assets.names import captured_key, mirrors_name, output_name, table_key
from assets.runs import SESSIONS, merge_and_log, session_of


def mirror_assets(source: str, entries: Sequence[CatalogueEntry]) -> list[dg.AssetsDefinition]:
    """The mirrors of the catalogue's entries; none where it has none."""
    if not entries:
        return []
    tables = {dg.AssetKey(table_key(source, entry.table)): entry.table for entry in entries}

    @dg.multi_asset(
        name=mirrors_name(source),
        outs={output_name(n): _declared(source, entry) for n, entry in enumerate(entries, 1)},
        deps=[dg.AssetKey(captured_key(source))],
        can_subset=True,
        required_resource_keys={SESSIONS},
        description="Merges what is captured for the chosen tables.",
    )
    @evaluated
    def mirrors(context: dg.AssetExecutionContext) -> Iterator[dg.Output[Any]]:
        chosen = frozenset(tables[key] for key in context.selected_asset_keys)
        report = merge_and_log(context, session_of(context, source), only=chosen)
        context.log.info(
            f"{len(report.merged)} of {len(chosen)} chosen tables had captured changes to merge."
        )
        yield from ()

    return [mirrors]


def _declared(source: str, entry: CatalogueEntry) -> dg.AssetOut:
    return dg.AssetOut(
        key=dg.AssetKey(table_key(source, entry.table)),
        dagster_type=dg.Nothing,
        group_name=source,
        is_required=False,
        description=f"{entry.table}{', dropped at the source' if entry.dropped else ''}",
        metadata={
            "mirror": entry.mirror,
            "changelog": entry.changelog,
            "dropped": entry.dropped,
        },
    )
