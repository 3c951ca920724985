"""What MySQL 5.7 does otherwise than the versions after it, and is followed all the same."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from demo.mysql_search import Program
from demo.mysqld import mysql_server
from lockstep.pipeline.values.errors import TlsRefused
from lockstep.resources.mysql.server import MySqlServer
from tests.fix_mysql import UNHURRIED, MySqlStand, killed_at_last
from tests.mysql.reading import server, settings


def test_a_server_without_a_certificate_says_so(mysql57: MySqlStand) -> None:
    """Builds of 5.7 without OpenSSL make none by themselves."""
    with pytest.raises(TlsRefused, match="has no certificate and does not support TLS") as refused:
        MySqlServer(settings(mysql57, tls="required")).facts()
    assert "ssl_cert" in refused.value.hint


def test_a_tls_that_is_too_old_says_so(mysql57_program: Program, tmp_path: Path) -> None:
    """With a certificate they speak TLS 1.1, which the OpenSSL of today does not."""
    with _with_certificate(mysql57_program, tmp_path) as stand:
        for tls in ("required", "verify"):
            with pytest.raises(TlsRefused, match=r"TLS 1\.1 at most") as refused:
                MySqlServer(settings(stand, tls=tls)).facts()
            assert "5.7.28" in refused.value.hint
        assert server(stand).facts().version.startswith("5.7.22")


@contextmanager
def _with_certificate(program: Program, folder: Path) -> Iterator[MySqlStand]:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (folder / "cert.pem").write_bytes(certificate.public_bytes(pem))
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            pem, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
    )
    options = (
        *UNHURRIED,
        f"--ssl-ca={folder / 'cert.pem'}",
        f"--ssl-cert={folder / 'cert.pem'}",
        f"--ssl-key={folder / 'key.pem'}",
    )
    with killed_at_last(mysql_server(program, folder, os.environ, options=options)) as running:
        yield MySqlStand(running, running.user, running.password)
