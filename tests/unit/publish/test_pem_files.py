"""Files that a topic names and that cannot be used: one outcome, before anybody is called."""

import os
from pathlib import Path

import pytest

from bucketwire.publish import open_publisher
from bucketwire.publish.base import Retry
from bucketwire.publish.connections import Connections
from bucketwire.publish.kafka_settings import cluster_from_topic
from bucketwire.publish.pem_files import LARGEST_BYTES, UnusableFile, check_file
from factories import message, topic

LONG_SECONDS = 60.0
UNUSABLE = Retry("the certificate or key files cannot be used")
DESTINATIONS: dict[str, dict[str, str]] = {
    "https://127.0.0.1:1/": {},
    "amqps://127.0.0.1:1": {"amqp-exchange": "uploads"},
    "kafka://127.0.0.1:1": {"use-ssl": "true"},
}


@pytest.fixture
def paths(tmp_path: Path) -> dict[str, str]:
    """One path of each kind."""
    made = {name: tmp_path / name for name in ("missing", "pipe", "empty", "large", "no certificate")}
    os.mkfifo(made["pipe"])
    made["empty"].touch()
    made["large"].write_bytes(b"#" * (LARGEST_BYTES + 1))
    made["no certificate"].write_text("This is no certificate.")
    return {
        **{name: str(path) for name, path in made.items()},
        "folder": str(tmp_path),
        "device": "/dev/ptmx",
        "of the kernel": "/proc/self/environ",
        "no path": "/\0",
        "too long": "/" + "a" * 300,
    }


KINDS = (
    "missing", "pipe", "empty", "large", "no certificate", "folder", "device", "of the kernel", "no path",
    "too long",
)  # fmt: skip


@pytest.mark.parametrize("verifies", ["true", "false"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("endpoint", DESTINATIONS)
def test_whatever_is_wrong_with_the_authorities_the_outcome_is_the_same(
    paths: dict[str, str], endpoint: str, kind: str, verifies: str
) -> None:
    attributes = {**DESTINATIONS[endpoint], "ca-location": paths[kind], "verify-ssl": verifies}
    connections = Connections()
    publisher = open_publisher(topic(endpoint, **attributes), connections)
    assert publisher.publish([message()] * 2, LONG_SECONDS) == [UNUSABLE] * 2
    connections.close()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "no certificate"])
@pytest.mark.parametrize("attribute", ["client-certificate-location", "client-key-location"])
def test_the_certificate_and_the_key_of_a_client_are_looked_at_before_librdkafka_opens_them(
    paths: dict[str, str], attribute: str, kind: str
) -> None:
    names = ("client-certificate-location", "client-key-location")
    files = {**dict.fromkeys(names, paths["no certificate"]), attribute: paths[kind]}
    with pytest.raises(UnusableFile):
        cluster_from_topic(topic("kafka://127.0.0.1:1", **{"use-ssl": "true"}, **files)).configuration()


def test_a_client_certificate_that_is_none_has_the_same_outcome(paths: dict[str, str]) -> None:
    names = ("client-certificate-location", "client-key-location")
    where = topic(
        "kafka://127.0.0.1:1", **{"use-ssl": "true"}, **dict.fromkeys(names, paths["no certificate"])
    )
    assert open_publisher(where, Connections()).publish([message()], LONG_SECONDS) == [UNUSABLE]


def test_a_file_that_may_not_be_read_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "ca.pem"
    file.write_bytes(b"#" * LARGEST_BYTES)
    check_file(str(file))
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(UnusableFile):
        check_file(str(file))
