"""An error of Arrow about one table's values quarantines only that table.

Lack of memory concerns the whole run, so it is passed through.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from lockstep.pipeline.values.errors import TableError


@contextmanager
def for_one_table(doing: str) -> Iterator[None]:
    """Turn errors of Arrow into a `TableError`. `doing` completes the sentence "Arrow cannot …"."""
    try:
        yield
    except (pa.ArrowMemoryError, pa.ArrowCancelled, TableError):
        raise
    except pa.ArrowException as error:
        raise TableError(
            f"Arrow cannot {doing}: {type(error).__name__}",
            hint="report it to us with the table's structure",
        ) from error
