"""All retries of the product: how often, with which pauses, why (the comment above
each), and what follows the last failure.

Here: the numbers, and the only loop that counts tries and waits between them. Not here:
the operations that are tried, the errors that are worth another try, and the messages.
The table in docs/reference.md lists the retries for which a person may have to wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, repeat
from time import monotonic, sleep
from typing import Final


@dataclass(frozen=True, slots=True)
class Retry:
    """A rule for trying an operation again: what is tried, and the consequence of the
    last failure.

    The last try is number `most_tries`, or the first that begins at least `seconds`
    after the first of all; without either limit the operation is tried until it
    succeeds. `pauses`: seconds between two tries; the last value is used for all
    further pauses.
    """

    operation: str
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


# A connection that was lost, a stream that ended early, a full disk, somebody else's commit:
# temporary trouble.
STEP: Final = Retry(
    "a step of a run (capture, merge, acknowledge)",
    "the run ends with exit code 3; the next scheduled run tries again",
    most_tries=3,
    pauses=(0.5, 2.0),
)
# Under load MySQL adds a transaction to `gtid_executed` only after it is in the log.
GTID_EXECUTED: Final = Retry(
    "reading `gtid_executed`, while it lacks transactions that were read from the log",
    "the start is decided by what the set says then",
    most_tries=31,
    pauses=(1.0,),
)
# A statement changed a structure meanwhile.
STRUCTURES: Final = Retry(
    "reading all structures from the source",
    "the step fails and is tried again",
    most_tries=5,
)
# The table was altered meanwhile.
TABLE_READ: Final = Retry(
    "re-reading a table from the source",
    "the table stays quarantined for the next run",
    most_tries=5,
)
# A transaction is in the log before its rows can be read.
COMMITTED: Final = Retry(
    "asking MySQL whether the transactions in its log are committed",
    "the comparison reads the log file from its beginning",
    seconds=1.0,
    pauses=(0.002,),
)
# If others write now, another moment at which nobody writes comes soon.
COMMITTED_SOON: Final = Retry(
    "asking the same while waiting for a moment at which nobody writes",
    "this moment does not count as quiet",
    seconds=0.1,
    pauses=(0.002,),
)
# A replica executes transactions later than its source.
REPLICA: Final = Retry(
    "asking the replica from which tables are read whether it has executed the source's log",
    "the next run reads the rest of the table",
    seconds=60.0,
)
# Rows without a key cannot be identified, so none may change while the snapshot is opened.
QUIET: Final = Retry(
    "opening a snapshot of a table without a key at a moment when nobody writes",
    "the table is locked for a moment",
    most_tries=3,
    pauses=(0.02,),
)
# Nobody may be writing a moment later.
QUIET_WITHOUT_LOCK: Final = Retry(
    "opening it if the account lacks LOCK TABLES, or others use the table for too long to lock it",
    "the table stays quarantined",
    most_tries=50,
    pauses=(0.02,),
)
# A run is going on.
RUN_ENDED: Final = Retry(
    "asking whether the mirrors have all captured changes, before they are compared",
    "the comparison ends with exit code 3",
    most_tries=61,
    pauses=(1.0,),
)
# Somebody else committed first; the next try is planned on that version.
PUBLISH: Final = Retry(
    "a commit to a changelog",
    "the step fails and is tried again",
    most_tries=5,
)
# Somebody else committed first; the next try is planned on that version.
MERGE: Final = Retry(
    "a commit to a mirror, on the same intent",
    "the step fails and is tried again",
    most_tries=3,
)
# Postgres ends a connection a moment after it is told to, or after the process is gone.
LOCK: Final = Retry(
    "taking a source's lock from a run that gave no sign of life, or was killed on this host",
    "the source is busy (exit code 3)",
    most_tries=40,
    pauses=(0.05,),
)
# A run, or another step of this run, holds the lock. A message says so while this one waits.
SOURCE_FREE: Final = Retry(
    "taking a source's lock for a replay, or for a step of a run with several processes",
    "there is no last try: it waits until it is interrupted",
    pauses=(1.0,),
)
# A run is going on, and does not wait for upkeep.
UPKEEP_TURN: Final = Retry(
    "asking whether no run has the source, before upkeep writes to the next mirror",
    "the mirror is left to the next upkeep",
    most_tries=61,
    pauses=(1.0,),
)
# Postgres, or a proxy before it, closed the connection. No query on it was lost.
LEDGER_CONNECTION: Final = Retry(
    "the first query on an idle connection to the ledger",
    "the step fails and is tried again",
    most_tries=2,
)
# Postgres takes some seconds to start or to stop.
EMBEDDED_LEDGER: Final = Retry(
    "reaching an embedded ledger that another process starts or stops, and waiting for one to stop",
    "the ledger is unavailable (exit code 3); a server that does not stop is left alone",
    seconds=60.0,
    pauses=(0.01,),
)
# The process names its port only once it is up.
SPARK: Final = Retry(
    "reaching Spark's Java process",
    "there is no last try while the process lives; if it dies, the step fails and is tried again",
    pauses=(0.02,),
)
# The server is restarting, or the network is down for a moment.
SPARK_ELSEWHERE: Final = Retry(
    "a request to a server of Spark Connect (by PySpark)",
    "the step fails and is tried again",
    most_tries=7,
    pauses=(0.05, 0.2, 0.8, 3.2, 12.8, 15.0),
)
