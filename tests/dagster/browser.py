"""A backfill in a browser, by hand: launched by clicks, watched to its end, pictures of the pages.

    make ui                         # on a project whose past has three closed hours
    pip install playwright          # no part of the dependencies; and Debian's chromium
    python -m tests.dagster.browser shop shop.orders FOLDER

Belongs here: what a person would click. Does not: anything that `make test` runs.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

ADDRESS = "http://127.0.0.1:3000"
CHROMIUM = "/usr/bin/chromium"
PATIENCE = 120_000
"""Milliseconds to wait for a page."""

_RUN = 900_000
"""Milliseconds that a backfill may take."""


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Launch a backfill of all hours and look at pages."
    )
    parser.add_argument("source")
    parser.add_argument("tables", nargs="+", help="mirrors to look at")
    parser.add_argument("folder", type=Path, help="where the pictures go")
    parser.add_argument("--address", default=ADDRESS)
    asked = parser.parse_args()
    from playwright.sync_api import sync_playwright

    asked.folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.set_default_timeout(PATIENCE)
        replayed = f"{asked.address}/assets/{asked.source}/replayed"
        backfill(page, replayed, asked.folder)
        for table in asked.tables:
            look(page, f"{asked.address}/assets/{asked.source}/{table}", table, asked.folder)
        browser.close()
    return 0


def backfill(page: Any, replayed: str, folder: Path) -> None:
    """All partitions as one run; waits until Dagster says that it is done."""
    page.goto(f"{replayed}?view=partitions")
    page.get_by_text("Materialize…").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="All", exact=True).click()
    page.screenshot(path=folder / "backfill-launched.png")
    dialog.get_by_role("button", name="Launch backfill").click()
    page.wait_for_timeout(5_000)
    page.goto(f"{replayed}?view=partitions")
    for label in ("Materializing (0)", "Missing (0)"):
        page.get_by_text(label).first.wait_for(timeout=_RUN)
    page.screenshot(path=folder / "partitions.png")


def look(page: Any, address: str, table: str, folder: Path) -> None:
    """A mirror's page, all of it, and its checks."""
    page.goto(address)
    page.get_by_text("Latest materialization").first.wait_for()
    page.wait_for_load_state("networkidle")
    page.screenshot(path=folder / f"{table}.png")
    page.goto(f"{address}?view=checks")
    page.get_by_text("follows_source").first.wait_for()
    page.screenshot(path=folder / f"{table}-checks.png")


if __name__ == "__main__":
    sys.exit(main())
