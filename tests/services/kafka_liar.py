"""A Kafka broker that says whatever a test likes about where its cluster listens, and hears what comes of it.

    with KafkaLiar(lambda liar: [(1, "127.1", liar.port), (-5, "127.0.0.1", liar.hidden.port)]) as liar:
        liar.port                the broker that a topic is given
        liar.hidden.questions    what was asked of the one that should be left alone, by API key

It knows just enough of the protocol for a producer to come as far as sending; then it hangs up.
"""

import socketserver
import struct
from collections.abc import Callable, Sequence
from threading import Thread
from types import TracebackType
from typing import Any, Self

Broker = tuple[int, str, int]
"""Node id, host and port, as they are advertised."""

_PRODUCE, _METADATA, _VERSIONS, _PRODUCER_ID = 0, 3, 18, 22
_SPOKEN = [(_PRODUCE, 0, 7), (_METADATA, 0, 1), (_VERSIONS, 0, 0), (_PRODUCER_ID, 0, 0)]
_UNSUPPORTED_VERSION = 35


class KafkaLiar:
    """Two listeners of one broker; the last that is advertised leads every topic."""

    def __init__(self, advertised: "Callable[[KafkaLiar], Sequence[Broker]]") -> None:
        self._open, self.hidden = _Listener(self), _Listener(self)
        self.port = self._open.port
        self.brokers = advertised(self)

    def __enter__(self) -> Self:
        for listener in (self._open, self.hidden):
            Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for listener in (self._open, self.hidden):
            listener.shutdown()
            listener.server_close()

    def answer(self, api: int, version: int, question: bytes) -> bytes | None:
        """The body of the answer; None to hang up."""
        if api == _VERSIONS:
            error = 0 if version == 0 else _UNSUPPORTED_VERSION
            return struct.pack(">hi", error, len(_SPOKEN)) + b"".join(
                struct.pack(">hhh", *each) for each in _SPOKEN
            )
        if api == _METADATA:
            return self._metadata(_strings(question))
        return struct.pack(">ihqh", 0, 0, 7, 0) if api == _PRODUCER_ID else None

    def _metadata(self, topics: Sequence[bytes]) -> bytes:
        leader = self.brokers[-1][0]
        brokers = [
            struct.pack(">i", node) + _string(host.encode()) + struct.pack(">ih", port, -1)
            for node, host, port in self.brokers
        ]
        partition = struct.pack(">hiiiiii", 0, 0, leader, 1, leader, 1, leader)
        found = [
            struct.pack(">h", 0) + _string(name) + struct.pack(">?i", False, 1) + partition for name in topics
        ]
        controller = struct.pack(">i", self.brokers[0][0])
        return _array(brokers) + controller + _array(found)


class _Listener(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def __init__(self, liar: KafkaLiar) -> None:
        super().__init__(("127.0.0.1", 0), _Talk)
        self.liar = liar
        self.port: int = self.server_address[1]
        self.questions: list[int] = []


class _Talk(socketserver.StreamRequestHandler):
    server: Any

    def handle(self) -> None:
        while size := self.rfile.read(4):
            question = self.rfile.read(struct.unpack(">i", size)[0])
            api, version, number, client = struct.unpack(">hhih", question[:10])
            self.server.questions.append(api)
            answer = self.server.liar.answer(api, version, question[10 + client :])
            if answer is None:
                return
            self.wfile.write(struct.pack(">ii", len(answer) + 4, number) + answer)


def _string(text: bytes) -> bytes:
    return struct.pack(">h", len(text)) + text


def _array(items: Sequence[bytes]) -> bytes:
    return struct.pack(">i", len(items)) + b"".join(items)


def _strings(array: bytes) -> list[bytes]:
    found = []
    (count,), rest = struct.unpack(">i", array[:4]), array[4:]
    for _ in range(count):  # -1 of them are all, of which there are none
        size = struct.unpack(">h", rest[:2])[0]
        found.append(rest[2 : 2 + size])
        rest = rest[2 + size :]
    return found
