"""What a topic says about its HTTP endpoint, and the headers of a message that goes there.

The endpoint's password and the signing secrets are in no repr and no error, and nothing of one topic stays on
a connection for the next: they are headers, written anew for each request. Nothing here sends or waits, or
looks at the file of `ca-location`.
"""

import base64
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import SplitResult, quote, unquote_to_bytes, urlsplit

from bucketwire.errors import ConfigError
from bucketwire.event.message import Message
from bucketwire.event.topic import ENDPOINT, Topic
from bucketwire.publish.headers import CONTENT_TYPE, EVENT_ID, KEY
from bucketwire.publish.webhooks import Signer, signer_from_text

CA_LOCATION = "ca-location"
SIGNING_SECRET = "signing-secret"  # noqa: S105 - the name of the attribute
CE_PREFIX = "ce-"
"""What stands before the attributes of a CloudEvent."""
AUTHORIZATION = "Authorization"

_CONTENT_TYPE, _EVENT_ID, _KEY = CONTENT_TYPE.title(), EVENT_ID.title(), KEY.title()

_UNTOUCHED_IN_HEADERS = "".join(map(chr, range(0x21, 0x7F))).replace('"', "").replace("%", "")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_REASONS = {ENDPOINT: "is not a valid URL"}

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Peer:
    """Whom a connection leads to, and how: topics that have this in common share connections."""

    scheme: str
    host: str
    port: int
    username: bytes | None
    """Of no matter to a connection, but two users of one host are kept apart."""
    verifies: bool
    ca_location: str | None
    """The file with the authorities to trust; None stands for those of the system."""


@dataclass(frozen=True, slots=True)
class Destination:
    """A topic's endpoint, taken apart: the URL here holds no password."""

    url: str
    peer: Peer
    fixed_headers: tuple[str, ...] = field(repr=False)
    signer: Signer | None

    def headers(self, message: Message, at_seconds: float) -> list[str]:
        """The header lines of an attempt at that time; libcurl does not send one without a value."""
        lines = [
            f"{_CONTENT_TYPE}: {message.content_type}",
            f"{_EVENT_ID}: {message.event_id}",
            f"{_KEY}: {header_value(message.key)}",
            *self.fixed_headers,
            *(f"{CE_PREFIX}{name}: {header_value(value)}" for name, value in message.cloudevent.items()),
        ]
        if self.signer is not None:
            lines += self.signer.headers(message.event_id, message.body, int(at_seconds))
        return lines


def destination_from_topic(topic: Topic) -> Destination:
    """Reads the attributes; `ConfigError` names the one that can never work."""
    parts, url = _checked(topic, ENDPOINT, _endpoint)
    trusts_file = parts.scheme == "https" and CA_LOCATION in topic.attributes
    peer = Peer(
        scheme=parts.scheme,
        host=parts.hostname or "",
        port=parts.port or _DEFAULT_PORTS[parts.scheme],
        username=None if parts.username is None else unquote_to_bytes(parts.username),
        verifies=topic.attributes.get("verify-ssl", "true").lower() != "false",
        ca_location=topic.attributes[CA_LOCATION] if trusts_file else None,
    )
    signed = SIGNING_SECRET in topic.attributes
    return Destination(
        url=url,
        peer=peer,
        fixed_headers=("Expect:", *_authorization(parts)),  # a large body, too, is sent without asking first
        signer=_checked(topic, SIGNING_SECRET, signer_from_text) if signed else None,
    )


def fits_headers(message: Message) -> bool:
    """Whether what goes into headers as it is stays in its line."""
    words = message.content_type + message.event_id + "".join(message.cloudevent)
    return words.isascii() and words.isprintable()


def header_value(text: str) -> str:
    """Percent-encoded as the HTTP binding of CloudEvents says (3.1.3.2): blanks, quotes, all beyond ASCII."""
    return quote(text.encode(errors="surrogatepass"), safe=_UNTOUCHED_IN_HEADERS)


def _checked(topic: Topic, attribute: str, read: Callable[[str], T]) -> T:
    try:
        return read(topic.attributes.get(attribute, ""))
    except ValueError as problem:  # not chained: some of them show the value
        reason = _REASONS.get(attribute) or f"is not valid: {problem}"
    raise ConfigError(f"{attribute} of topic {topic.name} {reason}")


def _endpoint(text: str) -> tuple[SplitResult, str]:
    parts = urlsplit(text)
    return parts, _plain_url(parts)


def _plain_url(parts: SplitResult) -> str:
    """The URL in ASCII, without userinfo and fragment; `ValueError` if it is no HTTP URL."""
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname:
        raise ValueError
    host = parts.hostname
    if not host.isascii():
        host = host.encode("idna").decode()
    if ":" in host:
        host = f"[{host}]"
    port = "" if parts.port is None else f":{parts.port}"
    query = f"?{_ascii(parts.query)}" if parts.query else ""
    return f"{parts.scheme}://{host}{port}{_ascii(parts.path) or '/'}{query}"


def _ascii(part: str) -> str:
    return quote(part, safe="!#$%&'()*+,/:;=?@[]~")


def _authorization(parts: SplitResult) -> tuple[str, ...]:
    if parts.username is None:
        return ()
    credentials = unquote_to_bytes(parts.username) + b":" + unquote_to_bytes(parts.password or "")
    return (f"{AUTHORIZATION}: Basic {base64.b64encode(credentials).decode()}",)
