"""`lockstep reload`: have the next run rewrite a table's mirror; recorded."""

from __future__ import annotations

import argparse

from lockstep.context import CommandContext, Outcome
from lockstep.table_orders import order
from pipeline.table_state import OrderKind


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """One order in the ledger; 5 where the table was dropped."""
    return order(arguments, context, OrderKind.RELOAD)
