"""An answer: status, headers, and a body that is bytes at hand or a stream of them."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field


@dataclass(slots=True)
class Answer:
    """What goes back to the client. A stream has `content-length` among its headers."""

    status: int
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""
    stream: AsyncIterator[bytes] | None = None
