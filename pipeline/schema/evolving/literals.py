"""Literals as characters and as bytes.

Belongs here: the members of ENUM and SET, and which characters a set may have. Does not: what
a column makes of a literal (`defaults`).
"""

from __future__ import annotations

import re
from typing import Final

from pipeline.schema.evolving.effects import CannotFollow
from pipeline.schema.statements.written import Constant

_CODECS: Final = {
    **dict.fromkeys(("utf8mb4", "utf8mb3"), "utf-8"),
    **dict.fromkeys(("ucs2", "utf16"), "utf-16-be"),
    "utf16le": "utf-16-le",
    "utf32": "utf-32-be",
}
_NARROW: Final = frozenset({"utf8mb3", "ucs2"})
"""Sets without characters beyond U+FFFF."""

_ALMOST: Final = {"latin1": "latin-1", "latin2": "iso8859-2", "euckr": "euc-kr", "ujis": "euc-jp"}
"""Codecs that have no character that MySQL's set lacks, where the names differ."""

_CP1252: Final = {"latin1": "cp1252", "ascii": "ascii"}
"""MySQL's latin1 has five more characters."""

_UNDECODED: Final = re.compile("[\udc00-\udcff]")
"""Bytes that were no characters in the statement."""


def as_text(constant: Constant, charset: str | None) -> str:
    """A literal's characters in a column of that character set. CannotFollow for bytes
    that only the server could read as characters."""
    if constant.kind not in ("hex", "bits"):
        if _UNDECODED.search(constant.text):
            raise CannotFollow("a literal has bytes that are not text in its session")
        if not holds(charset, constant.text):
            raise CannotFollow(f"a literal has characters that {charset} may not have")
        return constant.text
    data = literal_bytes(constant)
    codec = _CODECS.get(charset or "", "ascii")
    try:
        return data.decode(codec)
    except UnicodeDecodeError:
        raise CannotFollow(f"bytes in hex stand for text in {charset}") from None


def holds(charset: str | None, text: str) -> bool:
    """Whether a set surely has all these characters; MariaDB puts ? for others."""
    if charset is None or text.isascii() or charset in _CODECS or charset == "binary":
        return charset not in _NARROW or text.isascii() or max(text) <= "\uffff"
    try:
        text.encode(_ALMOST.get(charset, charset))
    except (LookupError, UnicodeEncodeError):
        return False
    return True


def read_anew(text: str, charset: str, other: str) -> str:
    """The characters that the bytes of these are in another set; bytes alone are kept as the
    text that they are in UTF-8. UnicodeError where that is not known."""
    return text.encode(_codec(charset)).decode("utf-8" if other == "binary" else _codec(other))


def _codec(charset: str) -> str:
    codec = _CODECS.get(charset, _CP1252.get(charset))
    if codec is None:
        raise UnicodeError(f"no codec is the same as {charset}")
    return codec


def literal_bytes(constant: Constant) -> bytes:
    """The bytes of x'…' and b'…', and of a string of ASCII."""
    match constant.kind:
        case "hex":
            return bytes.fromhex("0" * (len(constant.text) % 2) + constant.text)
        case "bits":
            size = (len(constant.text) + 7) // 8
            return int(constant.text or "0", 2).to_bytes(size, "big")
    return constant.text.encode()
