"""Messages to an HTTP(S) endpoint: one POST each, many in flight over connections that stay open.

    messages --> idle handles --> multi --> endpoint
                      ^             |
                      +-- outcome --+      until all are answered or the deadline has passed

A complete 2xx answer is `Delivered`, 413 is `Rejected`, everything else is `Retry`: redirects too, as none
is followed. A body that is too long is not read to its end; the status before it counts. An answer that is
unfinished at the deadline is no answer, and its connection is closed. When requests keep failing without
any answer, the rest of the messages share the last failure and are not tried.

The URL, which may hold a password, is in no reason and no repr; nor are libcurl's own error texts passed on.
A publisher serves one thread at a time; any number of publishers may be at work in one process. One that was
made before a fork must not be used after it, in either process: its connections would be shared.
"""

import errno
import ssl
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import SplitResult, quote, unquote_to_bytes, urlsplit

import pycurl

from bucketwire import __version__
from bucketwire.errors import ConfigError
from bucketwire.event.message import Message
from bucketwire.event.topic import Topic
from bucketwire.publish.base import Delivered, Outcome, Rejected, Retry
from bucketwire.publish.connections import Connections

IN_FLIGHT = 64
"""Requests, and so connections, open at once to one endpoint."""
ANSWER_LIMIT_BYTES = 64 * 1024
"""An answer's body is thrown away; one longer than this is not even read."""
FAILURES_TO_GIVE_UP = 8
"""Failures in a row, with no answer of any status between them, that make an endpoint dead for this call."""

_BLIND_WAIT_SECONDS = 0.001
_CLOSE_SECONDS = 0.5
_DELIVERED = Delivered()
_TOO_LARGE = 413

_REASONS = {
    pycurl.E_COULDNT_RESOLVE_HOST: "host name not found",
    pycurl.E_GOT_NOTHING: "connection closed without an answer",
    pycurl.E_PARTIAL_FILE: "answer cut short",
    pycurl.E_RECV_ERROR: "connection lost",
    pycurl.E_SEND_ERROR: "connection lost",
    pycurl.E_SSL_CONNECT_ERROR: "TLS handshake failed",
    pycurl.E_SSL_CACERT_BADFILE: "the trusted certificates cannot be read",
    pycurl.E_UNSUPPORTED_PROTOCOL: "the answer is not HTTP",
    pycurl.E_FTP_WEIRD_SERVER_REPLY: "the answer is not HTTP",
}
_CONNECT_REASONS = {
    errno.ECONNREFUSED: "connection refused",
    errno.EHOSTUNREACH: "no route to the host",
    errno.ENETUNREACH: "no route to the host",
    errno.ETIMEDOUT: "connection timed out",
}
_CERTIFICATE_REASONS = {  # by OpenSSL's X509_V_ERR codes; libcurl leaves 1 when it found the name wrong
    1: "the certificate is for another host name",
    9: "the certificate is not valid yet",
    10: "the certificate has expired",
    18: "the certificate is self-signed",
    19: "the certificate is of an unknown authority",
    20: "the certificate is of an unknown authority",
    21: "the certificate is of an unknown authority",
}


