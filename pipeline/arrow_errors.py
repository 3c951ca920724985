"""What Arrow cannot do with one table's values is that table's matter.

Not here: memory that is short, which is the machine's.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from pipeline.errors import TableError


@contextmanager
def for_one_table(doing: str) -> Iterator[None]:
    """`doing` completes "Arrow cannot …"."""
    try:
        yield
    except (pa.ArrowMemoryError, pa.ArrowCancelled, TableError):
        raise
    except pa.ArrowException as error:
        raise TableError(
            f"Arrow cannot {doing}: {type(error).__name__}",
            hint="report it to us with the table's structure",
        ) from error
