"""Where an AMQP topic leads: its endpoint and attributes, taken apart once, and checked.

    amqp[s]://[user[:password]@]host[:port][/vhost]

Nothing here opens a connection. The password is in no repr and no error.
"""

import ssl
from dataclasses import dataclass, field
from urllib.parse import SplitResult, unquote, urlsplit

import pika

from bucketwire import __version__
from bucketwire.errors import ConfigError
from bucketwire.event.topic import ENDPOINT, Topic
from bucketwire.publish.pem_files import trust

HEARTBEAT_SECONDS = 60
CONNECT_SECONDS = 1.5
"""For one address of a host that has several. pika tries one after the other, and begins anew when a call has
given up: so a second and a third must have their turn within the 5 seconds of a call."""

_PORTS = {"amqp": 5672, "amqps": 5671}
_GUEST = "guest"


@dataclass(frozen=True, slots=True)
class Broker:
    """All that makes a connection what it is: equal ones may share it."""

    host: str
    port: int
    vhost: str
    user: str
    password: str = field(repr=False)
    tls: bool
    verifies: bool
    ca_location: str | None

    def parameters(self) -> pika.ConnectionParameters:
        """For pika; `UnusableFile` when the trusted certificates cannot be read."""
        return pika.ConnectionParameters(
            host=self.host,
            port=self.port,
            virtual_host=self.vhost,
            credentials=pika.PlainCredentials(self.user, self.password),
            heartbeat=HEARTBEAT_SECONDS,
            connection_attempts=1,
            socket_timeout=CONNECT_SECONDS,
            stack_timeout=None,
            ssl_options=self._tls() if self.tls else None,
            client_properties={"connection_name": "bucketwire", "product": f"bucketwire {__version__}"},
        )

    def _tls(self) -> pika.SSLOptions:
        context = trust(self.ca_location)
        if not self.verifies:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return pika.SSLOptions(context, self.host)


def broker_from_topic(topic: Topic) -> Broker:
    """`ConfigError` when the endpoint is no AMQP URL. `user-name` and `password` override what it says."""
    attributes = topic.attributes
    try:
        parts = urlsplit(topic.endpoint)
        host, port = _address(parts)
    except ValueError:  # its text may show the URL
        raise ConfigError(f"{ENDPOINT} of topic {topic.name} is not a valid AMQP URL") from None
    return Broker(
        host=host,
        port=port,
        vhost=unquote(parts.path[1:]) or "/",
        user=attributes.get("user-name") or unquote(parts.username or _GUEST),
        password=attributes.get("password") or _password(parts),
        tls=parts.scheme == "amqps",
        verifies=attributes.get("verify-ssl", "true").lower() != "false",
        ca_location=attributes.get("ca-location") or None,
    )


def _address(parts: SplitResult) -> tuple[str, int]:
    if parts.scheme not in _PORTS or not parts.hostname or parts.query or parts.fragment:
        raise ValueError
    return parts.hostname, parts.port or _PORTS[parts.scheme]


def _password(parts: SplitResult) -> str:
    """The URL's; guest's own is the default of guest alone."""
    default = _GUEST if parts.username in {None, _GUEST} else ""
    return default if parts.password is None else unquote(parts.password)
