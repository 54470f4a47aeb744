"""Certificates for tests of TLS, made fresh: a CA with a server and a client, and another CA with a server.

    certificates = make_certificates(folder)
    context.load_cert_chain(certificates.server_cert, certificates.server_key)

Servers are `localhost` and 127.0.0.1. All are PEM files that every user may read, as a server may run as
another user; they are worth nothing outside the test.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_VALID_FOR = timedelta(days=2)


@dataclass(frozen=True, slots=True)
class Certificates:
    """Where the files are. `other_ca` has signed `other_server_cert` and nothing else."""

    ca: Path
    server_cert: Path
    server_key: Path
    client_cert: Path
    client_key: Path
    other_ca: Path
    other_server_cert: Path
    other_server_key: Path


def make_certificates(folder: Path) -> Certificates:
    """Write them all into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    authority, stranger = _Authority("Bucketwire test CA"), _Authority("Another test CA")
    server_cert, server_key = authority.issue(folder, "server", ExtendedKeyUsageOID.SERVER_AUTH)
    client_cert, client_key = authority.issue(folder, "client", ExtendedKeyUsageOID.CLIENT_AUTH)
    other_cert, other_key = stranger.issue(folder, "other-server", ExtendedKeyUsageOID.SERVER_AUTH)
    return Certificates(
        ca=_write(folder / "ca.pem", _certificate_pem(authority.certificate)),
        server_cert=server_cert,
        server_key=server_key,
        client_cert=client_cert,
        client_key=client_key,
        other_ca=_write(folder / "other-ca.pem", _certificate_pem(stranger.certificate)),
        other_server_cert=other_cert,
        other_server_key=other_key,
    )


class _Authority:
    """A CA: its key and its own certificate."""

    def __init__(self, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._identifier = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        self._name = _name(name)
        usage = _key_usage(signs_certificates=True)
        self.certificate = (
            self._builder(self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .sign(self._key, hashes.SHA256())
        )

    def issue(self, folder: Path, name: str, use: x509.ObjectIdentifier) -> tuple[Path, Path]:
        """A certificate and its key, as files."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName(
            [x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))]
        )
        authority = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(self._identifier)
        certificate = (
            self._builder(_name(name), key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([use]), critical=False)
            .add_extension(names, critical=False)
            .add_extension(authority, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        return (
            _write(folder / f"{name}.pem", _certificate_pem(certificate)),
            _write(folder / f"{name}.key", _key_pem(key)),
        )

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + _VALID_FOR)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _certificate_pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    # PKCS #8: what Java reads without a tool between
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _write(file: Path, pem: bytes) -> Path:
    file.write_bytes(pem)
    file.chmod(0o644)
    return file
