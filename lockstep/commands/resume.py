"""`lockstep resume`: bring a paused table back with the next run."""

from __future__ import annotations

import argparse

from lockstep.context import CommandContext, Outcome
from lockstep.table_orders import order
from pipeline.table_state import OrderKind


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """One order in the ledger; 5 where it does not fit the table's state."""
    return order(arguments, context, OrderKind.RESUME)
