"""Who notices that tables came or went since the page loaded its definitions.

The catalogue tells. Where the page's address is configured, the page is asked to load them again;
else the tick says what to click.
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

import dagster as dg

from assets.catalogue import fingerprint, read_catalogue
from assets.hints import evaluated
from pipeline.errors import LockstepError
from resources.config import Settings

SECONDS = 60
_PATIENCE = 30
"""Seconds that the page may take to answer."""

Reload = Callable[[str, str], str]
"""Address of the page, location → what is wrong, "" if nothing is."""


def new_table_sensor(
    settings: Settings, loaded: str, reload: Reload | None = None
) -> dg.SensorDefinition:
    """`loaded`: the fingerprint of the catalogue that these definitions were made from."""
    ask = reload or reload_location

    @dg.sensor(
        name="lockstep_new_tables",
        minimum_interval_seconds=SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Shows tables that came since the definitions were loaded.",
    )
    @evaluated
    def look() -> dg.SkipReason:
        names = [source.name for source in settings.sources]
        now = {name: read_catalogue(settings.state_folder, name) for name in names}
        if fingerprint(now) == loaded:
            return dg.SkipReason("Every table is shown.")
        try:
            address = settings.webserver()
        except LockstepError as error:
            return dg.SkipReason(f"{error.message} hint: {error.hint}")
        location = settings.dagster.location
        if address is None:
            return dg.SkipReason(
                "Tables came or went: reload definitions on the page; with `webserver` under "
                "[dagster] in lockstep.toml, that happens by itself."
            )
        wrong = ask(address, location)
        if wrong:
            return dg.SkipReason(
                f"{address} did not reload the location {location}: {wrong} hint: correct "
                "`webserver` and `location` under [dagster] in lockstep.toml"
            )
        return dg.SkipReason(f"Tables came or went; {address} reloads the location {location}.")

    return look


def reload_location(address: str, location: str) -> str:
    """Ask the page at that address; what is wrong in one sentence, "" if nothing is."""
    from dagster_graphql import DagsterGraphQLClient, ReloadRepositoryLocationStatus

    parts = urlsplit(address)
    try:
        client = DagsterGraphQLClient(
            parts.hostname or "",
            port_number=parts.port,
            use_https=parts.scheme == "https",
            path_prefix=parts.path.rstrip("/"),
            timeout=_PATIENCE,
        )
        answer = client.reload_repository_location(location)
    except Exception as error:  # noqa: BLE001 - whatever the page answers, the tick tells it
        return f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"
    if answer.status is ReloadRepositoryLocationStatus.SUCCESS:
        return ""
    return answer.message or str(answer.failure_type)
