"""Notifications of people: once when a source needs a person, and once when it no
longer does.

`.lockstep/notified.json` keeps the last trouble that each address was notified of:
`{source: {reference of an address: trouble}}`. It is not in the ledger, because people
are also notified when the ledger cannot be reached. If sending to an address fails, the
next run tries again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from lockstep.assets.files import changing_object
from lockstep.pipeline.check import longest_pause_from_now
from lockstep.pipeline.run.context import SilentProgress, Workplace
from lockstep.pipeline.run.run import Site
from lockstep.pipeline.run.status.status import standing_of
from lockstep.pipeline.status.facts import Standing
from lockstep.pipeline.status.verdict import State, Verdict, verdict
from lockstep.pipeline.values.errors import LockstepError, Recovery
from lockstep.pipeline.values.retries import a_tenth
from lockstep.resources.config import Settings
from lockstep.resources.config.settings import SourceSettings

FILE: Final = "notified.json"

Note = Callable[[str], None]


def look_at(site: Site, source: SourceSettings, now: datetime) -> tuple[Standing, Verdict]:
    """Return the facts about a source and the verdict on it, even if its server does
    not answer or its settings are wrong. Raise `LockstepError` if the ledger cannot be
    reached."""
    ledger = site.ledger()
    work: Workplace | LockstepError
    try:
        # Nobody waits long for a look: its retries pause a tenth as long as a run's.
        work = replace(site.workplace(source.name, SilentProgress()), pause=a_tenth)
    except LockstepError as error:
        work = error
    standing = standing_of(source.name, source.plan().patterns, ledger, work, now)
    return standing, verdict(standing, now, longest_pause_from_now(source.schedule))


def trouble_sentence(source: str, trouble: Verdict) -> str:
    hint = f" What to do: {trouble.hint}" if trouble.hint else ""
    return f"{source}: {trouble.sentence}.{hint}"


def notify_people(settings: Settings, site: Site, sources: Iterable[str], note: Note) -> None:
    """Notify the addresses of `[notify]` whose last notification about one of these
    sources is outdated. Raise nothing: errors become notes."""
    if not settings.notify_references:
        return
    for name in sources:
        try:
            _, verdict = look_at(site, settings.source(name), datetime.now(UTC))
        except LockstepError as error:
            if error.recovery is Recovery.RETRY:
                continue  # the next run may succeed without a person
            verdict = Verdict(State.CONFIGURATION, error.message.removesuffix("."), error.hint)
        tell(settings, name, verdict, note)


def tell(settings: Settings, source: str, verdict: Verdict, note: Note) -> None:
    """Notify each address of a source's trouble, or of its end, if the address does not
    know yet. Send nothing while a run has the source, because the run may end the
    trouble."""
    if not settings.notify_references or verdict.state is State.BUSY:
        return
    try:
        # The file is locked until all is sent, so that a run that ends meanwhile does
        # not send the same again.
        with changing_object(settings.state_folder / FILE) as content:
            before = content.get(source)
            troubles = before if isinstance(before, dict) else {}
            after = _notify(settings, source, verdict, troubles, note)
            if after or before:
                content[source] = after
    except OSError as error:
        note(f"Nobody was notified of {source}: {error}")


def _notify(
    settings: Settings, source: str, verdict: Verdict, troubles: dict[str, str], note: Note
) -> dict[str, str]:
    """Send to each address whose last trouble is not the present one. Return the last
    trouble of each address afterwards."""
    trouble = verdict.trouble_key if verdict.needs_a_person else ""
    if trouble:
        title, body = f"Lockstep: {source} needs a person", trouble_sentence(source, verdict)
    else:
        title, body = f"Lockstep: {source} is well again", f"{source}: {verdict.sentence}."
    after = {}
    for reference in settings.notify_references:
        before = troubles.get(reference, "")
        arrived = before == trouble or _send(settings, reference, title, body, note)
        after[reference] = trouble if arrived else before
    return {reference: text for reference, text in after.items() if text}


def _send(settings: Settings, reference: str, title: str, body: str, note: Note) -> bool:
    """Send a message, and return whether that succeeded. Note the reason if not."""
    from lockstep.resources.apprise.sending import send  # an extra, and slow to import

    try:
        why = send(settings.notify_url(reference), reference, title, body)
    except LockstepError as error:
        why = f"{error.message.removesuffix('.')}; {error.hint}"
    if why:
        note(f"[notify]: {why}. The next run tries again.")
    return not why
