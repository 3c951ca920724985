"""A dump on its way through the loop: pieces of bytes in, and what the loop comes back for.

Belongs here: which bytes it reads next, and answering each of the `outcomes`. Does not: calling
the loop (`loop`), the events it leaves to Python (`rare_events`), when transactions are handed out
(`buffer`).
"""

from __future__ import annotations

from pipeline.binlog.arrays import outcomes
from pipeline.binlog.stream.damage import damage
from pipeline.binlog.stream.dump_refusals import is_end, refused_by
from pipeline.binlog.stream.intake import InputBytes, LargeEvent, Wire
from pipeline.binlog.transactions.complete_transactions import CompleteTransactions
from pipeline.binlog.transactions.log_place import LogPlace
from pipeline.binlog.transactions.loop import Loop
from pipeline.binlog.transactions.open_transaction import OpenTransaction
from pipeline.binlog.transactions.rare_events import RareEvents
from pipeline.ports.source import Received


class DumpReader:
    """`ended`: the server's end of log was read, or nothing more is to be. `stopped`: one of
    the limits was reached. `ready`: what is complete must not wait for more."""

    def __init__(
        self,
        loop: Loop,
        log: LogPlace,
        open_: OpenTransaction,
        complete: CompleteTransactions,
        rare: RareEvents,
    ) -> None:
        self._loop = loop
        self._log = log
        self._open = open_
        self._complete = complete
        self._rare = rare
        self._wire = Wire()
        self.ended = False
        self.stopped = False
        self.ready = False

    def put(self, received: Received) -> None:
        """The next bytes of the dump; only when all before are read."""
        self._wire.put(received.data, received.begin, received.end)

    def input(self) -> InputBytes | None:
        """What is read next; None if more bytes are needed."""
        nested = self._rare.nested
        return self._wire.next() if nested is None else nested.input

    def read(self, current: InputBytes) -> bool:
        """Let the loop run once; whether complete transactions must go out before it goes on."""
        code = self._loop.scan(current)
        match code:
            case outcomes.MORE:
                self._more(current)
            case outcomes.EVENT:
                return not self._take()
            case outcomes.FULL:
                if self._complete.count:
                    return True
                self._open.spill()
            case outcomes.HUGE:
                if self._complete.count:
                    return True
                self._open.spill_rows(self._loop.large_rows())
                self._loop.pass_rows()
            case outcomes.NEW_MAP:
                self._loop.bind_map()
            case outcomes.EMITTED:
                self.ready = True
                self.stop_between()
            case outcomes.STOPPED:
                self.stopped = True
            case outcomes.LARGE:
                self._wire.large()
            case outcomes.PACKET:
                self._end(self._loop.packet())
            case _:
                raise damage(code, self._log.at)
        return False

    def stop_between(self) -> None:
        """Stop if a limit is reached and the reading stands between two transactions."""
        if self._rare.between and self._log.stops:
            self.stopped = True

    def _more(self, current: InputBytes) -> None:
        nested = self._rare.nested
        if nested is None:
            if isinstance(current, LargeEvent):
                if current.at < current.stop:
                    raise damage(outcomes.WRONG_SIZE, self._log.at)
                self._loop.registers.sequence += current.packets
            self._wire.read()
            return
        if nested.refill():
            return
        if nested.input.at < nested.input.stop:
            raise damage(outcomes.WRONG_SIZE, self._log.at)
        self._rare.finish()
        self.stop_between()

    def _take(self) -> bool:
        """The event at hand; False if complete transactions must go out before it."""
        if not self._rare.take(self._loop.event(self._log.at)):
            return False
        if self._complete.alone:
            self.ready = True
        self.stop_between()
        return True

    def _end(self, packet: bytes) -> None:
        """A packet that holds no event: the end of the log, or a refusal."""
        if not is_end(packet):
            raise refused_by(packet)
        self.ended = True
