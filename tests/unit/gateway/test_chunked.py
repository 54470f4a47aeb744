"""The aws-chunked framing. The signatures of the vectors are those of the S3 documentation's examples."""

import hashlib
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bucketwire.access.credentials import Credentials
from bucketwire.errors import CallError
from bucketwire.gateway.auth_v4 import ChainSigner, Claim, Scope, _signer
from bucketwire.gateway.chunked import ChunkDecoder, Framing

EXAMPLE = Credentials("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "id", "name")
SCOPE = Scope(EXAMPLE.access_key, "20130524", "us-east-1", "s3")
PLAIN_SEED = "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9"
PLAIN = [
    "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648",
    "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497",
    "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9",
]
TRAILER_SEED = "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e"
TRAILER = [
    "b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2",
    "1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7",
    "2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992",
]
TRAILER_SIGNATURE = "d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435"
CHUNKS = [b"a" * 65536, b"a" * 1024, b""]


def chain(seed: str) -> ChainSigner:
    claim = Claim(SCOPE, ("host",), seed, "20130524T000000Z", None)
    return ChainSigner(claim, _signer(EXAMPLE, SCOPE))


def framed(signatures: list[str], end: bytes = b"\r\n") -> bytes:
    heads = [
        f"{len(chunk):x};chunk-signature={each}\r\n".encode()
        for chunk, each in zip(CHUNKS, signatures, strict=True)
    ]
    return heads[0] + CHUNKS[0] + b"\r\n" + heads[1] + CHUNKS[1] + b"\r\n" + heads[2] + end


def unsigned(chunks: list[bytes], trailer: bytes = b"") -> bytes:
    parts = [f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n" for chunk in chunks if chunk]
    return b"".join(parts) + b"0\r\n" + trailer + b"\r\n"


def decoded(decoder: ChunkDecoder, pieces: Iterator[bytes] | list[bytes]) -> tuple[bytes, dict[str, str]]:
    content = b"".join(part for piece in pieces for part in decoder.feed(piece))
    return content, decoder.finish()


def test_signed_chunks_of_the_documentation_are_accepted() -> None:
    decoder = ChunkDecoder(Framing(signed=True, trailer_names=()), chain(PLAIN_SEED))
    assert decoded(decoder, [framed(PLAIN)]) == (b"".join(CHUNKS), {})


def test_a_signed_trailer_of_the_documentation_is_accepted() -> None:
    end = f"x-amz-checksum-crc32c:sOO8/Q==\r\nx-amz-trailer-signature:{TRAILER_SIGNATURE}\r\n\r\n".encode()
    decoder = ChunkDecoder(
        Framing(signed=True, trailer_names=("x-amz-checksum-crc32c",)), chain(TRAILER_SEED)
    )
    content, trailers = decoded(decoder, [framed(TRAILER, end)])
    assert (content, trailers) == (b"".join(CHUNKS), {"x-amz-checksum-crc32c": "sOO8/Q=="})


@pytest.mark.parametrize("broken", range(3))
def test_a_chunk_with_a_wrong_signature_is_refused(broken: int) -> None:
    signatures = [hashlib.sha256(b"").hexdigest() if at == broken else each for at, each in enumerate(PLAIN)]
    decoder = ChunkDecoder(Framing(signed=True, trailer_names=()), chain(PLAIN_SEED))
    with pytest.raises(CallError) as raised:
        decoded(decoder, [framed(signatures)])
    assert raised.value.code == "SignatureDoesNotMatch"


def test_a_trailer_with_a_wrong_or_no_signature_is_refused() -> None:
    for end in (b"x-amz-checksum-crc32c:AAAAAA==\r\n\r\n", b"x-amz-checksum-crc32c:sOO8/Q==\r\n\r\n"):
        decoder = ChunkDecoder(
            Framing(signed=True, trailer_names=("x-amz-checksum-crc32c",)), chain(TRAILER_SEED)
        )
        with pytest.raises(CallError) as raised:
            decoded(decoder, [framed(TRAILER, end)])
        assert raised.value.code == "SignatureDoesNotMatch"


@given(st.lists(st.binary(max_size=50), max_size=6), st.lists(st.integers(1, 30), min_size=1, max_size=10))
def test_the_bytes_come_out_however_the_network_cuts_them(chunks: list[bytes], cuts: list[int]) -> None:
    body = unsigned(chunks, b"x-amz-checksum-crc32:AAAAAA==\r\n")
    pieces = []
    while body:
        cut = cuts[len(pieces) % len(cuts)]
        pieces.append(body[:cut])
        body = body[cut:]
    framing = Framing(signed=False, trailer_names=("x-amz-checksum-crc32",))
    content, trailers = decoded(ChunkDecoder(framing, chain(PLAIN_SEED)), pieces)
    assert (content, trailers) == (b"".join(chunks), {"x-amz-checksum-crc32": "AAAAAA=="})


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "IncompleteBody"),
        (b"5\r\nhel", "IncompleteBody"),
        (b"5\r\nhello\r\n", "IncompleteBody"),
        (b"5\r\nhelloXX0\r\n\r\n", "InvalidRequest"),
        (b"-5\r\nhello\r\n0\r\n\r\n", "InvalidRequest"),
        (b"zz\r\nhello\r\n0\r\n\r\n", "InvalidRequest"),
        (b"5" * 2000, "InvalidRequest"),
        (b"0\r\nno colon\r\n\r\n", "MalformedTrailerError"),
        (b"0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n", "MalformedTrailerError"),
        (b"0\r\n" + b"t" * 20_000, "MalformedTrailerError"),
    ],
)
def test_a_broken_frame_is_refused(body: bytes, code: str) -> None:
    decoder = ChunkDecoder(Framing(signed=False, trailer_names=()), chain(PLAIN_SEED))
    with pytest.raises(CallError) as raised:
        decoded(decoder, [body])
    assert raised.value.code == code
