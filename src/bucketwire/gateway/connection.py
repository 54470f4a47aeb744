"""A client's connection: uvicorn's HTTP protocol, with the limits that a server on the open net needs.

- A head is bounded in size and in time; a body that stalls is given up, as is an answer that nobody reads.
- What cannot be parsed is told in an S3 error document. When it stands behind a request that is being
  answered, that answer goes out first and the connection is closed after it.
- A client that ends its side in the middle of a body still gets an answer.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from bucketwire.gateway.protocol.faults import s3_fault

MAX_HEAD_BYTES = 64 * 1024
SILENCE_SECONDS = 30.0
"""How long a client may say nothing in the middle of a request, or read nothing of an answer."""


class GatewayProtocol(HttpToolsProtocol):
    """One connection."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head_bytes = 0
        self._in_head = True
        self._has_fragment = False
        self._silence: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Give the client its time for a first request."""
        super().connection_made(transport)
        self._listen()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clocks."""
        self._stop_listening()
        self._stop_watching()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Bound the head, and start the clock anew."""
        self._listen()
        if self._in_head:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._in_head and self._head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
            self._refuse("RequestHeaderSectionTooLarge", "The head of the request is too large.")

    def eof_received(self) -> bool:  # type: ignore[override]
        """Let a request that was cut short be answered: its body ends here."""
        if not self._is_answering():
            return False
        self.cycle.keep_alive = False
        self.cycle.more_body = False
        self.cycle.message_event.set()
        return True

    def pause_writing(self) -> None:
        """The client does not keep up with the answer: look whether it reads at all."""
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        """It does."""
        self._stop_watching()
        super().resume_writing()

    def on_message_begin(self) -> None:
        """A new head begins."""
        self._in_head = True
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Refuse a fragment, which uvicorn would cut off: no target has one (RFC 9112, section 3.2)."""
        if b"#" in url:
            self._has_fragment = True
            raise ValueError("a fragment in the target")
        super().on_url(url)

    def on_headers_complete(self) -> None:
        """The head has ended."""
        self._in_head = False
        self._head_bytes = 0
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """From here uvicorn's clock for idle connections runs."""
        self._stop_listening()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """What came is not HTTP."""
        if self._is_answering() and not self.cycle.more_body:
            self.cycle.keep_alive = False
            self.flow.pause_reading()
            return
        if self._has_fragment:
            self._refuse("InvalidURI", "Couldn't parse the specified URI.")
        else:
            self._refuse("BadRequest", msg)

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _listen(self) -> None:
        self._stop_listening()
        self._silence = self.loop.call_later(SILENCE_SECONDS, self._give_up)

    def _stop_listening(self) -> None:
        if self._silence is not None:
            self._silence.cancel()
            self._silence = None

    def _watch(self) -> None:
        left = self.transport.get_write_buffer_size()
        self._unread = self.loop.call_later(SILENCE_SECONDS, self._abort_unless_read, left)

    def _stop_watching(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _abort_unless_read(self, before: int) -> None:
        if self.transport.get_write_buffer_size() < before:
            self._watch()
        else:
            self.transport.abort()

    def _give_up(self) -> None:
        """Nothing was heard for long: that is a fault only of a client that owes the rest of a request."""
        if self.transport.is_closing() or (self._is_answering() and not self.cycle.more_body):
            return
        if self._is_answering() and self.flow.read_paused:
            self._listen()  # it is us who do not read
            return
        message = "Your socket connection to the server was not read from or written to within the time-out."
        self._refuse("RequestTimeout", message)

    def _refuse(self, code: str, message: str) -> None:
        """Answer without the application, and close."""
        if not (self._is_answering() and self.cycle.response_started):
            body = s3_fault(code, message, {}, resource="", request_id="", host_id="")
            head = (
                "HTTP/1.1 400 Bad Request\r\ncontent-type: application/xml\r\n"
                f"content-length: {len(body)}\r\n"
                "connection: close\r\n\r\n"
            )
            self.transport.write(head.encode() + body)
        self.transport.close()
