"""A request as the gateway sees it: the head of HTTP, decoded once, and the stream of its body."""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl

from bucketwire.errors import InvalidRequest

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_MAX_PARAMETERS = 200


class Request:
    """The head of a request. Names of headers are in lower case; repeated ones are joined by commas."""

    def __init__(self, scope: Scope, receive: Receive, request_id: str) -> None:
        self.id = request_id
        self.operation = "-"
        """The name of the operation, once it is known."""
        self.method: str = scope["method"]
        self.scheme: str = scope.get("scheme", "http")
        self.raw_path: str = scope["raw_path"].decode("ascii", "replace")
        self.query_string: str = scope["query_string"].decode("ascii", "replace")
        self._raw_headers: list[tuple[bytes, bytes]] = scope["headers"]
        self.headers = _headers(self._raw_headers, _text)
        self.source_ip: str = client[0] if (client := scope.get("client")) else "-"
        self.body_touched = False
        self.body_finished = False
        self._receive = receive

    @cached_property
    def headers_as_sent(self) -> dict[str, str]:
        """Likewise, with bytes that are no UTF-8 as surrogates: so they can be made bytes again."""
        return _headers(self._raw_headers, lambda value: value.decode(errors="surrogateescape"))

    def is_utf8(self, name: str) -> bool:
        """Whether a header, if it was sent at all, is UTF-8: otherwise it was read as Latin-1."""
        text = self.headers.get(name)
        return text is None or self.headers_as_sent.get(name, text) == text

    @cached_property
    def pairs(self) -> list[tuple[str, str]]:
        """The query, decoded, in the order it was sent."""
        if not self.query_string:
            return []
        try:
            return parse_qsl(
                self.query_string, keep_blank_values=True, errors="strict", max_num_fields=_MAX_PARAMETERS
            )
        except ValueError as problem:
            raise InvalidRequest("Couldn't parse the specified URI.", code="InvalidURI") from problem

    @cached_property
    def parameters(self) -> Mapping[str, str]:
        """The query by name; of a repeated one, the first."""
        return dict(reversed(self.pairs))

    @property
    def content_length(self) -> int | None:
        """The length of the body as declared; None if it is not."""
        text = self.headers.get("content-length", "")
        return int(text) if text.isdecimal() and text.isascii() else None

    @property
    def has_body(self) -> bool:
        """Whether the client means to send bytes behind the head."""
        return bool(self.content_length) or "transfer-encoding" in self.headers

    async def receive(self) -> Message:
        """The next ASGI message. The first call lets a client that waits for `100 Continue` go on."""
        self.body_touched = True
        message = await self._receive()
        if not message.get("more_body", False):
            self.body_finished = True
        return message


def _headers(raw: list[tuple[bytes, bytes]], text: Callable[[bytes], str]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name_bytes, value_bytes in raw:
        name = name_bytes.decode("latin-1").lower()
        value = text(value_bytes.strip(b" \t"))
        headers[name] = f"{headers[name]},{value}" if name in headers else value
    return headers


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")
