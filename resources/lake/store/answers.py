"""The meaning of error messages of object stores: for each, a clause that continues
"The lake's storage at URL", and a hint."""

from __future__ import annotations

from typing import Final

_AGAIN: Final = "then run again"

CONFLICT_EXPLANATION: Final = (
    "refuses each commit because of another one (409), but there is none",
    "run again later; if it stays so, ask whoever runs the store about conditional writes",
)
"""The explanation for a store that answers each commit with HTTP 409, with which Amazon
S3 asks a client to try again."""

_EXPLANATIONS: Final = (
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
        # An answer to HEAD has a status, but no code.
        ("AccessDenied", "PermissionDenied", "Status Code: 403"),
        (
            "is not accessible with these credentials",
            f"let them read, write, list, delete, {_AGAIN}",
        ),
    ),
    (
        ("ConditionalRequestConflict", "conflicting operation", "409 Conflict"),
        CONFLICT_EXPLANATION,
    ),
    (
        ("SlowDown", "ServiceUnavailable", "Service Unavailable"),
        ("is busy, and was busy at each retry", "run again later"),
    ),
    (
        ("Generic S3 error", "Generic GCS error", "Generic MicrosoftAzure error"),
        ("does not answer", f"check endpoint under [lake.options] and the network, {_AGAIN}"),
    ),
)


def explanation_of(message: str) -> tuple[str, str] | None:
    """Return the clause and the hint of the first entry with a code that the message
    contains; None if it contains none of them."""
    matches = (
        explanation
        for codes, explanation in _EXPLANATIONS
        if any(code in message for code in codes)
    )
    return next(matches, None)
