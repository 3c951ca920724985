"""A place where Dagster's runs can happen in a test: a real MySQL and ledger, a lake in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg

from lockstep.assets.coverage import Coverage, read_coverage
from lockstep.assets.declaration import LockstepTranslator
from lockstep.assets.definitions import build_definitions
from lockstep.assets.names import SourceNames, job_name
from lockstep.assets.table_list import TableEntry
from lockstep.pipeline.ports.ledger import Consumers, Ledger
from lockstep.pipeline.ports.mirrors import MirrorUpkeep
from lockstep.pipeline.ports.source import SourceServer
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.progress import Progress
from lockstep.pipeline.run.run import RunAdapters, RunRecord
from lockstep.resources.config import Settings
from lockstep.resources.config.load import parse_settings
from tests.fix_ledger import LedgerOfTest
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.mysql.reading import server
from tests.twins.changelog import MemoryChangelog
from tests.twins.claims import MemoryClaims
from tests.twins.lake import MemoryLake
from tests.twins.mirrors import MemoryMirrors
from tests.twins.segments import MemorySegments
from tests.twins.spool import MemorySpool

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


def settings_for(
    folder: Path, *names: str, tables: str = "shop.*", start: str = "earliest", extra: str = ""
) -> Settings:
    """Settings of sources that lead nowhere, each with `extra` lines."""
    text = "".join(
        f'[[sources]]\nname = "{name}"\nhost = "127.0.0.1"\nport = 1\nuser = "lockstep"\n'
        f'password = "env:LOCKSTEP_TEST_NOWHERE"\ntables = ["{tables}"]\nstart = "{start}"\n'
        f"{extra}\n"
        for name in names
    )
    return parse_settings(text, folder / "lockstep.toml")


def now() -> datetime:
    return datetime.now(UTC)


@dataclass
class MemoryAdapters:
    """`pipeline.run.run.RunAdapters` with memory's ledger and lake, which outlive runs."""

    settings: Settings
    server: SourceServer | None = None
    books: LedgerOfTest = field(default_factory=LedgerOfTest)
    lake: MemoryLake = field(default_factory=MemoryLake)
    spool: MemorySpool = field(default_factory=MemorySpool)
    later: timedelta = timedelta()
    """How far its clock is ahead."""

    def ledger(self) -> Ledger:
        return self.books

    def consumers(self) -> Consumers:
        return self.books.consumers

    def close_ledger(self) -> None:
        self.books = LedgerOfTest(self.books.database)

    def ports(self, source: str, progress: Progress) -> RunPorts:
        assert self.server is not None
        plan = self.settings.source(source).plan()
        return RunPorts(
            source=plan,
            server=self.server,
            ledger=self.books,
            segments=MemorySegments(self.lake),
            spool=self.spool,
            changelog=MemoryChangelog(self.lake),
            mirrors=MemoryMirrors(self.lake),
            claims=MemoryClaims(self.lake),
            progress=progress,
            clock=lambda: now() + self.later,
            shaping=plan.shaping(self.settings.privacy_key()),
        )

    def upkeep(self) -> MirrorUpkeep:
        raise NotImplementedError

    @contextmanager
    def open(self) -> Iterator[RunAdapters]:
        yield self


@dataclass
class Stand:
    """Definitions over memory, and a Dagster instance of the test's own."""

    adapters: MemoryAdapters
    instance: dg.DagsterInstance
    records: list[RunRecord] = field(default_factory=list)
    translator: LockstepTranslator | None = None

    def definitions(self, entries: tuple[TableEntry, ...] = ()) -> dg.Definitions:
        names = [source.name for source in self.adapters.settings.sources]
        return build_definitions(
            self.adapters.settings,
            dict.fromkeys(names, entries),
            self.adapters.open,
            coverages=self.coverages(),
            make_record=self._record,
            translator=self.translator,
        )

    def coverages(self) -> dict[str, Coverage]:
        """What a reload of the location finds of the past."""
        settings = self.adapters.settings
        names = [source.name for source in settings.sources]
        found = {name: read_coverage(settings.state_folder, name) for name in names}
        return {name: coverage for name, coverage in found.items() if coverage is not None}

    def run(
        self, job: str = "", tags: Mapping[str, str] | None = None
    ) -> dg.ExecuteInProcessResult:
        """A job of the source, once; "" stands for that of a run."""
        found = self.definitions().resolve_job_def(job_name("shop", job))
        return found.execute_in_process(
            instance=self.instance, run_config=QUIET, raise_on_error=False, tags=tags
        )

    def click(
        self,
        entries: tuple[TableEntry, ...],
        *keys: dg.AssetKey,
        checks: Iterable[dg.AssetCheckKey] | None = None,
    ) -> dg.ExecuteInProcessResult:
        """Materialize a selection of assets with their checks, or with `checks`, as the page
        does."""
        repository = self.definitions(entries).get_repository_def()
        job = repository.get_implicit_global_asset_job_def().get_subset(
            asset_selection=set(keys),
            asset_check_selection=None if checks is None else set(checks),
        )
        return job.execute_in_process(
            instance=self.instance, run_config=QUIET, raise_on_error=False
        )

    def metadata(self, key: dg.AssetKey) -> dict[str, dg.MetadataValue]:
        """What the asset's newest materialization tells."""
        event = self.instance.get_latest_materialization_event(key)
        assert event is not None
        assert event.asset_materialization is not None
        return dict(event.asset_materialization.metadata)

    def _record(self, source: str) -> RunRecord:
        self.records.append(RunRecord(source))
        return self.records[-1]


def checks_of(result: dg.ExecuteInProcessResult) -> dict[str, dg.AssetCheckEvaluation]:
    """A run's evaluations of the source's checks, by their names."""
    return {
        evaluation.check_name: evaluation
        for evaluation in result.get_asset_check_evaluations()
        if evaluation.asset_key == SourceNames("shop").acknowledged_key
    }


@contextmanager
def stand_for(
    settings: Settings, server: SourceServer | None, home: Path | None = None
) -> Iterator[Stand]:
    """With Dagster's storage in memory too, unless there is a home for it."""
    opened = (
        dg.DagsterInstance.ephemeral()
        if home is None
        else dg.DagsterInstance.from_config(str(home))
    )
    with opened as instance:
        yield Stand(MemoryAdapters(settings, server), instance)


@contextmanager
def source_of(
    mysql: MySqlStand,
    database: str,
    folder: Path,
    *statements: str,
    start: str = "",
    extra: str = "",
    home: Path | None = None,
) -> Iterator[Stand]:
    """One source: a database of a real server, read from where its log ends now, unless `start`
    says otherwise; then come the statements."""
    settings = settings_for(
        folder, "shop", tables=f"{database}.*", start=start or str(head(mysql)), extra=extra
    )
    mysql.execute(*statements, database=database)
    with stand_for(settings, server(mysql), home) as stand:
        yield stand


def entry(database: str, name: str) -> TableEntry:
    return TableEntry(database, name, f"shop/{database}/{name}", f"shop/_changes/{name}")
