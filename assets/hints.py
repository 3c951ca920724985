"""Type hints in the form Dagster reads them: evaluated, and without type arguments.

Our modules leave annotations unevaluated (`from __future__ import annotations`); Dagster
compares a context's annotation, and a result's, with its own classes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, get_origin, get_type_hints

Function = TypeVar("Function", bound=Callable[..., Any])


def evaluated(function: Function) -> Function:
    """The same function, its annotations replaced by the classes they name."""
    hints = get_type_hints(function)
    function.__annotations__ = {name: get_origin(hint) or hint for name, hint in hints.items()}
    return function
