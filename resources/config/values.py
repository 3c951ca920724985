"""Types and validators of single values in lockstep.toml. A validator raises ValueError
with a sentence. It accepts every reference (`env:NAME`, `file:PATH`), which is resolved
later."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
)

from lockstep.pipeline.values.mirror_names import MirrorNameTemplate
from lockstep.pipeline.values.places import OfRun, Place, Snapshot, parse_start
from lockstep.pipeline.values.survey import is_loopback
from lockstep.resources.config.secrets import is_reference, is_sensitive

Text = Annotated[str, StringConstraints(min_length=1)]


class Section(BaseModel):
    """A table of lockstep.toml, in which an unknown key is a mistake."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class NotBuiltYet(ValueError):
    """Raised for a value that is planned for a later version."""


class KeyMistake(ValueError):
    """Raised by a validator of a whole TOML table for a mistake in the value of `key`."""

    def __init__(self, key: str, sentence: str) -> None:
        super().__init__(sentence)
        self.key = key


def parse_configured_start(text: str) -> Place | Snapshot:
    """Return the place in the log that the text names, from which a source is first
    captured."""
    place = parse_start(text)
    if isinstance(place, OfRun):
        raise ValueError(  # noqa: TRY004 - pydantic expects ValueError
            f"{text!r} is the end of a run, but a source has no run before it starts; `lockstep "
            f"start-at {text} --source NAME --reason …` starts after a run, once"
        )
    return place


def unless_reference(check: Callable[[str], object]) -> AfterValidator:
    """Return the validator of a text for which `check` must not raise ValueError. A
    reference is also valid: its value is checked when it is resolved."""

    def validate(text: str) -> str:
        if not is_reference(text):
            check(text)
        return text

    return AfterValidator(validate)


def check_table_pattern(text: str) -> str:
    """Return the text if it is a pattern for tables."""
    if not all(text.partition(".")):
        raise ValueError(f"{text!r} is not a pattern such as shop.* (database.table)")
    return text


Pattern = Annotated[Text, unless_reference(check_table_pattern)]
"""A pattern for tables, `database.table` with wildcards, or a reference to one."""


def _check_mirror_name(text: str) -> str:
    """Return the text if it is a valid value of `into`, the name of mirrors."""
    MirrorNameTemplate.parse(text)
    return text


MirrorName = Annotated[Text, AfterValidator(_check_mirror_name)]


StartText = Annotated[Text, unless_reference(parse_configured_start)]


def _require_secret_reference(text: str) -> str:
    """Return the text if it is a reference; a literal secret is refused."""
    if not is_reference(text):
        raise ValueError("a literal secret is refused; write env:NAME or file:PATH")
    return text


SecretReference = Annotated[Text, AfterValidator(_require_secret_reference)]


def _require_address_reference(text: str) -> str:
    """Return the text if it is a reference; a literal address is refused."""
    if not is_reference(text):
        raise ValueError(
            "a literal address is refused, because it contains a token or a password; write "
            "env:NAME or file:PATH"
        )
    return text


AddressReference = Annotated[Text, AfterValidator(_require_address_reference)]


def as_list(value: object) -> object:
    """Return a text as a list of one; return any other value unchanged."""
    return [value] if isinstance(value, str) else value


_DURATION = re.compile(r"(?P<number>\d+)\s*(?P<unit>s|m|h|d)?")
_SECONDS_OF_UNIT = {None: 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}


def duration_in_seconds(value: object) -> object:
    """Return a duration in seconds: 300 for `"5m"`; a number is returned as it is."""
    if not isinstance(value, str):
        return value
    match = _DURATION.fullmatch(value.strip())
    if match is None:
        raise ValueError(f"{value!r} is not a duration such as 60s or 5m")
    return int(match["number"]) * _SECONDS_OF_UNIT[match["unit"]]


Seconds = Annotated[float, Field(gt=0, strict=False), BeforeValidator(duration_in_seconds)]
"""A number of seconds, which may be written as a duration such as `"5m"`."""


def refuse_literal_secrets(options: dict[str, str]) -> dict[str, str]:
    """Return the options. Raise `KeyMistake` if one has a literal value and a name that
    suggests a secret."""
    names = sorted(
        name for name, value in options.items() if is_sensitive(name) and not is_reference(value)
    )
    if names:
        raise KeyMistake(
            names[0],
            f"a literal value of {names[0]!r} is refused (its name suggests a secret); write "
            "env:NAME or file:PATH",
        )
    return options


_SIZE = re.compile(r"(?P<number>\d+)\s*(?P<unit>B|KiB|MiB|GiB|TiB)?")
_BYTES_OF_UNIT = {None: 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


def size_in_bytes(value: object) -> object:
    """Return a size in bytes: 1024 for `"1KiB"`; a number is returned as it is."""
    if not isinstance(value, str):
        return value
    match = _SIZE.fullmatch(value.strip())
    if match is None:
        raise ValueError(f"{value!r} is not a size such as 512MiB or 4GiB")
    return int(match["number"]) * _BYTES_OF_UNIT[match["unit"]]


def _check_cron(text: str) -> str:
    """Return the text if it is a cron expression of five fields."""
    from croniter import croniter  # imported only for files with a schedule

    if len(text.split()) != 5 or not croniter.is_valid(text):
        raise ValueError(f"{text!r} is not a cron expression such as */10 * * * *")
    return text


Cron = Annotated[Text, AfterValidator(_check_cron)]

_ADDRESS = re.compile(r"(?P<host>[\w.-]+|\[[0-9A-Fa-f:.]+\])(:(?P<port>\d{1,5}))?")


def host_and_port(text: str) -> tuple[str, int]:
    """Return host and port of `"db2"`, `"db2:3307"` or `"[::1]:3307"`."""
    match = _ADDRESS.fullmatch(text)
    port = int(match["port"] or 3306) if match else 0
    if match is None or not 1 <= port <= 65_535:
        raise ValueError(f"{text!r} is neither a host nor a host with a port such as db2:3306")
    return match["host"].strip("[]"), port


HostAndPort = Annotated[Text, unless_reference(host_and_port)]
Port = Annotated[int, Field(ge=1, le=65_535)]
ServerUuid = Annotated[
    str, StringConstraints(pattern=r"^([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|server-id:\d+)$")
]
"""A server's UUID, or `server-id:` and the server's id for MariaDB, which has no UUID."""


def refuse_plaintext(host: str) -> None:
    """Raise `KeyMistake` unless the host is this machine (a loopback address)."""
    if not is_loopback(host):
        raise KeyMistake(
            "tls",
            f'tls = "off" would send passwords and rows to {host} in the clear; use '
            '"verify" or "required", or add tls_force = true',
        )
