"""Reading the log from a start to an end: transactions to the segmenter, the position kept.

Belongs here: the loop over the dump, and what a statement in the log means for the run.
Does not: framing and transactions (`pipeline.binlog`), rows (`segmenting`), the ledger.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pipeline.binlog.buffer import Place, Transaction, TransactionBuffer
from pipeline.binlog.control import moment
from pipeline.binlog.framing import Event, EventType, Framing
from pipeline.binlog.table_map import TableMap, read_table_map, rows_table_id
from pipeline.bounds import RunBounds
from pipeline.errors import DamagedEvent, UnsupportedStatement
from pipeline.position import GtidSet, Position, Witness
from pipeline.runs.begin import Begun
from pipeline.runs.context import SourcePlan, Workplace
from pipeline.runs.segmenting import Segmenter
from pipeline.schema.ddl import Creates, read_statement, why_it_stops
from pipeline.table import TableName

_DUMMY_TABLE_ID = 0xFFFFFF
_STATEMENT_END = 0x1


class Reading:
    """The loop over the dump: where it stands, and what it hands to the segmenter."""

    def __init__(
        self, work: Workplace, segmenter: Segmenter, begun: Begun, bounds: RunBounds
    ) -> None:
        self._work = work
        self._source: SourcePlan = work.source
        self._segmenter = segmenter
        self._bounds = bounds
        self._witness = begun.witness
        self._created = begun.witness.file_created if begun.witness else 0
        self._gtids = _GtidsRead(begun.start.gtid_set)
        self._at = begun.start.at
        self._committed_at: int | None = None
        self._start = begun.start
        self._spark_wanted = True
        self._total = _distance(begun, bounds)
        self.transactions = 0
        self.log_bytes = 0

    @property
    def end(self) -> Position:
        last = self._committed_at
        return Position(
            at=self._at,
            gtid_set=self._gtids.total(),
            server_uuid=self._start.server_uuid,
            committed_at=self._start.committed_at if last is None else moment(last),
        )

    @property
    def witness(self) -> Witness:
        if self._witness is None:
            raise DamagedEvent(f"no event stands before {self._at}", hint="report this log to us")
        return self._witness

    def run(self) -> None:
        if self._bounds.reached(self._at):
            return
        framing, buffer = Framing(self._at), TransactionBuffer()
        dump = self._work.server.dump(self._at)
        try:
            for packet in dump:
                event = framing.frame(packet)
                self._note_creation(event)
                match buffer.put(event):
                    case None:
                        continue
                    case Place(placed):
                        if placed.artificial:
                            continue
                        self._move(placed, "")
                    case Transaction() as transaction:
                        self._take(transaction)
                        self._move(transaction.last, transaction.gtid.text)
                if self._bounds.reached(self._at):
                    break
        finally:
            dump.close()
        self._bounds.require_reached(self._at)

    def _note_creation(self, event: Event) -> None:
        if event.type is EventType.FORMAT_DESCRIPTION and not event.artificial:
            self._created = event.timestamp

    def _move(self, last: Event, gtid: str) -> None:
        self._at = last.after
        self._witness = Witness(last.offset, last.size, last.crc32, gtid, self._created)

    def _take(self, transaction: Transaction) -> None:
        for statement in transaction.statements:
            self._require_followed(statement.text, statement.database, transaction)
        self._take_rows(transaction)
        self._segmenter.transaction_done()
        self._gtids.add(transaction.gtid.text)
        self._committed_at = transaction.committed_at
        self.transactions += 1
        self.log_bytes += transaction.log_bytes
        if self.transactions % 512 == 0:
            self._report()

    def _require_followed(self, text: str, database: str, transaction: Transaction) -> None:
        statement = read_statement(text, database)
        if isinstance(statement, Creates):
            self._segmenter.created(statement.table)
        why = why_it_stops(statement, self._source.patterns)
        if why is not None:
            raise UnsupportedStatement(
                f"the log holds {why}, at {transaction.begin}; this version does not follow it",
                hint="nothing was recorded. Following schema changes is not built yet: begin "
                f"again behind it (a new source name, start = '{transaction.end}'), or exclude "
                "the table",
            )

    def _take_rows(self, transaction: Transaction) -> None:
        maps: dict[int, TableMap] = {}
        for event in transaction.events:
            if event.type is EventType.TABLE_MAP:
                table_map = read_table_map(event)
                maps[table_map.table_id] = table_map
                continue
            table_id = rows_table_id(event)
            if table_id == _DUMMY_TABLE_ID:
                continue
            known = maps.get(table_id)
            if known is None:
                raise DamagedEvent(
                    f"rows refer to a table map that is not there, at {event.file}:{event.offset}",
                    hint="nothing was recorded; look at that place with mysqlbinlog",
                )
            self._take_event(known, transaction, event)
            if event.body[6] & _STATEMENT_END:
                maps.clear()

    def _take_event(self, table_map: TableMap, transaction: Transaction, event: Event) -> None:
        table: TableName = table_map.table
        if not self._source.patterns.matches(table) or not self._segmenter.wanted(table):
            return
        if self._spark_wanted:
            self._spark_wanted = False
            self._work.mirrors.prepare()
        self._segmenter.put(table, transaction, event, table_map.raw)

    def _report(self) -> None:
        self._work.progress.capture(
            transactions=self.transactions,
            rows=self._segmenter.rows,
            log_bytes=self.log_bytes,
            total_bytes=self._total,
        )


@dataclass(slots=True)
class _GtidsRead:
    """The start's set and what was read since; runs of numbers are joined as they come."""

    start: GtidSet
    texts: list[str] = field(default_factory=list)
    source: str = ""
    first: int = 0
    last: int = 0

    def add(self, gtid: str) -> None:
        if not gtid:
            return
        source, _, number = gtid.rpartition(":")
        if source == self.source and int(number) == self.last + 1:
            self.last += 1
            return
        self._keep()
        self.source, self.first, self.last = source, int(number), int(number)

    def total(self) -> GtidSet:
        self._keep()
        self.source = ""
        self.start = self.start.union(GtidSet.parse(",".join(self.texts)))
        self.texts.clear()
        return self.start

    def _keep(self) -> None:
        if self.source:
            self.texts.append(f"{self.source}:{self.first}-{self.last}")


def _distance(begun: Begun, bounds: RunBounds) -> int:
    """Bytes of log between start and end, for progress."""
    start, end = begun.start.at, bounds.end
    between = [
        log.size
        for log in begun.facts.binlogs
        if start.file.number <= log.file.number < end.file.number
    ]
    return max(sum(between) - start.offset + end.offset, 0)
