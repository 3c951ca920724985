"""The pages of a source's last runs, beside lockstep.toml: `.lockstep/pages/<source>/<run>.html`.

Belongs here: the files, and the one that a run leaves, which it never fails for. Does not: what is
in them (`page`).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from assets.catalogue import replace_file
from pipeline.errors import SpanRefused
from pipeline.runs.context import Workplace
from pipeline.runs.inspecting.span_report import report_of_run
from resources.config import Settings
from resources.private import make_private

FOLDER: Final = "pages"

KEPT: Final = 500
"""Pages of a source; the oldest go."""

_LETTERS: Final = re.compile(r"[^A-Za-z0-9_.-]+")


def page_path(state_folder: Path, source: str, about: str) -> Path:
    """Where the page of a run or a span belongs; `about` names it, whatever letters it has."""
    name = _LETTERS.sub("-", about.removeprefix("run ").removeprefix("from "))[:150]
    return state_folder / FOLDER / source / f"{name}.html"


def keep_page(path: Path, text: str) -> None:
    """Written whole; the oldest pages beside it make room. OSError where it cannot be."""
    make_private(path.parent)
    replace_file(path, text)
    pages = sorted(path.parent.glob("*.html"), key=lambda page: page.stat().st_mtime_ns)
    for old in pages[:-KEPT]:
        old.unlink(missing_ok=True)


def keep_page_of_run(settings: Settings, work: Workplace, run: str) -> Path | None:
    """Make the page of a run, and keep it; None where the run captured nothing, or its page cannot
    be written, which is noted."""
    from assets.report.page import page  # imports jinja

    source = work.source.name
    try:
        report = report_of_run(work.ledger, source, run, work.clock())
        path = page_path(settings.state_folder, source, report.about)
        keep_page(path, page(report, settings.lake_path()))
    except SpanRefused:
        return None
    except OSError as error:
        work.progress.note(f"The run's page was not written: {error}")
        return None
    return path
