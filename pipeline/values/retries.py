"""All retries of the product: how often, with which pauses, why, and what follows the
last failure.

Here: the numbers, and the only loop that counts tries and waits between them. Not here:
the operations that are tried, the errors that are worth another try, and the messages.
Each retry is a row of the table in docs/operating.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, repeat
from time import monotonic, sleep
from typing import Final


@dataclass(frozen=True, slots=True)
class Retry:
    """A rule for trying an operation again: what is tried, the reason why another try
    may succeed, and the consequence of the last failure.

    The last try is number `most_tries`, or the first that begins at least `seconds`
    after the first of all; without either limit the operation is tried until it
    succeeds. `pauses`: seconds between two tries; the last value is used for all
    further pauses.
    """

    operation: str
    reason: str
    consequence: str
    most_tries: int | None = None
    seconds: float | None = None
    pauses: tuple[float, ...] = (0.0,)

    def tries(self, pause: Callable[[float], object] = sleep) -> Iterator[float | None]:
        """Yield once per try: the pause in seconds that follows it, or None for the
        last try."""
        start = monotonic()
        for number, wait in enumerate(chain(self.pauses, repeat(self.pauses[-1])), start=1):
            is_late = self.seconds is not None and monotonic() - start >= self.seconds
            if number == self.most_tries or is_late:
                yield None
                return
            yield wait
            if wait:
                pause(wait)


def pause_a_tenth(seconds: float) -> None:
    """Pause for a tenth of the time: commands that only look do not wait as long as a
    run."""
    sleep(seconds / 10)


STEP: Final = Retry(
    "a step of a run (capture, merge, acknowledge)",
    "a connection that was lost, a stream that ended early, a full disk, somebody else's commit: "
    "temporary trouble",
    "the run ends with exit code 3; the next scheduled run tries again",
    most_tries=3,
    pauses=(0.5, 2.0),
)
GTID_EXECUTED: Final = Retry(
    "reading `gtid_executed`, while it lacks transactions that were read from the log",
    "under load MySQL adds a transaction there only after it is in the log",
    "the start is decided by what the set says then",
    most_tries=31,
    pauses=(1.0,),
)
STRUCTURES: Final = Retry(
    "reading all structures from the source",
    "a statement changed a structure meanwhile",
    "the step fails and is tried again",
    most_tries=5,
)
TABLE_READ: Final = Retry(
    "re-reading a table from the source",
    "the table was altered meanwhile",
    "the table stays quarantined for the next run",
    most_tries=5,
)
COMMITTED: Final = Retry(
    "asking MySQL whether the transactions in its log are committed",
    "a transaction is in the log before its rows can be read",
    "the comparison reads the log file from its beginning",
    seconds=1.0,
    pauses=(0.002,),
)
COMMITTED_SOON: Final = Retry(
    "the same, while waiting for a moment at which nobody writes",
    "the next such moment is near",
    "this moment does not count as quiet",
    seconds=0.1,
    pauses=(0.002,),
)
REPLICA: Final = Retry(
    "asking the replica from which tables are read whether it has executed the source's log",
    "a replica executes transactions later than its source",
    "the next run reads the rest of the table",
    seconds=60.0,
)
QUIET: Final = Retry(
    "opening a snapshot of a table without a key at a moment when nobody writes",
    "its rows cannot be told apart, so no write may come between",
    "the table is locked for a moment",
    most_tries=3,
    pauses=(0.02,),
)
QUIET_WITHOUT_LOCK: Final = Retry(
    "the same, if the account lacks LOCK TABLES, or others use the table for too long to lock it",
    "nobody may be writing a moment later",
    "the table stays quarantined",
    most_tries=50,
    pauses=(0.02,),
)
RUN_ENDED: Final = Retry(
    "asking whether the mirrors have all captured changes, before they are compared",
    "a run is going on",
    "the comparison ends with exit code 3",
    most_tries=61,
    pauses=(1.0,),
)
PUBLISH: Final = Retry(
    "a commit to a changelog",
    "somebody else committed first; the next try is planned on that version",
    "the step fails and is tried again",
    most_tries=5,
)
MERGE: Final = Retry(
    "a commit to a mirror, on the same intent",
    "somebody else committed first; the next try is planned on that version",
    "the step fails and is tried again",
    most_tries=3,
)
LOCK: Final = Retry(
    "taking a source's lock from a run that gave no sign of life, or was killed on this host",
    "Postgres ends a connection a moment after it is told to, or after the process is gone",
    "the source is busy (exit code 3)",
    most_tries=40,
    pauses=(0.05,),
)
SOURCE_FREE: Final = Retry(
    "taking a source's lock for a replay, or for a step of a run with several processes",
    "a run, or another step of this one, has it; whoever waits says so",
    "there is no last try: it waits until it is interrupted",
    pauses=(1.0,),
)
UPKEEP_TURN: Final = Retry(
    "asking whether no run has the source, before upkeep writes to the next mirror",
    "a run is going on, and does not wait for upkeep",
    "the mirror is left to the next upkeep",
    most_tries=61,
    pauses=(1.0,),
)
LEDGER_CONNECTION: Final = Retry(
    "the first query on an idle connection to the ledger",
    "Postgres, or something between, closed it; nothing was written on it yet",
    "the step fails and is tried again",
    most_tries=2,
)
EMBEDDED_LEDGER: Final = Retry(
    "reaching an embedded ledger that another process starts or stops, and waiting for one to stop",
    "Postgres takes some seconds to start or to stop",
    "the ledger is unavailable (exit code 3); a server that does not stop is left alone",
    seconds=60.0,
    pauses=(0.01,),
)
SPARK: Final = Retry(
    "reaching Spark's Java process",
    "the process names its port only once it is up",
    "there is no last try while the process lives; if it dies, the step fails and is tried again",
    pauses=(0.02,),
)
SPARK_ELSEWHERE: Final = Retry(
    "a request to a server of Spark Connect (by PySpark)",
    "the server is restarting, or the network is down for a moment",
    "the step fails and is tried again",
    most_tries=7,
    pauses=(0.05, 0.2, 0.8, 3.2, 12.8, 15.0),
)
