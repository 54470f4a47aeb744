"""The body of a request, as it streams in: unframed, measured, and checked against what the client promised.

    receive() -> pieces -> aws-chunked undone -> counted -> digests -> whoever takes the bytes

Small bodies stay in memory; of a large one there is never more than a piece.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from bucketwire.errors import InvalidRequest
from bucketwire.gateway.auth_v4 import valid_payload_digest
from bucketwire.gateway.caller import UNSIGNED, Caller
from bucketwire.gateway.checksums import PREFIX, BodyDigests, Expected, check_checksum, read_expected
from bucketwire.gateway.chunked import ChunkDecoder, Framing, incomplete_body
from bucketwire.gateway.protocol.faults import not_implemented, slow_down
from bucketwire.gateway.request import Request

PIECE_BYTES = 512 * 1024
MAX_OBJECT_BYTES = 5 * 1024**3
MAX_DOCUMENT_BYTES = 1024 * 1024
MAX_LIST_BYTES = 4 * MAX_DOCUMENT_BYTES
"""Of a document that lists 10,000 parts with their checksums, or 1,000 long keys."""
LARGE_DOCUMENT_BYTES = 64 * 1024
"""A document of more is read in a thread."""
DOCUMENT_SECONDS = 60.0
"""A document, or the fields of a form, must be here within this time: nobody has asked yet who sends it."""

_FRAMINGS = {
    "STREAMING-AWS4-HMAC-SHA256-PAYLOAD": (True, False),
    "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER": (True, True),
    "STREAMING-UNSIGNED-PAYLOAD-TRAILER": (False, True),
}
"""(signed, trailers) by what stands for the body in the signature."""
LISTS = frozenset({"CompleteMultipartUpload", "DeleteObjects"})
_OF_AN_OBJECT = "CompleteMultipartUpload"
"""The operation whose checksum headers speak of the object, and not of the document."""


@dataclass(frozen=True, slots=True)
class Verified:
    """What a body turned out to be."""

    size_bytes: int
    etag: str
    checksums: dict[str, str]


class ObjectBody:
    """The bytes of an object on their way in. Nothing is received before the first piece is asked for."""

    def __init__(self, request: Request, caller: Caller, algorithm: str | None = None) -> None:
        """`algorithm` is of the checksum that is wanted, whether the client gives it or not."""
        self._request = request
        framing = _framing(request, caller.payload)
        self.size_bytes = _declared_size(request, framed=framing is not None)
        sha256 = caller.payload if valid_payload_digest(caller.payload) else None
        expected = read_expected(request.headers, framing.trailer_names if framing else (), sha256)
        self._expected = _with_checksum(expected, algorithm)
        self._decoder = ChunkDecoder(framing, caller.chain) if framing else None
        self._digests = BodyDigests(self._expected)

    async def pieces(self, piece_bytes: int = PIECE_BYTES) -> AsyncIterator[bytes]:
        """The object's bytes, in pieces of about that size; raises unless they are as many as declared."""
        received, buffer = 0, bytearray()
        async for arrived in self._unframed():
            received += len(arrived)
            if received > self.size_bytes:
                raise incomplete_body()
            buffer += arrived
            if len(buffer) >= piece_bytes:
                yield bytes(buffer)
                buffer = bytearray()
        if received != self.size_bytes:
            raise incomplete_body()
        if buffer:
            yield bytes(buffer)

    def digest(self, piece: bytes) -> None:
        """Take a piece into the digests: not on the event loop, if it is large."""
        self._digests.update(piece)

    def verified(self) -> Verified:
        """What came, once all pieces have; raises `InvalidRequest` when it is not what was promised."""
        etag, checksums = self._digests.verified(self._expected)
        return Verified(self.size_bytes, etag, checksums)

    async def _unframed(self) -> AsyncIterator[bytes]:
        if self._decoder is None:
            async for arrived in arriving(self._request):
                yield arrived
            return
        async for arrived in arriving(self._request):
            for piece in self._decoder.feed(arrived):
                yield piece
        self._expected = _with_trailer(self._expected, self._decoder.finish())


async def arriving(request: Request) -> AsyncIterator[bytes]:
    """The body as it arrives; raises when the client goes away before the end."""
    while not request.body_finished:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise incomplete_body()
        if message.get("body"):
            yield message["body"]


@asynccontextmanager
async def soon() -> AsyncIterator[None]:
    """What is received here must come in time."""
    try:
        async with asyncio.timeout(DOCUMENT_SECONDS):
            yield
    except TimeoutError as problem:
        raise InvalidRequest("The request did not come in time.", code="RequestTimeout") from problem


