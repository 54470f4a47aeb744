"""Messages to an HTTP(S) endpoint: one POST each, many in flight over connections that stay open.

    messages --> client (lent by Connections) --> endpoint
       ^                   |
       +---- outcome ------+      until all are answered or the deadline has passed

A complete 2xx answer is `Delivered`, 413 and 431 are `Rejected`, all else is `Retry`: redirects too, as none
is followed. A body that is too long is not read to its end; the status before it counts. An answer that is
unfinished at the deadline is no answer, and its connection is closed. The rest of the messages are not tried,
and share the last outcome, when requests keep failing without any answer, and when the endpoint says after
which time it wants to be asked again.

The URL's password and the signing secrets are in no reason and no repr. A publisher holds no connection:
topics with the same peer share them, threads may publish at once, and a forked process opens its own.
"""

import time
from collections.abc import Callable, Sequence

import pycurl

from bucketwire.event.message import Message
from bucketwire.event.topic import Topic
from bucketwire.publish.base import Outcome, Rejected, Retry, no_answer
from bucketwire.publish.connections import Connections
from bucketwire.publish.guard import PRIVATE_NETWORK
from bucketwire.publish.http_client import CONNECT_SECONDS, IN_FLIGHT, HttpClient
from bucketwire.publish.http_outcome import outcome_of_answer, reason_of_failure
from bucketwire.publish.http_request import destination_from_topic, fits_headers
from bucketwire.publish.pem_files import UNUSABLE, UnusableFile

FAILURES_TO_GIVE_UP = 8
"""Failures in a row, with no answer of any status between them, that make an endpoint dead for this call."""


class HttpPublisher:
    """Posts to the topic's `push-endpoint`, by its attributes `verify-ssl`, `ca-location`, `signing-secret`.

    Raises `ConfigError` when one of them can never work. `clock` gives the time that is signed.
    """

    def __init__(
        self,
        topic: Topic,
        connections: Connections,
        connect_seconds: float = CONNECT_SECONDS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._destination = destination_from_topic(topic)
        self._connections = connections
        self._connect_seconds = connect_seconds
        self._clock = clock

    def publish(self, messages: Sequence[Message], deadline_seconds: float) -> list[Outcome]:
        """Post the messages; see `Publisher.publish`."""
        give_up_at = time.monotonic() + deadline_seconds
        batch = _Batch(messages)
        unanswered = no_answer(deadline_seconds)
        key = ("http", self._destination.peer, self._connect_seconds)
        try:
            with self._connections.alone(key, self._open_client) as client:
                self._send(client, batch, give_up_at)
        except UnusableFile:
            unanswered = Retry(UNUSABLE)
        return batch.all_outcomes(unanswered)

    def close(self) -> None:
        """Nothing to give up: the connections belong to all topics with this peer."""

    def _open_client(self) -> HttpClient:
        return HttpClient(
            self._destination.peer,
            self._connect_seconds,
            private_allowed=self._connections.private_allowed,
        )

    def _send(self, client: HttpClient, batch: "_Batch", give_up_at: float) -> None:
        """Until all are answered or the time is over."""
        client.refused = False
        try:
            self._start(client, batch)
            while batch.in_flight and (remaining := give_up_at - time.monotonic()) > 0:
                if _collect(client, batch):
                    self._start(client, batch)
                else:
                    client.wait(len(batch.in_flight), remaining)
        finally:
            for request in batch.in_flight:
                client.release(request)

    def _start(self, client: HttpClient, batch: "_Batch") -> None:
        """Put messages on the wire until enough are in flight."""
        destination, now = self._destination, self._clock()
        while len(batch.in_flight) < IN_FLIGHT and (place := batch.take()) is not None:
            message = batch.messages[place]
            request = client.start(destination.url, destination.headers(message, now), message.body)
            batch.in_flight[request] = place


class _Batch:
    """The messages of one call: which are in flight, and the outcomes so far."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.messages = messages
        self.in_flight: dict[pycurl.Curl, int] = {}
        self._outcomes: list[Outcome | None] = [None] * len(messages)
        self._rest: Retry | None = None
        """What the messages that were not tried share, once it is known that they will not be."""
        self._next = 0
        self._failures = 0

    def take(self) -> int | None:
        """The place of the next message to send, if there is one."""
        while self._rest is None and self._next < len(self.messages):
            place = self._next
            self._next += 1
            if fits_headers(self.messages[place]):
                return place
            self._outcomes[place] = Rejected("content type or event id is not fit for a header")
        return None

    def answered(self, request: pycurl.Curl, outcome: Outcome) -> None:
        """The endpoint has spoken, so it lives; it may have asked for a pause."""
        self._outcomes[self.in_flight.pop(request)] = outcome
        self._failures = 0
        if isinstance(outcome, Retry) and outcome.after_seconds is not None:
            self._rest = outcome

    def failed(self, request: pycurl.Curl, retry: Retry) -> None:
        """No answer will come for this one; after some of these none is expected for the others."""
        self._outcomes[self.in_flight.pop(request)] = retry
        self._failures += 1
        if self._failures >= FAILURES_TO_GIVE_UP:
            self._rest = retry

    def all_outcomes(self, unanswered: Retry) -> list[Outcome]:
        """One a message; what was in flight to the end is unanswered."""
        untried = self._rest or unanswered
        tried = [outcome or unanswered for outcome in self._outcomes[: self._next]]
        return tried + [untried] * (len(self.messages) - self._next)


def _collect(client: HttpClient, batch: _Batch) -> bool:
    """Note the outcomes of the requests that have ended; whether there are any."""
    before = len(batch.in_flight)
    for request, error in client.ended():
        if error in {pycurl.E_OK, pycurl.E_FILESIZE_EXCEEDED}:
            batch.answered(request, outcome_of_answer(request))
        else:
            batch.failed(request, Retry(_reason(client, request, error)))
        client.release(request)
    return len(batch.in_flight) < before


def _reason(client: HttpClient, request: pycurl.Curl, error: int) -> str:
    if error == pycurl.E_COULDNT_CONNECT and client.refused:
        return PRIVATE_NETWORK
    return reason_of_failure(request, error)
