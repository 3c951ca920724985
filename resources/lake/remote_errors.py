"""What a server of Spark Connect, or the way to it, says where it gives no session.

Belongs here: those words as errors of ours. Does not: what it says of a statement (`java_errors`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pipeline.errors import ConfigurationError, LakeUnavailable, LockstepError

if TYPE_CHECKING:
    from pyspark.errors import PySparkException

_DETAILS: Final = re.compile(r'details = "(.*?)"\n')
"""Of an RPC error as gRPC prints it."""
_LONGEST: Final = 300


def refusal(server: str, error: PySparkException) -> LockstepError:
    """`ConfigurationError` where another try ends no better, else `LakeUnavailable`."""
    status = getattr(error, "getGrpcStatusCode", lambda: None)()
    if getattr(status, "name", "") in ("UNAUTHENTICATED", "PERMISSION_DENIED"):
        return ConfigurationError(
            f"The Spark at {server} does not take this token",
            hint="correct token under [spark]: it is what the server was started with",
        )
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return ConfigurationError(
            f"The Spark at {server} shows a certificate that this machine does not trust",
            hint="set GRPC_DEFAULT_SSL_ROOTS_FILE_PATH to a file with the certificate of whoever "
            "signed it, or correct remote under [spark]",
        )
    details = _DETAILS.search(str(error))
    said = error.getCondition() or (details[1][:_LONGEST] if details else type(error).__name__)
    return LakeUnavailable(
        f"The Spark at {server} gave no session: {said}",
        hint="check that it runs and serves Spark Connect, then run again",
    )
