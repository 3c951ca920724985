"""What Spark is told of an object store: Hadoop's settings for the options that the lake has.

S3 alone was tried. For `gs://` and `abfss://` Hadoop's connectors are not part of what is set up;
who brings them in `[spark]` (`spark.jars`) also brings their settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from resources.lake.paths import ObjectPath

SCHEMES: Final = ("s3", "s3a")

HADOOP: Final = "3.5.0"
"""The Hadoop that pyspark comes with, and whose S3A is in jars-s3.lock."""

_CLASS: Final = "org.apache.hadoop.fs.s3a.S3AFileSystem"
SAME: Final = {
    "endpoint": "endpoint",
    "region": "endpoint.region",
    "access_key_id": "access.key",
    "secret_access_key": "secret.key",
    "session_token": "session.token",
}
"""Options that are Hadoop's under another name, below `fs.s3a.`."""
_AUTH: Final = "org.apache.hadoop.fs.s3a"


def store_settings(lake: ObjectPath) -> dict[str, str]:
    """Spark's configuration for a lake there; nothing for a store that is not S3's kind."""
    if urlsplit(lake.bucket.url).scheme not in SCHEMES:
        return {}
    options = lake.bucket.options
    told = {SAME[name]: value for name, value in options.items() if name in SAME}
    told["path.style.access"] = (
        "false" if options.get("virtual_hosted_style_request") == "true" else "true"
    )
    told["connection.ssl.enabled"] = (
        "false" if options.get("endpoint", "").startswith("http:") else "true"
    )
    provider = _provider(options)
    if provider is not None:
        told["aws.credentials.provider"] = provider
    names = {f"spark.hadoop.fs.s3a.{name}": value for name, value in told.items()}
    return {f"spark.hadoop.fs.{scheme}.impl": _CLASS for scheme in SCHEMES} | names


def _provider(options: Mapping[str, str]) -> str | None:
    """Which credentials are asked; None: those of the environment, as S3A finds them itself."""
    if options.get("skip_signature") == "true":
        return f"{_AUTH}.AnonymousAWSCredentialsProvider"
    if "session_token" in options:
        return f"{_AUTH}.TemporaryAWSCredentialsProvider"
    if "access_key_id" in options:
        return f"{_AUTH}.SimpleAWSCredentialsProvider"
    return None
