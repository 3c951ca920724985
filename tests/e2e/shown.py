"""What Dagster's pages and consumers of the source `shop` are shown, of the project in this folder.

    python -m tests.e2e.shown dagster|consumers

Belongs here: all of it as text on standard output, whatever it is. Does not: what may be in it
(`test_canary`).
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

import lockstep
from lockstep.pipeline.values.errors import NothingMatches


def main() -> int:
    [kind] = sys.argv[1:]
    {"dagster": dagster, "consumers": consumers}[kind]()
    return 0


def dagster() -> None:
    """Every event and log entry of every run, what is known of assets and checks, and the assets
    as the location declares them now."""
    import dagster as dg  # consumers import none

    from lockstep.assets.definitions import definitions_of
    from lockstep.assets.home import dagster_home

    os.environ["DAGSTER_HOME"] = str(dagster_home(Path(".lockstep")))
    definitions = definitions_of(Path("lockstep.toml").absolute())
    with dg.DagsterInstance.get() as instance:
        for run in instance.get_runs():
            print(dg.serialize_value(run))
            for entry in instance.all_logs(run.run_id):
                print(entry.message, entry.user_message, dg.serialize_value(entry))
        for key in instance.get_asset_keys():
            print(key, instance.get_latest_materialization_event(key))
    for spec in definitions.resolve_all_asset_specs():
        print(spec)
    graph = definitions.resolve_asset_graph()
    for check in graph.asset_check_keys:
        print(graph.get_check_spec(check))
    for schedule in (*(definitions.schedules or ()), *(definitions.sensors or ())):
        print(schedule.name, schedule.description)


def consumers() -> None:
    """Changes that a consumer is given, whole changelogs, and mirrors."""
    lockstep.make_consumer("shop", "reader", start="earliest")
    with lockstep.consume("shop", "reader") as consumer:
        while (delivery := consumer.get()) is not None:
            print(delivery.batches, delivery.start, delivery.end)
            for table in delivery.tables:
                print(table, delivery.generations(table, incomplete=True))
                print(delivery.arrow(table, incomplete=True).to_pylist())
            delivery.ack()
    lockstep.drop_consumer("shop", "reader", reason="it has seen everything")
    mirrors = lockstep.read_at("shop")
    print(mirrors.missing)
    for table, version in mirrors.items():
        print(table, version.arrow().to_pylist())
        with suppress(NothingMatches):  # a mirror that changes did not make
            print(lockstep.read_changelog("shop", table).arrow().to_pylist())


if __name__ == "__main__":
    sys.exit(main())
