"""What comparisons with MySQL found, as `lockstep status` shows it: twice, as lines and as JSON.

Belongs here: how long ago each table was proven, and which differ. Does not: a comparison itself
(`verify_report`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from typing import Any

from lockstep.report import counted
from pipeline.preflight.retention import spoken
from pipeline.proof.proven import TableProof, open_differences, proven_since
from pipeline.standing.verdict import clock
from pipeline.table import TableName


def proofs_json(proofs: Sequence[TableProof], now: datetime) -> list[dict[str, Any]]:
    """By table; moments in ISO 8601, ages in seconds."""
    return [_proof_json(proof, now) for proof in proofs]


def _proof_json(proof: TableProof, now: datetime) -> dict[str, Any]:
    proven, at = proof.proven, proof.proven_at
    return {
        "table": str(proof.table),
        "whole": proof.whole,
        "compared_at": proof.compared_at.isoformat(),
        "differing": proof.differing,
        "proven_at": at.isoformat() if at else None,
        "age_seconds": round((now - at).total_seconds(), 3) if at else None,
        "proof": proven.proof.value if proven else None,
        "rows": proven.rows if proven else None,
        "position": str(proven.at) if proven else None,
        "gtid_set": proven.gtid_set if proven else None,
    }


def proof_lines(
    proofs: Sequence[TableProof], stopped: Collection[TableName], now: datetime
) -> Iterator[str]:
    """Tables that differed when they were last compared; then how old the proofs of those are that
    follow the source."""
    for table, proof in open_differences(proofs).items():
        rows, when = counted(proof.differing, "row"), clock(proof.compared_at)
        yield f"  {table} differs from MySQL: {rows} when compared {when}"
        yield f"    hint: `lockstep verify {table}` shows which, `--repair` mends them"
    proven = proven_since(proofs, stopped).values()
    if proven:
        oldest = spoken(max(now - min(proven), now - now))
        tables = counted(len(proven), "table")
        yield f"  proven equal to MySQL: {tables}, the oldest proof {oldest} ago"
    if stopped and proofs:
        yield f"  not proven: {counted(len(stopped), 'table')} that stopped"
