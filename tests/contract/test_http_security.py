"""Whom the HTTP publisher trusts, how it signs, and where it does not go, against a real server."""

import base64
import os
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from standardwebhooks.webhooks import Webhook

from bucketwire.publish import http_client
from bucketwire.publish.base import Delivered, Outcome, Retry
from bucketwire.publish.connections import Connections
from bucketwire.publish.http import HttpPublisher
from factories import message, topic
from services.certificates import Certificates, make_certificates
from services.http_endpoint import HttpEndpoint, Mode

LONG_SECONDS = 30.0
OLD = "whsec_" + base64.b64encode(b"o" * 32).decode()
NEW = "whsec_" + base64.b64encode(b"n" * 32).decode()
DESCRIPTORS = Path("/proc/self/fd")
IN_PRIVATE = Retry("the endpoint is in a private network")


@pytest.fixture
def endpoint() -> Iterator[HttpEndpoint]:
    with HttpEndpoint() as opened:
        yield opened


def publish(
    url: str,
    count: int = 1,
    deadline_seconds: float = LONG_SECONDS,
    *,
    private_allowed: bool = True,
    **attributes: str,
) -> list[Outcome]:
    connections = Connections(private_allowed=private_allowed)
    try:
        publisher = HttpPublisher(topic(url, **attributes), connections)
        return publisher.publish([message(f"event-{n}") for n in range(count)], deadline_seconds)
    finally:
        connections.close()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate for 127.0.0.1, with its key, in one file."""
    if shutil.which("openssl") is None:
        pytest.skip("needs the openssl command")
    file = tmp_path_factory.mktemp("tls") / "both.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1",
         "-keyout", str(file), "-out", str(file.with_suffix(".crt"))],
        check=True, capture_output=True,
    )  # fmt: skip
    file.write_text(file.read_text() + file.with_suffix(".crt").read_text())
    return file


@pytest.fixture
def tls_endpoint(certificate: Path) -> Iterator[HttpEndpoint]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with HttpEndpoint(tls=context) as opened:
        yield opened


def test_a_trusted_certificate_is_accepted(
    tls_endpoint: HttpEndpoint, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate.with_suffix(".crt")))
    assert publish(tls_endpoint.url, count=100) == [Delivered()] * 100


def test_an_untrusted_certificate_is_named_as_the_reason(tls_endpoint: HttpEndpoint) -> None:
    assert publish(tls_endpoint.url, count=100) == [Retry("the certificate is self-signed")] * 100
    assert tls_endpoint.attempts == 0


def test_a_certificate_for_another_name_is_named_as_the_reason(
    tls_endpoint: HttpEndpoint, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate.with_suffix(".crt")))
    outcomes = publish(tls_endpoint.url.replace("127.0.0.1", "localhost"))
    assert outcomes == [Retry("the certificate is for another host name")]


def test_verification_can_be_switched_off(tls_endpoint: HttpEndpoint) -> None:
    assert publish(tls_endpoint.url, **{"verify-ssl": "false"}) == [Delivered()]


def test_plain_http_at_a_tls_port_is_retried(tls_endpoint: HttpEndpoint) -> None:
    (outcome,) = publish(tls_endpoint.url.replace("https:", "http:"))
    assert isinstance(outcome, Retry)


def test_tls_at_a_port_that_does_not_speak_it_is_retried(endpoint: HttpEndpoint) -> None:
    (outcome,) = publish(endpoint.url.replace("http:", "https:"), deadline_seconds=0.3)
    assert isinstance(outcome, Retry)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("authorities"))


@pytest.fixture
def signed_endpoint(certificates: Certificates) -> Iterator[HttpEndpoint]:
    """One whose certificate is of an authority of its own."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.server_cert, certificates.server_key)
    with HttpEndpoint(tls=context) as opened:
        yield opened


def test_the_authorities_of_the_topic_are_trusted(
    signed_endpoint: HttpEndpoint, certificates: Certificates
) -> None:
    assert (
        publish(signed_endpoint.url, count=100, **{"ca-location": str(certificates.ca)})
        == [Delivered()] * 100
    )


def test_the_name_of_the_file_of_authorities_may_have_any_letters(
    signed_endpoint: HttpEndpoint, certificates: Certificates, tmp_path: Path
) -> None:
    file = tmp_path / "autorités 認証局.pem"
    file.write_bytes(certificates.ca.read_bytes())
    assert publish(signed_endpoint.url, **{"ca-location": str(file)}) == [Delivered()]


def test_the_authorities_of_the_topic_stand_instead_of_those_of_the_system(
    signed_endpoint: HttpEndpoint, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.ca))
    assert publish(signed_endpoint.url) == [Delivered()]
    outcomes = publish(signed_endpoint.url, **{"ca-location": str(certificates.other_ca)})
    assert outcomes == [Retry("the certificate is of an unknown authority")]


