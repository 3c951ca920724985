"""What tells that a log or its stream is not whole, and what does not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest

from lockstep.pipeline.model.batch import BatchState
from lockstep.pipeline.ports.ledger import Consumers, Ledger
from lockstep.pipeline.ports.mirrors import MirrorUpkeep
from lockstep.pipeline.ports.source import BinlogDump, Received, ServerFacts, SourceServer
from lockstep.pipeline.run.capture import capture
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.progress import Progress, SilentProgress
from lockstep.pipeline.run.run import RunRecord, RunSession
from lockstep.pipeline.values.errors import (
    ConfigurationError,
    StreamEndedEarly,
    TransactionsMissing,
)
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.retries import STEP
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.pipeline.made import received
from tests.positions.follower import SOURCE, Follower
from tests.positions.one_table import NOBODY, Shop, open_shop
from tests.positions.servers import Pair, executed, running


@pytest.fixture
def shop(mysql: MySqlStand, database: str) -> Shop:
    return open_shop(mysql, database)


@dataclass
class Short:
    """A dump that ends, without an error, before its last events."""

    dump: BinlogDump
    lacking: int

    @property
    def begins(self) -> Coordinates | None:
        return self.dump.begins

    def __iter__(self) -> Iterator[Received]:
        data = b""
        for got in self.dump:
            data += got.data[got.begin : got.end].tobytes()
            packets = _packets(data)
            if packets[-1][4:5] == b"\xfe" and len(packets[-1]) == 9:
                break
        kept, end = packets[: -1 - self.lacking], packets[-1]
        number = bytes([(len(kept) + 1) & 0xFF])
        yield received(b"".join([*kept, end[:3] + number + end[4:]]))

    def close(self) -> None:
        self.dump.close()


def _packets(data: bytes) -> list[bytes]:
    """The whole packets at the beginning of a dump's bytes."""
    found, at = [], 0
    while at + 4 <= len(data):
        end = at + 4 + int.from_bytes(data[at : at + 3], "little")
        if end > len(data):
            break
        found.append(data[at:end])
        at = end
    return found


@dataclass
class ShortServer:
    """A server whose dumps from `at` lack their last events, as many times as `times`."""

    real: SourceServer
    at: Coordinates
    lacking: int
    times: int

    def dump(self, start: Coordinates) -> BinlogDump:
        dump = self.real.dump(start)
        if start != self.at or not self.times:
            return dump
        self.times -= 1
        return Short(dump, self.lacking)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


@dataclass
class Adapters:
    """What a session asks for: the follower's ports."""

    follower: Follower

    def ledger(self) -> Ledger:
        return self.follower.ledger

    def consumers(self) -> Consumers:
        raise AssertionError("no step asks for them")

    def upkeep(self) -> MirrorUpkeep:
        raise AssertionError("no step asks for it")

    def close_ledger(self) -> None:
        raise AssertionError("the ledger is well")

    def ports(self, source: str, progress: Progress) -> RunPorts:
        return self.follower.ports()


def session(follower: Follower) -> RunSession:
    return RunSession(
        adapters=Adapters(follower),
        source=SOURCE,
        holder="test",
        run_id="run",
        progress=SilentProgress(),
        pause=follower.pauses.append,
        on_lease=lambda lease, before: None,
        record=RunRecord(SOURCE),
    )


def shortened(shop: Shop, *, lacking: int, times: int) -> None:
    """The next dumps lack their last events."""
    cursor = shop.follower.ledger.cursors(SOURCE).captured
    assert cursor is not None
    real = shop.follower.server
    short = ShortServer(real, cursor.position.at, lacking, times)
    shop.follower.server = cast("SourceServer", short)


@pytest.mark.parametrize("lacking", [1, 8, pytest.param(3, marks=pytest.mark.soak)])
def test_a_stream_that_ends_early_three_times_ends_the_run(shop: Shop, lacking: int) -> None:
    """Inside a transaction or between two, never taken for the end: tried three times, then
    exit code 3, nothing captured, and the next run reads it all."""
    shop.put(1, 2, 3)
    shortened(shop, lacking=lacking, times=3)
    before = shop.follower.ledger.cursors(SOURCE).captured
    run = session(shop.follower)
    with pytest.raises(StreamEndedEarly) as caught:
        run.run(capture)
    run.close()
    assert caught.value.recovery.exit_code == 3
    assert run.record.error is caught.value
    assert tuple(shop.follower.pauses) == STEP.pauses
    assert shop.follower.ledger.cursors(SOURCE).captured == before
    assert shop.follower.lake.files == {}
    assert (shop.told().kind, shop.told().rule) == ("failure", "StreamEndedEarly")
    shop.follower.run()
    states = [batch.state for batch in shop.follower.ledger.batches(SOURCE)]
    assert states == [BatchState.ACKNOWLEDGED, *[BatchState.ABANDONED] * 3, BatchState.ACKNOWLEDGED]
    assert shop.keys() == [1, 2, 3]


