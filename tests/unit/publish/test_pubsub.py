"""How the endpoint and the settings of Pub/Sub are read. No request is sent."""

import sys

import google.auth
import pytest
from google.auth.credentials import AnonymousCredentials

from bucketwire.errors import ConfigError
from bucketwire.publish import open_publisher
from bucketwire.publish.connections import Connections
from bucketwire.publish.pubsub import PubsubPublisher
from bucketwire.publish.pubsub_client import (
    SCOPE,
    PubsubClient,
    PubsubSettings,
    impersonating,
    settings_from_environment,
)
from factories import topic

ACCOUNT = "bucket-eventing@my-project.iam.gserviceaccount.com"


@pytest.mark.parametrize(
    ("endpoint", "path"),
    [
        ("pubsub://my-project/videos", "projects/my-project/topics/videos"),
        (
            "PubSub://example.com:my-project/a.b_c~d+e%25-f",
            "projects/example.com:my-project/topics/a.b_c~d+e%25-f",
        ),
    ],
)
def test_the_endpoint_names_a_project_and_a_topic(endpoint: str, path: str) -> None:
    publisher = open_publisher(topic(endpoint), Connections())
    assert isinstance(publisher, PubsubPublisher)
    assert publisher._topic == path


@pytest.mark.parametrize(
    "endpoint",
    [
        "pubsub://", "pubsub://my-project", "pubsub://my-project/", "pubsub:///videos", "pubsub://my-project/a/b",
        "pubsub://user:hunter2@my-project/videos", "pubsub://my-project/videos?hunter2", "pubsub://My-Project/videos",
        "pubsub://my-project/goog-hunter2",
    ],
)  # fmt: skip
def test_an_unusable_endpoint_is_an_error_that_does_not_show_it(endpoint: str) -> None:
    with pytest.raises(ConfigError, match="push-endpoint of topic videos") as raised:
        open_publisher(topic(endpoint, name="videos"), Connections())
    assert "hunter2" not in str(raised.value)


def test_the_environment_says_which_pubsub_and_as_whom() -> None:
    assert settings_from_environment({}) == PubsubSettings("", "pubsub.googleapis.com", "")
    environment = {
        "PUBSUB_EMULATOR_HOST": "127.0.0.1:8085",
        "BUCKETWIRE_PUBSUB_ENDPOINT": "europe-west1-pubsub.googleapis.com",
        "BUCKETWIRE_PUBSUB_SERVICE_ACCOUNT": ACCOUNT,
    }
    assert settings_from_environment(environment) == PubsubSettings(
        "127.0.0.1:8085", "europe-west1-pubsub.googleapis.com", ACCOUNT
    )


def test_an_impersonated_service_account_may_do_no_more_than_pubsub() -> None:
    credentials = impersonating(AnonymousCredentials(), ACCOUNT)
    assert credentials.service_account_email == ACCOUNT
    assert credentials._target_scopes == [SCOPE]


def test_the_setting_is_what_makes_a_client_impersonate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(google.auth, "default", lambda **_: (AnonymousCredentials(), None))
    assert isinstance(PubsubClient(PubsubSettings())._wanted_credentials().result(30), AnonymousCredentials)
    impersonated = PubsubClient(PubsubSettings(service_account=ACCOUNT))._wanted_credentials().result(30)
    assert impersonated.service_account_email == ACCOUNT


def test_an_emulator_needs_no_credentials() -> None:
    client = PubsubClient(PubsubSettings(emulator_host="127.0.0.1:1"))
    assert client._wanted_credentials().result(30) is None
    client.channel(30)
    client.close()
    client.close()


def test_without_the_extra_a_topic_is_refused_with_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "bucketwire.publish.pubsub")
    monkeypatch.setitem(sys.modules, "google.pubsub_v1.types", None)
    with pytest.raises(ConfigError, match=r"install Bucketwire with the extra pubsub"):
        open_publisher(topic("pubsub://my-project/videos"), Connections())