def test_a_file_of_authorities_that_is_mended_counts_at_once(
    signed_endpoint: HttpEndpoint, certificates: Certificates, tmp_path: Path
) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("no certificate")
    publisher = HttpPublisher(topic(signed_endpoint.url, **{"ca-location": str(file)}), Connections())
    assert publisher.publish([message()], LONG_SECONDS) == [
        Retry("the certificate or key files cannot be used")
    ]
    file.write_bytes(certificates.other_ca.read_bytes())
    wrong = publisher.publish([message()], LONG_SECONDS)
    assert wrong == [Retry("the certificate is of an unknown authority")]
    file.write_bytes(certificates.ca.read_bytes())
    assert publisher.publish([message()], LONG_SECONDS) == [Delivered()]


def test_a_peer_that_never_ends_the_tls_handshake_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        url = f"https://127.0.0.1:{mute.getsockname()[1]}/"
        publisher = HttpPublisher(topic(url), Connections(), connect_seconds=0.2)
        assert publisher.publish([message()] * 100, LONG_SECONDS) == [Retry("no connection in time")] * 100


def test_the_deadline_counts_in_a_tls_handshake_too() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        url = f"https://127.0.0.1:{mute.getsockname()[1]}/"
        assert publish(url, deadline_seconds=0.2) == [Retry("no answer within 0.2 s")]


def test_another_implementation_accepts_the_signatures_of_both_secrets(endpoint: HttpEndpoint) -> None:
    assert publish(endpoint.url, count=100, **{"signing-secret": f"{OLD} {NEW}"}) == [Delivered()] * 100
    for event in endpoint.events():
        assert event.headers["webhook-id"] == event.headers["bucketwire-event-id"]
        for secret in (OLD, NEW):
            assert Webhook(secret).verify(event.body, event.headers) == {}


def test_each_attempt_is_signed_with_its_own_time_and_the_same_id(endpoint: HttpEndpoint) -> None:
    for now in (1_800_000_000.9, 1_800_000_060.0):
        signed_topic = topic(endpoint.url, **{"signing-secret": NEW})
        HttpPublisher(signed_topic, Connections(), clock=lambda now=now: now).publish(
            [message()], LONG_SECONDS
        )
    signed = [(each.headers["webhook-id"], each.headers["webhook-timestamp"]) for each in endpoint.events()]
    assert signed == [("event-1", "1800000000"), ("event-1", "1800000060")]


def test_without_a_secret_nothing_is_signed(endpoint: HttpEndpoint) -> None:
    publish(endpoint.url)
    (event,) = endpoint.events()
    assert not [name for name in event.headers if name.startswith("webhook-")]


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "localhost.",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0",
        "[::1]",
        "[::ffff:127.0.0.1]",
    ],
)
def test_a_name_or_address_of_this_machine_is_not_called_where_that_is_forbidden(
    endpoint: HttpEndpoint, host: str
) -> None:
    url = endpoint.url.replace("127.0.0.1", host)
    assert publish(url, count=100, private_allowed=False) == [IN_PRIVATE] * 100
    assert endpoint.connections == 0


def test_a_public_redirect_into_a_private_network_is_not_followed_either(
    endpoint: HttpEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_client, "forbidden", lambda _: False)
    endpoint.mode, endpoint.status = Mode.REFUSE, 302
    endpoint.answer_headers = {"Location": endpoint.url}
    assert publish(endpoint.url, private_allowed=False) == [Retry("HTTP 302")]
    assert endpoint.attempts == 1


def test_the_address_is_asked_about_when_the_socket_is_made(
    endpoint: HttpEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name may lead elsewhere the next time: what counts is where each connection goes."""
    asked = []
    monkeypatch.setattr(http_client, "forbidden", lambda address: bool(asked.append(address)))
    url = endpoint.url.replace("127.0.0.1", "localhost")
    assert publish(url, count=20, private_allowed=False) == [Delivered()] * 20
    assert "127.0.0.1" in asked
    assert asked.count("127.0.0.1") == endpoint.connections


@pytest.mark.skipif(not DESCRIPTORS.exists(), reason="needs /proc")
@pytest.mark.parametrize("private_allowed", [True, False])
def test_programs_started_meanwhile_do_not_inherit_connections(
    endpoint: HttpEndpoint, monkeypatch: pytest.MonkeyPatch, *, private_allowed: bool
) -> None:
    monkeypatch.setattr(http_client, "forbidden", lambda _: False)
    before = inherited()
    connections = Connections(private_allowed=private_allowed)
    HttpPublisher(topic(endpoint.url), connections).publish([message()] * 20, LONG_SECONDS)
    assert inherited() <= before
    connections.close()


def inherited() -> set[int]:
    """The files that a program started now would have, if nobody closed them."""
    numbers = [int(file.name) for file in DESCRIPTORS.iterdir()]
    return {number for number in numbers if is_open(number) and os.get_inheritable(number)}


def is_open(number: int) -> bool:
    return (DESCRIPTORS / str(number)).is_symlink()


def test_private_networks_may_be_called_by_default(endpoint: HttpEndpoint) -> None:
    assert publish(endpoint.url.replace("127.0.0.1", "localhost")) == [Delivered()]
