"""Digests of a body: what the client said they are, and what they turned out to be."""

import binascii
import hashlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from awscrt import checksums
from awscrt.checksums import XXHash

from bucketwire.errors import InvalidRequest

PREFIX = "x-amz-checksum-"
_MD5_BYTES = 16


class Digest(Protocol):
    """A running digest."""

    def update(self, piece: bytes, /) -> None:
        """Take the next bytes."""
        ...

    def digest(self) -> bytes:
        """The digest of all bytes so far."""
        ...


class _Crc:
    """A running CRC."""

    def __init__(self, step: Callable[[bytes, int], int], size_bytes: int) -> None:
        self._step = step
        self._size_bytes = size_bytes
        self._value = 0

    def update(self, piece: bytes, /) -> None:
        self._value = self._step(piece, self._value)

    def digest(self) -> bytes:
        return self._value.to_bytes(self._size_bytes, "big")


class _XxHash:
    """A running XXHash."""

    def __init__(self, state: XXHash) -> None:
        self._state = state

    def update(self, piece: bytes, /) -> None:
        self._state.update(piece)

    def digest(self) -> bytes:
        return bytes(self._state.finalize())


def _md5() -> Digest:
    return hashlib.md5(usedforsecurity=False)


def _sha1() -> Digest:
    return hashlib.sha1(usedforsecurity=False)


ALGORITHMS: dict[str, tuple[int, Callable[[], Digest]]] = {
    "crc32": (4, lambda: _Crc(checksums.crc32, 4)),
    "crc32c": (4, lambda: _Crc(checksums.crc32c, 4)),
    "crc64nvme": (8, lambda: _Crc(checksums.crc64nvme, 8)),
    "sha1": (20, _sha1),
    "sha256": (32, hashlib.sha256),
    "sha512": (64, hashlib.sha512),
    "md5": (16, _md5),
    "xxhash64": (8, lambda: _XxHash(XXHash.new_xxhash64())),
    "xxhash3": (8, lambda: _XxHash(XXHash.new_xxhash3_64())),
    "xxhash128": (16, lambda: _XxHash(XXHash.new_xxhash3_128())),
}
"""(size in bytes, how to make one) by the name that stands in the header."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What the client says of its body."""

    md5: bytes | None = None
    sha256: str | None = None
    """In hexadecimal, from the signature."""
    algorithm: str | None = None
    """Of the checksum that stands in a header, or will in the trailer."""
    checksum: str | None = None
    """The checksum's value in base64, once known."""
    promised: bool = True
    """Whether the checksum must be as the client says; else it is only kept."""


def read_expected(headers: Mapping[str, str], trailer_names: tuple[str, ...], sha256: str | None) -> Expected:
    """What the headers promise; raises `InvalidRequest` when they cannot be meant."""
    given = {
        name.removeprefix(PREFIX): text
        for name, text in headers.items()
        if name.startswith(PREFIX) and name.removeprefix(PREFIX) not in {"type", "algorithm", "mode"}
    }
    trailing = [name.removeprefix(PREFIX) for name in trailer_names if name.startswith(PREFIX)]
    _check_algorithms(headers, [*given, *trailing])
    for algorithm, text in given.items():
        check_checksum(algorithm, text)
    named = next(iter([*given, *trailing]), None)
    return Expected(_read_md5(headers), sha256, named, given.get(named) if named else None)


def check_checksum(algorithm: str, text: str) -> None:
    """Raises when the text is no checksum of the algorithm."""
    if _decoded(text, ALGORITHMS[algorithm][0]) is None:
        raise InvalidRequest(f"Value for {PREFIX}{algorithm} header is invalid.")


def new_digest(algorithm: str) -> Digest:
    """A digest of no bytes yet."""
    return ALGORITHMS[algorithm][1]()


class BodyDigests:
    """The running digests of a body. MD5 is always among them: it is the object's ETag."""

    def __init__(self, expected: Expected) -> None:
        self._md5 = _md5()
        self._sha256 = hashlib.sha256() if expected.sha256 is not None else None
        self._checksum = new_digest(expected.algorithm) if expected.algorithm else None

    def update(self, piece: bytes) -> None:
        """Take the next bytes of the body."""
        self._md5.update(piece)
        if self._sha256 is not None:
            self._sha256.update(piece)
        if self._checksum is not None:
            self._checksum.update(piece)

    def verified(self, expected: Expected) -> tuple[str, dict[str, str]]:
        """The ETag, and the checksums to keep; `InvalidRequest` when the body is not the promised one."""
        md5 = self._md5.digest()
        if self._sha256 is not None:
            _check_sha256(expected.sha256 or "", self._sha256.hexdigest())
        if expected.md5 is not None and expected.md5 != md5:
            raise InvalidRequest(
                "The Content-MD5 you specified did not match what we received.", code="BadDigest"
            )
        return md5.hex(), self._kept(expected)

    def _kept(self, expected: Expected) -> dict[str, str]:
        if self._checksum is None or expected.algorithm is None:
            return {}
        ours = b64encode(self._checksum.digest()).decode()
        if expected.promised and expected.checksum != ours:
            raise InvalidRequest(
                f"The {expected.algorithm.upper()} you specified did not match the calculated checksum.",
                code="BadDigest",
            )
        return {expected.algorithm: ours}


def _check_sha256(theirs: str, ours: str) -> None:
    if theirs.lower() != ours:
        raise InvalidRequest(
            "The provided 'x-amz-content-sha256' header does not match what was computed.",
            code="XAmzContentSHA256Mismatch",
            fields={"ClientComputedContentSHA256": theirs, "S3ComputedContentSHA256": ours},
        )


def _check_algorithms(headers: Mapping[str, str], named: list[str]) -> None:
    unknown = [name for name in named if name not in ALGORITHMS]
    if unknown:
        raise InvalidRequest(f"The algorithm type you specified in {PREFIX}{unknown[0]} header is invalid.")
    if len(named) > 1:
        raise InvalidRequest(
            "Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed."
        )
    if "x-amz-sdk-checksum-algorithm" in headers and not named:
        raise InvalidRequest(
            "x-amz-sdk-checksum-algorithm specified, but no corresponding x-amz-checksum-* or"
            " x-amz-trailer headers were found."
        )


def _read_md5(headers: Mapping[str, str]) -> bytes | None:
    text = headers.get("content-md5")
    if text is None:
        return None
    value = _decoded(text, _MD5_BYTES)
    if value is None:
        raise InvalidRequest("The Content-MD5 you specified was invalid.", code="InvalidDigest")
    return value


def _decoded(text: str, size_bytes: int) -> bytes | None:
    try:
        value = b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return value if len(value) == size_bytes else None