@asynccontextmanager
async def place_among(strangers: asyncio.Semaphore) -> AsyncIterator[None]:
    """What is received here has not been signed; `Unavailable` with SlowDown when all places are taken."""
    if strangers.locked():
        raise slow_down()
    async with strangers:
        yield


def is_large(request: Request) -> bool:
    """Whether the body is a large one for a document, or may be."""
    return request.has_body and (request.content_length or MAX_LIST_BYTES) > LARGE_DOCUMENT_BYTES


async def receive_document(request: Request, payload: str | None) -> bytes:
    """A whole body of a document or a form, which must be small. It is still to be verified."""
    most_bytes = MAX_LIST_BYTES if request.operation in LISTS else MAX_DOCUMENT_BYTES
    if (request.content_length or 0) > most_bytes:
        raise _document_too_large(most_bytes)
    if payload is not None and payload.startswith("STREAMING-"):
        raise not_implemented(f"x-amz-content-sha256 {payload} for a document")
    body = bytearray()
    async with soon():
        async for arrived in arriving(request):
            body += arrived
            if len(body) > most_bytes:
                raise _document_too_large(most_bytes)
    return bytes(body)


def verify_document(request: Request, payload: str | None, document: bytes) -> None:
    """Raises unless it is what the client promised: not on the event loop, if it is large."""
    sha256 = payload if payload is not None and valid_payload_digest(payload) else None
    headers = {"content-md5": md5} if (md5 := request.headers.get("content-md5")) is not None else {}
    if request.operation != _OF_AN_OBJECT:
        headers = request.headers
    expected: Expected = read_expected(headers, (), sha256)
    digests = BodyDigests(expected)
    digests.update(document)
    digests.verified(expected)


def check_payload_name(payload: str) -> None:
    """Raises unless the text is a digest or one of the words that may stand for a body."""
    if payload == UNSIGNED or payload in _FRAMINGS or valid_payload_digest(payload):
        return
    if payload.startswith("STREAMING-"):
        raise not_implemented(f"x-amz-content-sha256 {payload}")
    raise InvalidRequest(
        "x-amz-content-sha256 must be UNSIGNED-PAYLOAD, a STREAMING- word, or a valid sha256 value.",
        code="InvalidArgument",
        fields={"ArgumentName": "x-amz-content-sha256", "ArgumentValue": payload},
    )


def _framing(request: Request, payload: str) -> Framing | None:
    if payload not in _FRAMINGS:
        return None
    signed, trailers = _FRAMINGS[payload]
    names = request.headers.get("x-amz-trailer", "") if trailers else ""
    return Framing(signed, tuple(name for part in names.lower().split(",") if (name := part.strip())))


def _declared_size(request: Request, *, framed: bool) -> int:
    """The object's size as the client tells it."""
    name = "x-amz-decoded-content-length" if framed else "content-length"
    text = request.headers.get(name)
    if text is None:
        raise InvalidRequest("You must provide the Content-Length HTTP header.", code="MissingContentLength")
    if not (text.isascii() and text.isdecimal()):
        raise InvalidRequest(
            f"Provided {name} is not valid",
            code="InvalidArgument",
            fields={"ArgumentName": name, "ArgumentValue": text},
        )
    if len(text) > len(str(MAX_OBJECT_BYTES)) or int(text) > MAX_OBJECT_BYTES:
        raise InvalidRequest(
            "Your proposed upload exceeds the maximum allowed size",
            code="EntityTooLarge",
            fields={"ProposedSize": text, "MaxSizeAllowed": str(MAX_OBJECT_BYTES)},
        )
    return int(text)


def _with_checksum(expected: Expected, algorithm: str | None) -> Expected:
    if algorithm is None or expected.algorithm == algorithm:
        return expected
    if expected.algorithm is not None:
        raise InvalidRequest(
            f"Checksum Type mismatch occurred, expected checksum Type: {algorithm},"
            f" actual checksum Type: {expected.algorithm}"
        )
    return replace(expected, algorithm=algorithm, promised=False)


def _with_trailer(expected: Expected, trailers: dict[str, str]) -> Expected:
    """What the trailer adds to what the headers promised."""
    if expected.algorithm is None or expected.checksum is not None or not expected.promised:
        return expected
    text = trailers.get(PREFIX + expected.algorithm, "")
    check_checksum(expected.algorithm, text)
    return replace(expected, checksum=text)


def _document_too_large(most_bytes: int) -> InvalidRequest:
    return InvalidRequest(
        f"Your request was too big: up to {most_bytes} bytes", code="MaxMessageLengthExceeded"
    )