class HttpPublisher:
    """Posts to the topic's `push-endpoint`. `verify-ssl` set to `false` trusts any certificate.

    Raises `ConfigError` when the endpoint is no usable URL.
    """

    def __init__(self, topic: Topic, connections: Connections, in_flight: int = IN_FLIGHT) -> None:  # noqa: ARG002
        self._destination = _destination_from_topic(topic)
        self._in_flight = in_flight
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_MAXCONNECTS, in_flight)
        self._idle: list[pycurl.Curl] = []
        self._closed = False

    def publish(self, messages: Sequence[Message], deadline_seconds: float) -> list[Outcome]:
        """Post the messages; see `Publisher.publish`."""
        give_up_at = time.monotonic() + deadline_seconds
        batch = _Batch(messages)
        try:
            self._start(batch)
            while batch.in_flight and (remaining := give_up_at - time.monotonic()) > 0:
                self._multi.perform()
                if self._collect(batch):
                    self._start(batch)
                else:
                    self._wait(batch, remaining)
        finally:
            self._abandon(batch)
        unanswered = batch.dead or Retry(f"no answer within {deadline_seconds:g} s")
        return [outcome or unanswered for outcome in batch.outcomes]

    def close(self) -> None:
        """Close the connections, without waiting, as libcurl would, for a host name still being looked up."""
        if self._closed:
            return
        self._closed = True
        for request in self._idle:
            request.close()
        self._idle.clear()
        closing = threading.Thread(target=self._multi.close, name="http-publisher-close", daemon=True)
        closing.start()
        closing.join(_CLOSE_SECONDS)

    def _start(self, batch: "_Batch") -> None:
        """Put messages on the wire until enough are in flight."""
        while len(batch.in_flight) < self._in_flight and (place := batch.take()) is not None:
            message = batch.messages[place]
            request = self._idle.pop() if self._idle else self._destination.request()
            request.setopt(
                pycurl.HTTPHEADER,
                (
                    f"Content-Type: {message.content_type}",
                    f"Bucketwire-Event-Id: {message.event_id}",
                    "Expect:",  # a large body, too, is sent without asking first
                ),
            )
            request.setopt(pycurl.POSTFIELDS, message.body)
            self._multi.add_handle(request)
            batch.in_flight[request] = place

    def _collect(self, batch: "_Batch") -> int:
        """Note the outcomes of the requests that have ended; how many these are."""
        _, answered, failed = self._multi.info_read(self._in_flight)
        for request in answered:
            batch.answered(request, _outcome_of_answer(request))
            self._release(request)
        for request, error, _ in failed:
            if error == pycurl.E_FILESIZE_EXCEEDED:
                batch.answered(request, _outcome_of_answer(request))
            else:
                batch.failed(request, Retry(_reason_of_failure(request, error)))
            self._release(request)
        return len(answered) + len(failed)

    def _release(self, request: pycurl.Curl) -> None:
        self._multi.remove_handle(request)
        self._idle.append(request)

    def _wait(self, batch: "_Batch", remaining_seconds: float) -> None:
        """Block until a socket is ready, libcurl wants its turn, or the time is over.

        select() cannot see a socket numbered 1024 or above, nor a name that is being looked up: while there
        is a request of this kind, look again soon instead.
        """
        readable, writable, _ = self._multi.fdset()
        if len({*readable, *writable}) < len(batch.in_flight):
            time.sleep(min(remaining_seconds, _BLIND_WAIT_SECONDS))
            return
        turn_ms = self._multi.timeout()
        self._multi.select(remaining_seconds if turn_ms < 0 else min(remaining_seconds, turn_ms / 1000))

    def _abandon(self, batch: "_Batch") -> None:
        """Close the connections of what is still in flight."""
        for request in batch.in_flight:
            self._release(request)


