"""The checksum of an object out of those of its parts: of the whole, or of the parts' checksums."""

from base64 import b64decode, b64encode
from collections.abc import Sequence

from awscrt import checksums

from bucketwire.errors import InvalidRequest
from bucketwire.gateway.checksums import ALGORITHMS, new_digest
from bucketwire.metabase.values import Part

COMPOSITE = "COMPOSITE"
FULL_OBJECT = "FULL_OBJECT"
_COMBINE = {
    "crc32": checksums.combine_crc32,
    "crc32c": checksums.combine_crc32c,
    "crc64nvme": checksums.combine_crc64nvme,
}
"""How the checksum of a whole follows from those of its parts; others cannot be put together."""
_ONLY_WHOLE = frozenset({"crc64nvme"})


def checksum_choice(algorithm: str | None, kind: str | None) -> tuple[str | None, str | None]:
    """The algorithm and the type of an upload's checksum, from what its start asks for."""
    if algorithm is None:
        if kind is not None:
            raise InvalidRequest(
                "The x-amz-checksum-type header can only be used with the x-amz-checksum-algorithm header."
            )
        return None, None
    name = algorithm.lower()
    if name not in ALGORITHMS:
        raise InvalidRequest("Checksum algorithm provided is unsupported.")
    chosen = kind or (FULL_OBJECT if name in _ONLY_WHOLE else COMPOSITE)
    if (name in _ONLY_WHOLE) if chosen == COMPOSITE else (name not in _COMBINE):
        raise InvalidRequest(f"The {chosen} checksum type cannot be used with the {name} checksum algorithm.")
    return name, chosen


def object_checksum(parts: Sequence[Part], algorithm: str, kind: str) -> str | None:
    """The checksum of the object in base64, if all parts have theirs."""
    values = [b64decode(part.checksums[algorithm]) for part in parts if algorithm in part.checksums]
    if len(values) != len(parts):
        return None
    if kind == FULL_OBJECT:
        return b64encode(_combined(values, parts, algorithm)).decode()
    digest = new_digest(algorithm)
    digest.update(b"".join(values))
    return f"{b64encode(digest.digest()).decode()}-{len(parts)}"


def _combined(values: list[bytes], parts: Sequence[Part], algorithm: str) -> bytes:
    combine = _COMBINE[algorithm]
    whole = 0
    for value, part in zip(values, parts, strict=True):
        whole = combine(whole, int.from_bytes(value, "big"), part.size_bytes)
    return whole.to_bytes(len(values[0]), "big")
