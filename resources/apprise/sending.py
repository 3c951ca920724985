"""One message to one address, by apprise, an extra of the package. An address holds a token or a
password, so nothing here repeats it."""

from __future__ import annotations

import logging
import threading
from importlib.util import find_spec
from typing import Final

from pipeline.errors import ConfigurationError, SetupIncomplete

PATIENCE: Final = 15.0
"""Seconds that one message may take."""


def require_address(url: str, reference: str) -> None:
    """`SetupIncomplete` without apprise, `ConfigurationError` for what is no address of it; asks
    nobody. `reference`: where lockstep.toml has it from."""
    if find_spec("apprise") is None:
        raise SetupIncomplete(
            "[notify] needs apprise, which is not installed",
            hint="pip install 'lockstep[notify]', with the version that is installed here",
        )
    import apprise

    logging.getLogger("apprise").setLevel(logging.CRITICAL)  # its messages show addresses
    if apprise.Apprise.instantiate(url) is None:
        raise ConfigurationError(
            f"notify: {reference} holds no address that apprise knows.",
            hint="write one as https://appriseit.com/services/ says, such as "
            "slack://TOKEN_A/TOKEN_B/TOKEN_C, mailto://… or jsons://host/path",
        )


def send(url: str, reference: str, title: str, body: str, patience: float = PATIENCE) -> str:
    """Why the message did not arrive; "" where it did. Raises what `require_address` does."""
    require_address(url, reference)
    import apprise

    failure = [f"{reference} did not answer within {patience:g} s"]

    def work() -> None:
        try:
            addressed = apprise.Apprise()
            addressed.add(url)
            arrived = addressed.notify(
                title=title, body=body, body_format=apprise.NotifyFormat.TEXT
            )
        except Exception as error:  # noqa: BLE001 - a service's trouble is never a run's
            failure[0] = f"{reference}: {type(error).__name__}"
        else:
            failure[0] = "" if arrived else f"{reference} did not take it"

    # apprise's time limits are for each read, so a slow service could hold a run up for long.
    thread = threading.Thread(target=work, name="lockstep-notify", daemon=True)
    thread.start()
    thread.join(patience)
    return failure[0]
