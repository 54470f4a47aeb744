"""The way to Google Pub/Sub of one process: who we are there, and one gRPC channel for all topics.

Credentials are Google's application default credentials, turned into those of a service account where one is
to be impersonated. Looking for them may take seconds, so that is done beside; whoever waits has a time limit.
The emulator needs none.

A channel that failed is given up, and the next call opens another: gRPC itself would answer for the old one,
without trying, until its own back-off has passed. Calls still under way on the old one come to their end.
"""

import threading
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import google.auth
import grpc
from google.api_core import grpc_helpers
from google.auth import impersonated_credentials
from google.pubsub_v1.types import PublishRequest, PublishResponse

from bucketwire import __version__
from bucketwire.errors import Unavailable

SCOPE = "https://www.googleapis.com/auth/pubsub"
_PUBLISH = "/google.pubsub.v1.Publisher/Publish"
_OPTIONS = [
    ("grpc.primary_user_agent", f"bucketwire/{__version__}"),
    ("grpc.max_send_message_length", -1),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.use_local_subchannel_pool", 1),  # else a new channel inherits the back-off of the one given up
]


@dataclass(frozen=True, slots=True)
class PubsubSettings:
    """Which Pub/Sub, and as whom."""

    emulator_host: str = ""
    """`host:port` of an emulator, spoken to in plain text and without credentials."""
    endpoint: str = "pubsub.googleapis.com"
    """Google's own, or that of a region, `europe-west1-pubsub.googleapis.com`: order holds within one."""
    service_account: str = ""
    """The e-mail address of the service account to impersonate; empty publishes as whom the process is."""


def settings_from_environment(environment: Mapping[str, str]) -> PubsubSettings:
    """The settings, from the variable that Google's own libraries obey and two of ours."""
    return PubsubSettings(
        emulator_host=environment.get("PUBSUB_EMULATOR_HOST", ""),
        endpoint=environment.get("BUCKETWIRE_PUBSUB_ENDPOINT") or PubsubSettings().endpoint,
        service_account=environment.get("BUCKETWIRE_PUBSUB_SERVICE_ACCOUNT", ""),
    )


class Channel:
    """A gRPC channel, which connects when it is first used."""

    def __init__(self, settings: PubsubSettings, credentials: Any) -> None:
        self._channel = _open_channel(settings, credentials)
        self.publish = self._channel.unary_unary(
            _PUBLISH,
            request_serializer=PublishRequest.pb().SerializeToString,
            response_deserializer=PublishResponse.pb().FromString,
        )

    def close(self) -> None:
        """Cancel what is under way and disconnect."""
        self._channel.close()


class PubsubClient:
    """Lends the one channel. Threads may call at once."""

    def __init__(self, settings: PubsubSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._credentials: Future[Any] | None = None
        self._channel: Channel | None = None

    def channel(self, timeout_seconds: float) -> Channel:
        """The channel; `Unavailable` without credentials, `TimeoutError` while they are looked for."""
        credentials = self._wanted_credentials().result(timeout_seconds)
        with self._lock:
            if self._channel is None:
                self._channel = Channel(self._settings, credentials)
            return self._channel

    def give_up(self, channel: Channel) -> None:
        """Use another one from now on."""
        with self._lock:
            if self._channel is channel:
                self._channel = None

    def close(self) -> None:
        """Disconnect. Calling it twice is harmless."""
        with self._lock:
            channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()

    def _wanted_credentials(self) -> "Future[Any]":
        """The credentials, once they are found; looked for anew when that failed before."""
        with self._lock:
            known = self._credentials
            if known is None or (known.done() and known.exception() is not None):
                self._credentials = known = Future()
                search = threading.Thread(
                    target=_find_credentials,
                    args=(self._settings, known),
                    name="pubsub-credentials",
                    daemon=True,
                )
                search.start()
            return known


def impersonating(source: Any, service_account: str) -> Any:
    """Credentials of the service account, which `source` must be allowed to impersonate."""
    return impersonated_credentials.Credentials(  # type: ignore[no-untyped-call]
        source_credentials=source, target_principal=service_account, target_scopes=[SCOPE]
    )


def _find_credentials(settings: PubsubSettings, found: "Future[Any]") -> None:
    try:
        found.set_result(_credentials(settings))
    except Exception as problem:  # noqa: BLE001 a file that is missing or malformed, no access: all kinds
        missing = Unavailable("no Google credentials were found")
        missing.__cause__ = problem
        found.set_exception(missing)


def _credentials(settings: PubsubSettings) -> Any:
    if settings.emulator_host:
        return None
    if not settings.service_account:
        return google.auth.default(default_scopes=[SCOPE])[0]
    source, _ = google.auth.default(scopes=["https://www.googleapis.com/auth/cloud-platform"])
    return impersonating(source, settings.service_account)


def _open_channel(settings: PubsubSettings, credentials: Any) -> Any:
    if settings.emulator_host:
        return grpc.insecure_channel(settings.emulator_host, [*_OPTIONS, ("grpc.enable_http_proxy", 0)])
    return grpc_helpers.create_channel(
        settings.endpoint,
        credentials=credentials,
        default_scopes=[SCOPE],
        default_host=PubsubSettings().endpoint,
        options=_OPTIONS,
    )
