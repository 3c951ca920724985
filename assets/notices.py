"""Notifies people once when a source needs a person, and once when it no longer does.

`.lockstep/notified.json` keeps the `Verdict.trouble_key` of the last trouble that each
address was notified of: `{source: {reference: key}}`. A reference, such as `env:NAME`,
says where the address is found. The keys are not in the ledger, because people are also
notified when the ledger cannot be reached. If sending to an address fails, the next run
tries again. If the file cannot be written, nothing is sent, because otherwise each run
would send the same again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from lockstep.assets.state_files import edit_json_object, replace_file
from lockstep.pipeline.check import longest_pause_from_now
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.progress import SilentProgress
from lockstep.pipeline.run.run import RunAdapters
from lockstep.pipeline.run.status.status import standing_of
from lockstep.pipeline.status.facts import Standing
from lockstep.pipeline.status.verdict import State, Verdict, verdict
from lockstep.pipeline.values.errors import LockstepError, Recovery
from lockstep.pipeline.values.retries import pause_a_tenth
from lockstep.pipeline.values.table import TablePatterns
from lockstep.resources.config import Settings
from lockstep.resources.config.settings import SourceSettings

FILE: Final = "notified.json"

WriteNote = Callable[[str], None]


def assess_source(
    adapters: RunAdapters, source: SourceSettings, now: datetime
) -> tuple[Standing, Verdict]:
    """Return the facts about a source and the verdict on it, even if its server does
    not answer or its settings are wrong. Raise `LockstepError` if the ledger cannot be
    reached."""
    ledger, patterns = adapters.ledger(), readable_patterns(source)
    ports_or_error: RunPorts | LockstepError
    try:
        ports = adapters.ports(source.name, SilentProgress())
        # Nobody waits long for an assessment, so its pauses before retries are a tenth
        # of those of a run.
        ports_or_error = replace(ports, pause=pause_a_tenth)
    except LockstepError as error:
        ports_or_error = error
    standing = standing_of(source.name, patterns, ledger, ports_or_error, now)
    return standing, verdict(standing, now, longest_pause_from_now(source.schedule))


def readable_patterns(source: SourceSettings) -> TablePatterns:
    """Return the source's patterns; those of all tables if its settings are wrong."""
    try:
        return source.plan().patterns
    except LockstepError:
        return TablePatterns(("*.*",))


def trouble_sentence(source: str, source_verdict: Verdict) -> str:
    hint = f" What to do: {source_verdict.hint}" if source_verdict.hint else ""
    return f"{source}: {source_verdict.sentence.removesuffix('.')}.{hint}"


def notify_people(
    settings: Settings, adapters: RunAdapters, sources: Iterable[str], note: WriteNote
) -> None:
    """Notify the addresses of `[notify]` of each source whose trouble is not the one
    that they were last notified of. Raise nothing: errors become notes."""
    for name in sources:
        try:
            _, source_verdict = assess_source(adapters, settings.source(name), datetime.now(UTC))
        except LockstepError as error:
            if error.recovery is Recovery.RETRY:
                continue  # the next run may succeed without a person
            source_verdict = Verdict(
                State.CONFIGURATION, error.message.removesuffix("."), error.hint
            )
        notify_addresses(settings, name, source_verdict, note)


def notify_addresses(
    settings: Settings, source: str, source_verdict: Verdict, note: WriteNote
) -> None:
    """Notify each address of a source's trouble, or that the trouble is over, unless
    the address was notified of that before. Send nothing if only the next run will show
    whether an earlier trouble is over."""
    if not settings.notify_references or source_verdict.is_undecided:
        return
    trouble_key = source_verdict.trouble_key if source_verdict.needs_a_person else ""
    path, message = settings.state_folder / FILE, f"Nobody was notified of {source}"
    try:
        # The file is locked until all is sent, so that a run that ends meanwhile does
        # not send the same again.
        with edit_json_object(path) as content:
            stored = content.get(source)
            last_keys = stored if isinstance(stored, dict) else {}
            references = settings.notify_references
            if any(last_keys.get(reference, "") != trouble_key for reference in references):
                # Before anything is sent, this shows whether the file can be written.
                replace_file(path, json.dumps(content))
                message = f"The next run may notify people of {source} again"
            keys = _notify_each(settings, source, source_verdict, trouble_key, last_keys, note)
            if keys or stored:
                content[source] = keys
    except OSError as error:
        note(f"{message}: {error}")


def _notify_each(
    settings: Settings,
    source: str,
    source_verdict: Verdict,
    trouble_key: str,
    last_keys: dict[str, str],
    note: WriteNote,
) -> dict[str, str]:
    """Send to each address whose last key is not `trouble_key`, which is "" without a
    trouble. Return the last key of each address afterwards, if it has one."""
    if trouble_key:
        title = f"Lockstep: {source} needs a person"
        body = trouble_sentence(source, source_verdict)
    else:
        title = f"Lockstep: {source} is well again"
        body = f"{source}: {source_verdict.sentence}."
    keys = {}
    for reference in settings.notify_references:
        last_key = last_keys.get(reference, "")
        is_notified = last_key == trouble_key or _send(
            settings, reference, title, body, note, is_failure=bool(trouble_key)
        )
        keys[reference] = trouble_key if is_notified else last_key
    return {reference: key for reference, key in keys.items() if key}


def _send(
    settings: Settings,
    reference: str,
    title: str,
    body: str,
    note: WriteNote,
    *,
    is_failure: bool,
) -> bool:
    """Send a message, and return whether that succeeded. If it failed, note the reason."""
    from lockstep.resources.apprise import send  # an extra, and slow to import

    try:
        url = settings.notify_url(reference)
        failure = send(url, reference, title, body, is_failure=is_failure)
    except LockstepError as error:
        failure = f"{error.message.removesuffix('.')}; {error.hint}"
    if failure:
        note(f"[notify]: {failure}. The next run tries again.")
    return not failure
