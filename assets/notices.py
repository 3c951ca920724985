"""People are told what needs one: once for each trouble, and once when it is over.

`.lockstep/notified.json` has who was told what: `{source: {reference of an address: trouble}}`. It
is not in the ledger, because a ledger out of reach is a trouble too. An address that could not be
reached is told the next time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Final

from assets.files import changing_object
from pipeline.errors import LockstepError, Recovery
from pipeline.preflight import pause_from_now
from pipeline.runs.context import Unwatched
from pipeline.runs.inspecting.status import stand
from pipeline.runs.run import Site
from pipeline.standing.verdict import State, Verdict, verdict
from resources.config import Settings
from resources.config.source_settings import SourceSettings

FILE: Final = "notified.json"

Note = Callable[[str], None]


def judged(site: Site, source: SourceSettings) -> Verdict:
    """What matters most about a source now; raises `LockstepError` where the ledger is out of
    reach."""
    now, plan = datetime.now(UTC), source.plan()
    try:
        work = site.workplace(source.name, Unwatched())
    except LockstepError as error:
        standing = stand(source.name, plan.patterns, site.ledger(), error, now)
    else:
        standing = stand(source.name, plan.patterns, work.ledger, work, now)
    return verdict(standing, now, pause_from_now(source.schedule))


def told_of(source: str, trouble: Verdict) -> str:
    hint = f" What to do: {trouble.hint}" if trouble.hint else ""
    return f"{source}: {trouble.sentence}.{hint}"


def tell_people(settings: Settings, site: Site, sources: Iterable[str], note: Note) -> None:
    """Tell the addresses of `[notify]` how these sources stand, where they were not told so. It
    never fails: what went wrong is noted."""
    if not settings.notify:
        return
    for name in sources:
        try:
            found = judged(site, settings.source(name))
        except LockstepError as error:
            if error.recovery is Recovery.RETRY:
                continue  # the next run may do without anybody
            found = Verdict(State.CONFIGURATION, error.message.removesuffix("."), error.hint)
        tell(settings, name, found, note)


def tell(settings: Settings, source: str, found: Verdict, note: Note) -> None:
    """Tell each address what is the matter with a source, unless it knows, or that it is over.
    Nothing is said while a run has the source: it may be mending what is the matter."""
    if not settings.notify or found.state is State.BUSY:
        return
    try:
        # Held until all is sent: a run that ends meanwhile must not tell the same again.
        with changing_object(settings.state_folder / FILE) as known:
            knows = known.get(source)
            after = _told(settings, source, found, knows if isinstance(knows, dict) else {}, note)
            if after or knows:
                known[source] = after
    except OSError as error:
        note(f"Nobody was told how {source} stands: {error}")


def _told(
    settings: Settings, source: str, found: Verdict, knows: dict[str, str], note: Note
) -> dict[str, str]:
    """What each address knows now."""
    trouble = found.trouble if found.needs_a_person else ""
    if trouble:
        title, body = f"Lockstep: {source} needs a person", told_of(source, found)
    else:
        title, body = f"Lockstep: {source} is well again", f"{source}: {found.sentence}."
    after = {}
    for reference in settings.notify:
        before = knows.get(reference, "")
        arrived = before == trouble or _sent(settings, reference, title, body, note)
        after[reference] = trouble if arrived else before
    return {reference: what for reference, what in after.items() if what}


def _sent(settings: Settings, reference: str, title: str, body: str, note: Note) -> bool:
    from resources.apprise.sending import send  # an extra, and slow to import

    try:
        why = send(settings.notify_url(reference), reference, title, body)
    except LockstepError as error:
        why = f"{error.message.removesuffix('.')}; {error.hint}"
    if why:
        note(f"[notify]: {why}. The next run tries again.")
    return not why
