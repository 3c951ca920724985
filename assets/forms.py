"""Lockstep's functions and errors in the forms that Dagster takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, get_origin, get_type_hints

import dagster as dg

from pipeline.errors import LockstepError, Recovery

Function = TypeVar("Function", bound=Callable[..., Any])


def evaluated(function: Function) -> Function:
    """The same function, its annotations replaced by the classes they name, without type arguments.

    Modules leave annotations unevaluated (`from __future__ import annotations`); Dagster compares a
    context's annotation, and a result's, with its own classes.
    """
    hints = get_type_hints(function)
    function.__annotations__ = {name: get_origin(hint) or hint for name, hint in hints.items()}
    return function


@contextmanager
def failing() -> Iterator[None]:
    """Raise an error of ours as Dagster's page shows it, the sentence and the cure. What a person
    must mend is not retried by anybody."""
    try:
        yield
    except LockstepError as error:
        raise dg.Failure(
            description=f"{error.message}\nhint: {error.hint}",
            metadata={"hint": error.hint, "kind": type(error).__name__},
            allow_retries=error.recovery is Recovery.RETRY,
        ) from error
