"""Sends a message to an address by apprise, which the extra `notify` of the package
installs. An address contains a token or a password, so no message or error shows it."""

from __future__ import annotations

import logging
import threading
from importlib.util import find_spec
from typing import Final

from lockstep.pipeline.values.errors import ConfigurationError, SetupIncomplete

TIMEOUT_SECONDS: Final = 15.0
"""Longest time that sending a message may take, in seconds."""


def require_address(url: str, reference: str) -> None:
    """Raise `SetupIncomplete` if apprise is not installed, `ConfigurationError` if
    apprise does not understand the address. Nothing is sent. `reference`: the address's
    reference in lockstep.toml."""
    if find_spec("apprise") is None:
        raise SetupIncomplete(
            "[notify] needs apprise, which is not installed",
            hint="run `pip install 'lockstep[notify]'`",
        )
    import apprise

    logging.getLogger("apprise").setLevel(logging.CRITICAL)  # its log lines show addresses
    if apprise.Apprise.instantiate(url) is None:
        raise ConfigurationError(
            f"notify: {reference} holds no address that apprise understands.",
            hint="write one of https://appriseit.com/services/, such as "
            "slack://TOKEN_A/TOKEN_B/TOKEN_C, mailto://… or jsons://host/path",
        )


def send(
    url: str,
    reference: str,
    title: str,
    body: str,
    timeout_seconds: float = TIMEOUT_SECONDS,
    *,
    is_failure: bool = True,
) -> str:
    """Send the message; return why it did not arrive, or "". `timeout_seconds`:
    seconds until it counts as undelivered. `is_failure`: whether apprise shows it as a
    failure or as a success. Raise the errors of `require_address`."""
    require_address(url, reference)
    import apprise

    types = apprise.NotifyType
    failure = f"{reference} did not answer within {timeout_seconds:g} s"

    def notify() -> None:
        nonlocal failure
        try:
            service = apprise.Apprise()
            service.add(url)
            is_accepted = service.notify(
                title=title,
                body=body,
                body_format=apprise.NotifyFormat.TEXT,
                notify_type=types.FAILURE if is_failure else types.SUCCESS,
            )
        except Exception as error:  # noqa: BLE001 - a service's failure must not fail the run
            failure = f"{reference}: {type(error).__name__}"
        else:
            failure = "" if is_accepted else f"{reference} did not accept it"

    # apprise limits only the time of each read: a service that answers slowly, byte by
    # byte, would delay a run for long.
    thread = threading.Thread(target=notify, name="lockstep-notify", daemon=True)
    thread.start()
    thread.join(timeout_seconds)
    return failure
