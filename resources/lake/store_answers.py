"""What an object store refuses, by the codes of its answers: its state, and the cure."""

from __future__ import annotations

from typing import Final

_AGAIN: Final = "then run again"

TAKEN: Final = (
    "refuses each commit for another one, and there is none (409)",
    "run again later; if it stays so, ask whoever runs the store about conditional writes",
)
"""What is said of a store that answers 409 without end: Amazon S3 asks to try again then."""

_ANSWERS: Final = (
    (
        ("NoSuchBucket",),
        ("has no such bucket", f"correct path under [lake], or region, {_AGAIN}"),
    ),
    (
        ("ExpiredToken", "TokenRefreshRequired"),
        (
            "is asked with credentials that have expired",
            f"renew those that [lake.options] refers to, {_AGAIN}",
        ),
    ),
    (
        ("RequestTimeTooSkewed", "RequestExpired"),
        ("refuses requests of this machine, whose clock is wrong", f"set its clock, {_AGAIN}"),
    ),
    (
        (
            "AuthorizationHeaderMalformed",
            "PermanentRedirect",
            "permanent redirect",
            "redirect without LOCATION",
        ),
        ("is in another region", f"correct region under [lake.options], {_AGAIN}"),
    ),
    (
        ("InvalidAccessKeyId", "SignatureDoesNotMatch", "Unauthenticated"),
        ("does not know these credentials", f"correct [lake.options], {_AGAIN}"),
    ),
    (
        ("AccessDenied", "PermissionDenied"),
        ("may not be used with these credentials", f"let them read, write and list, {_AGAIN}"),
    ),
    (
        ("ConditionalRequestConflict", "conflicting operation", "409 Conflict"),
        TAKEN,
    ),
    (
        ("SlowDown", "ServiceUnavailable", "Service Unavailable"),
        ("is busy, and was each time it was asked again", "run again later"),
    ),
    (
        ("Generic S3 error", "Generic GCS error", "Generic MicrosoftAzure error"),
        ("does not answer", f"check endpoint under [lake.options] and the network, {_AGAIN}"),
    ),
)


def refusal(said: str) -> tuple[str, str] | None:
    """The store's state and the cure, by an error's words; None where they are none of a store
    that refuses."""
    fitting = (told for codes, told in _ANSWERS if any(code in said for code in codes))
    return next(fitting, None)