class _Batch:
    """The messages of one call: which are in flight, and the outcomes so far."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.messages = messages
        self.outcomes: list[Outcome | None] = [None] * len(messages)
        self.in_flight: dict[pycurl.Curl, int] = {}
        self.dead: Retry | None = None
        """Why the endpoint is taken for dead, once it is."""
        self._next = 0
        self._failures = 0

    def take(self) -> int | None:
        """The place of the next message to send, if there is one."""
        while self.dead is None and self._next < len(self.messages):
            place = self._next
            self._next += 1
            if _sendable(self.messages[place]):
                return place
            self.outcomes[place] = Rejected("content type or event id is not fit for a header")
        return None

    def answered(self, request: pycurl.Curl, outcome: Outcome) -> None:
        """The endpoint has spoken, so it lives."""
        self.outcomes[self.in_flight.pop(request)] = outcome
        self._failures = 0

    def failed(self, request: pycurl.Curl, retry: Retry) -> None:
        """No answer will come for this one; after some of these none is expected for the others."""
        self.outcomes[self.in_flight.pop(request)] = retry
        self._failures += 1
        if self._failures >= FAILURES_TO_GIVE_UP:
            self.dead = retry


@dataclass(frozen=True, slots=True)
class _Destination:
    """A topic's endpoint, taken apart: the URL here holds no password."""

    url: str
    username: bytes | None = field(repr=False)
    password: bytes = field(repr=False)
    verifies: bool

    def request(self) -> pycurl.Curl:
        """A new handle, with all that is the same for each request."""
        request = pycurl.Curl()
        request.setopt(pycurl.URL, self.url)
        request.setopt(pycurl.PATH_AS_IS, 1)
        request.setopt(pycurl.POST, 1)
        request.setopt(pycurl.NOSIGNAL, 1)
        request.setopt(pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS)
        request.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1)
        request.setopt(pycurl.PROXY, "")
        request.setopt(pycurl.FOLLOWLOCATION, 0)
        request.setopt(pycurl.USERAGENT, f"bucketwire/{__version__}")
        request.setopt(pycurl.WRITEFUNCTION, _throw_away)
        request.setopt(pycurl.MAXFILESIZE, ANSWER_LIMIT_BYTES)
        self._authenticate(request)
        self._trust(request)
        return request

    def _authenticate(self, request: pycurl.Curl) -> None:
        if self.username is not None:
            request.setopt(pycurl.HTTPAUTH, pycurl.HTTPAUTH_BASIC)
            request.setopt(pycurl.USERNAME, self.username)
            request.setopt(pycurl.PASSWORD, self.password)

    def _trust(self, request: pycurl.Curl) -> None:
        """Trust whom Python trusts; libcurl may come with paths of the machine it was built on."""
        if not self.verifies:
            request.setopt(pycurl.SSL_VERIFYPEER, 0)
            request.setopt(pycurl.SSL_VERIFYHOST, 0)
            return
        paths = ssl.get_default_verify_paths()
        if paths.cafile:
            request.setopt(pycurl.CAINFO, paths.cafile)
        if paths.capath:
            request.setopt(pycurl.CAPATH, paths.capath)


def _destination_from_topic(topic: Topic) -> _Destination:
    try:
        parts = urlsplit(topic.endpoint)
        url = _plain_url(parts)
    except ValueError:  # its text may show the URL
        raise ConfigError(f"push-endpoint of topic {topic.name} is not a valid URL") from None
    return _Destination(
        url=url,
        username=None if parts.username is None else unquote_to_bytes(parts.username),
        password=unquote_to_bytes(parts.password or ""),
        verifies=topic.attributes.get("verify-ssl", "true").lower() != "false",
    )


def _plain_url(parts: SplitResult) -> str:
    """The URL in ASCII, without userinfo and fragment; `ValueError` if it is no HTTP URL."""
    if parts.scheme not in {"http", "https"} or not parts.hostname:
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


def _sendable(message: Message) -> bool:
    """Whether what goes into headers stays in its line."""
    fields = message.content_type + message.event_id
    return fields.isascii() and fields.isprintable()


def _throw_away(_: bytes) -> None:
    """The body of an answer is of no interest."""


def _outcome_of_answer(request: pycurl.Curl) -> Outcome:
    status = request.getinfo(pycurl.RESPONSE_CODE)
    if 200 <= status < 300:  # noqa: PLR2004 the range of success
        return _DELIVERED
    if status == _TOO_LARGE:
        return Rejected(f"HTTP {status}")
    return Retry(f"HTTP {status}", request.getinfo(pycurl.RETRY_AFTER) or None)


def _reason_of_failure(request: pycurl.Curl, error: int) -> str:
    if error == pycurl.E_COULDNT_CONNECT:
        return _CONNECT_REASONS.get(request.getinfo(pycurl.OS_ERRNO), "no connection")
    if error == pycurl.E_PEER_FAILED_VERIFICATION:
        code = request.getinfo(pycurl.SSL_VERIFYRESULT)
        return _CERTIFICATE_REASONS.get(code, "the certificate is not trusted")
    return _REASONS.get(error, f"libcurl error {error}")