def test_a_stream_that_ends_early_once_is_read_again(shop: Shop) -> None:
    """The second try reads it whole."""
    shop.put(1, 2)
    shortened(shop, lacking=2, times=1)
    run = session(shop.follower)
    assert run.run(capture).transactions == 2
    assert len(shop.follower.pauses) == 1
    run.close()


class Forgetful(Adapters):
    """A password that can be read once only."""

    asked = False

    def ports(self, source: str, progress: Progress) -> RunPorts:
        if self.asked:
            raise ConfigurationError("the password cannot be read", hint="renew it")
        self.asked = True
        return super().ports(source, progress)


def test_what_a_second_try_cannot_begin_with_is_recorded(shop: Shop) -> None:
    """As of any other failure, Dagster has it from the run's record, and `status` from the
    ledger."""
    shop.put(1, 2)
    shortened(shop, lacking=2, times=1)
    run = session(shop.follower)
    run.adapters = Forgetful(shop.follower)
    with pytest.raises(ConfigurationError) as caught:
        run.run(capture)
    run.close()
    assert run.record.error is caught.value
    assert (shop.told().kind, shop.told().rule) == ("failure", "ConfigurationError")


# -- a log that is not whole -------------------------------------------------------------------


def _without_its_second_file(pair: Pair) -> tuple[Shop, str]:
    """A server that lost a log file in the middle, and the GTIDs of that file."""
    pair.a.execute("create database shop")
    shop = open_shop(pair.a, "shop")
    shop.put(1)
    pair.a.execute("flush binary logs")
    before = executed(pair.a)
    lost_file = str(head(pair.a).file)
    shop.put(2, 3)
    lost = executed(pair.a).difference(before)
    pair.a.execute("flush binary logs")
    shop.put(4)
    running(pair.a).kill()
    _lose(running(pair.a).data, lost_file)
    running(pair.a).start()
    return shop, str(lost)


def _lose(data: Path, file: str) -> None:
    """Somebody deletes a log file and its line of the index."""
    (data / file).unlink()
    index = data / "binlog.index"
    lines = index.read_text().splitlines(keepends=True)
    index.write_text("".join(line for line in lines if file not in line))


def test_gtids_that_the_log_does_not_hold_are_named(pair: Pair) -> None:
    """A file in the middle of the log is gone: the server had executed what was in it, it is
    neither read nor purged, so nothing is recorded and it is named."""
    shop, lost = _without_its_second_file(pair)
    before = shop.follower.ledger.cursors(SOURCE).captured
    with pytest.raises(TransactionsMissing) as caught:
        shop.follower.run()
    assert lost in caught.value.message
    assert caught.value.recovery.exit_code == 5
    assert shop.follower.ledger.cursors(SOURCE).captured == before
    assert shop.keys() == []


def test_gtids_of_an_idle_run_are_proven_too(shop: Shop) -> None:
    """The server says that it executed more than its log shows, although the log's end is
    where the last run ended."""
    facts = shop.follower.server.facts
    claims = ClaimingServer(shop.follower.server, f"{facts().gtid_executed},{NOBODY}:7")
    shop.follower.server = cast("SourceServer", claims)
    with pytest.raises(TransactionsMissing, match=f"{NOBODY}:7"):
        shop.follower.run()


@dataclass
class ClaimingServer:
    """A server that says it executed these."""

    real: SourceServer
    executed: str

    def facts(self) -> ServerFacts:
        return replace(self.real.facts(), gtid_executed=self.executed)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


def test_gtids_added_to_the_purged_set_are_not_missing(pair: Pair) -> None:
    """`SET GLOBAL gtid_purged = '+…'` moves the executed set without any event: what is purged
    is not asked for, neither by an idle run nor by one that reads."""
    pair.a.execute("create database shop")
    shop = open_shop(pair.a, "shop")
    pair.a.execute(f"set global gtid_purged = '+{NOBODY}:1-5'")
    assert shop.follower.run().batch_id is None
    pair.a.execute(f"set global gtid_purged = '+{NOBODY}:6'")
    shop.put(2)
    shop.follower.run()
    assert shop.keys() == [2]


def test_gtids_purged_while_a_run_reads_are_not_missing(shop: Shop) -> None:
    """The purged set is read again at the run's end."""
    shop.put(1)
    late = f"{NOBODY}:9"
    shop.follower.server = cast("SourceServer", LatePurge(shop.follower.server, late))
    shop.follower.run()
    assert shop.keys() == [1]


@dataclass
class LatePurge:
    """A server whose executed set shows GTIDs a moment before its purged set does."""

    real: SourceServer
    gtids: str
    asked: int = 0

    def facts(self) -> ServerFacts:
        self.asked += 1
        facts = self.real.facts()
        executed = f"{facts.gtid_executed},{self.gtids}"
        purged = f"{facts.gtid_purged},{self.gtids}" if self.asked > 1 else facts.gtid_purged
        return replace(facts, gtid_executed=executed, gtid_purged=purged.strip(","))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)
