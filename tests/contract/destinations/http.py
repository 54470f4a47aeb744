"""An HTTP endpoint, for the contract suite."""

from typing import ClassVar

from bucketwire.event.topic import Topic
from factories import topic
from services.http_endpoint import HttpEndpoint, Mode

OF_HTTP = frozenset({"host", "accept", "content-length"})
"""Headers that are in every request, whatever it is for."""


class HttpDestination:
    channel: ClassVar[str] = "http"
    failures: ClassVar[tuple[Mode, ...]] = (
        Mode.REFUSE,
        Mode.CLOSE_EARLY,
        Mode.CUT_SHORT,
        Mode.GARBAGE,
        Mode.DOWN,
    )

    def __init__(self) -> None:
        self._endpoint = HttpEndpoint()
        self._endpoint.start()

    def topic(self, **attributes: str) -> Topic:
        return topic(self._endpoint.url, **attributes)

    def behave(self, mode: Mode) -> None:
        self._endpoint.mode = mode

    def received(self) -> list[bytes]:
        return [event.body for event in self._endpoint.events()]

    def beside(self) -> list[dict[str, str]]:
        return [_own(event.headers) for event in self._endpoint.events()]

    def close(self) -> None:
        self._endpoint.stop()


def _own(headers: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name not in OF_HTTP}
