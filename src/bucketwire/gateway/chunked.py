r"""The `aws-chunked` framing of a body, undone as it streams by.

    <size in hex>[;chunk-signature=<hex>]\r\n<bytes>\r\n ... 0[;chunk-signature=<hex>]\r\n[trailers]\r\n

Bytes come out before their chunk's signature is checked, so nothing may be committed before `finish` returns.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256

from bucketwire.errors import Denied, InvalidRequest
from bucketwire.gateway.caller import Chain

_MAX_LINE_BYTES = 1024
_MAX_TRAILER_BYTES = 16 * 1024
_SIZE = re.compile(rb"[0-9a-fA-F]{1,16}")
_SIGNATURE = b"chunk-signature="
_TRAILER_SIGNATURE = "x-amz-trailer-signature"


@dataclass(frozen=True, slots=True)
class Framing:
    """What kind of chunks a body has."""

    signed: bool
    trailer_names: tuple[str, ...]


class ChunkDecoder:
    """Takes the body as it arrives and gives the bytes inside."""

    def __init__(self, framing: Framing, chain: Chain | None) -> None:
        if framing.signed and chain is None:
            raise _bad_signature()
        self._framing = framing
        self._chain = chain if framing.signed else None
        self._pending = bytearray()
        self._left = 0
        """Bytes of the open chunk still to come."""
        self._in_chunk = False
        self._ended = False
        """Whether the last, empty chunk was seen: the rest is the trailer."""
        self._digest = sha256()
        self._signature = ""

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Take bytes of the framed body; gives the bytes of the object in them."""
        self._pending += piece
        while self._pending and not self._ended:
            if self._in_chunk:
                if self._left:
                    yield self._take_bytes()
                elif not self._close_chunk():
                    return
            elif not self._open_chunk():
                return
        if len(self._pending) > _MAX_TRAILER_BYTES:
            raise _malformed_trailer()

    def finish(self) -> dict[str, str]:
        """The body is over: the trailers, by name. Raises when it is not whole."""
        if not self._ended:
            raise incomplete_body()
        lines = [line.strip() for line in bytes(self._pending).split(b"\n")]
        trailers: dict[str, str] = {}
        for line in filter(None, lines):
            name, separator, value = line.partition(b":")
            if not separator:
                raise _malformed_trailer()
            trailers[name.decode("latin-1").lower()] = value.decode("latin-1").strip()
        self._check_trailers(trailers)
        return trailers

    def _take_bytes(self) -> bytes:
        taken = bytes(self._pending[: self._left])
        del self._pending[: self._left]
        self._left -= len(taken)
        if self._framing.signed:
            self._digest.update(taken)
        return taken

    def _open_chunk(self) -> bool:
        """Read a chunk's first line; False when it is not all there yet."""
        end = self._pending.find(b"\r\n", 0, _MAX_LINE_BYTES)
        if end < 0:
            if len(self._pending) >= _MAX_LINE_BYTES:
                raise _malformed_chunk()
            return False
        size, _, extension = bytes(self._pending[:end]).partition(b";")
        del self._pending[: end + 2]
        self._left = _chunk_size(size)
        self._signature = self._chunk_signature(extension)
        self._digest = sha256()
        self._in_chunk = self._left > 0
        if not self._in_chunk:
            self._ended = True
            self._check_chunk()
        return True

    def _close_chunk(self) -> bool:
        """Read the line's end behind a chunk; False when it is not all there yet."""
        if len(self._pending) < len(b"\r\n"):
            return False
        if self._pending[:2] != b"\r\n":
            raise _malformed_chunk()
        del self._pending[:2]
        self._in_chunk = False
        self._check_chunk()
        return True

    def _chunk_signature(self, extension: bytes) -> str:
        if not self._framing.signed:
            return ""
        if not extension.startswith(_SIGNATURE):
            raise _malformed_chunk()
        return extension.removeprefix(_SIGNATURE).decode("latin-1")

    def _check_chunk(self) -> None:
        if self._chain and not self._chain.accepts_chunk(self._digest.hexdigest(), self._signature):
            raise _bad_signature()

    def _check_trailers(self, trailers: dict[str, str]) -> None:
        signature = trailers.pop(_TRAILER_SIGNATURE, "")
        if set(trailers) != set(self._framing.trailer_names):
            raise _malformed_trailer()
        if self._chain and trailers:
            text = "".join(f"{name}:{value}\n" for name, value in trailers.items())
            if not self._chain.accepts_trailer(sha256(text.encode()).hexdigest(), signature):
                raise _bad_signature()


def incomplete_body() -> InvalidRequest:
    """The body ended before its declared length, or goes on behind it."""
    return InvalidRequest(
        "You did not provide the number of bytes specified by the Content-Length HTTP header",
        code="IncompleteBody",
    )


def _chunk_size(text: bytes) -> int:
    if _SIZE.fullmatch(text) is None:
        raise _malformed_chunk()
    return int(text, 16)


def _malformed_chunk() -> InvalidRequest:
    return InvalidRequest("The chunked body is not well-formed", code="InvalidRequest")


def _malformed_trailer() -> InvalidRequest:
    return InvalidRequest(
        "The request contained trailing data that was not well-formed"
        " or did not conform to our published schema.",
        code="MalformedTrailerError",
    )


def _bad_signature() -> Denied:
    return Denied(
        "The request signature we calculated does not match the signature you provided."
        " Check your key and signing method.",
        code="SignatureDoesNotMatch",
    )
