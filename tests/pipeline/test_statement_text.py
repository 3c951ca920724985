"""A statement of the log becomes text whatever bytes are in its literals."""

from __future__ import annotations

import pytest

from lockstep.pipeline.binlog.values.charset_tables import MULTI_BYTE
from lockstep.pipeline.binlog.values.charsets import Decoder, text_decoder
from lockstep.pipeline.run.dump import logged_statements
from lockstep.pipeline.run.dump.logged_statements import statement_text


def test_a_character_beyond_utf8mb3_before_an_invalid_byte() -> None:
    """Both become surrogates: a client with utf8mb3 may send a literal with either."""
    raw = "insert into t values ('😀', '".encode() + b"\xff')"
    escaped = "".join(chr(0xDC00 + byte) for byte in "😀".encode())
    assert statement_text(raw, "utf8mb3") == f"insert into t values ('{escaped}', '\udcff')"


@pytest.mark.parametrize("charset", sorted({*MULTI_BYTE} - {"utf16", "utf16le", "utf32"}))
def test_no_character_of_a_long_statement_is_divided(charset: str) -> None:
    """Wherever its characters begin."""
    codec = MULTI_BYTE[charset].codec
    for prefix in ("", "a", "aa", "aaa"):
        text = prefix + "一" * 3_000
        raw = text.encode(codec)
        assert statement_text(raw, charset) == text
        assert statement_text(raw + b"\xff", charset) == f"{text}\udcff"


def test_a_binary_literal_is_decoded_in_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A literal that is twice as long costs twice as much, not four times."""
    decoded_bytes = 0

    def counting_decoder(charset: str) -> Decoder:
        decode = text_decoder(charset)

        def decode_and_count(data: bytes) -> str:
            nonlocal decoded_bytes
            decoded_bytes += len(data)
            return decode(data)

        return decode_and_count

    monkeypatch.setattr(logged_statements, "text_decoder", counting_decoder)
    costs = []
    for length in (10_000, 20_000):
        decoded_bytes = 0
        assert statement_text(b"\xff" * length, "utf8mb4") == "\udcff" * length
        costs.append(decoded_bytes)
    assert costs[1] < 2.5 * costs[0]
