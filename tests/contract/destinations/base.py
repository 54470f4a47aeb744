"""What the contract suite of publishers needs of a destination: a real server that can be made to fail."""

from typing import ClassVar, Protocol

from bucketwire.event.topic import Topic
from services.http_endpoint import Mode


class Destination(Protocol):
    """A real destination. Making it starts the server, or skips the test with how to get it."""

    channel: ClassVar[str]
    """What the AsyncAPI document calls it."""
    failures: ClassVar[tuple[Mode, ...]]
    """The modes, among those of `Mode`, in which it acknowledges nothing and which can be brought about."""

    def topic(self, **attributes: str) -> Topic:
        """A topic that leads to it."""
        ...

    def behave(self, mode: Mode) -> None:
        """Do this from now on. OK, SLOW, HANG and DOWN are for every destination."""
        ...

    def received(self) -> list[bytes]:
        """The bodies that it has acknowledged, in order of arrival; waits a moment for what is on its way."""
        ...

    def beside(self) -> list[dict[str, str]]:
        """The headers or attributes of all of them, in the same order, without those of the transport."""
        ...

    def close(self) -> None:
        """Stop it."""
        ...
