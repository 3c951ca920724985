"""Adapters for Dagster: annotations that it can compare, and our errors as its
failures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, get_origin, get_type_hints

import dagster as dg

from lockstep.pipeline.values.errors import LockstepError, Recovery, SourceBusy

Function = TypeVar("Function", bound=Callable[..., Any])


def evaluate_annotations(function: Function) -> Function:
    """Replace the function's annotations by the classes that they name, without type
    arguments. Return the function.

    Our modules do not evaluate annotations (`from __future__ import annotations`), but
    Dagster compares the annotations of contexts and results with its own classes.
    """
    hints = get_type_hints(function)
    function.__annotations__ = {name: get_origin(hint) or hint for name, hint in hints.items()}
    return function


@contextmanager
def dagster_failures() -> Iterator[None]:
    """Turn our errors into Dagster failures with message and hint. Dagster may retry
    only failures that need no person. If another run holds the source, nothing is
    wrong, so that failure shows no stack trace of ours."""
    try:
        yield
    except LockstepError as error:
        raise dg.Failure(
            description=f"{error.message}\nhint: {error.hint}",
            metadata={"hint": error.hint, "kind": type(error).__name__},
            allow_retries=error.recovery is Recovery.RETRY,
        ) from (None if isinstance(error, SourceBusy) else error)
