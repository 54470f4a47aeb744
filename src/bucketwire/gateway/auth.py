"""Who sent a request: by Signature Version 4 or 2, in the header or presigned, or nobody who says so.

    read_claim    what the request says of itself
    needs_lookup  whether to find that out blocks
    authenticate  whether it is true

What a signature says of the body (`Caller.payload`) is checked when the body is received.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from bucketwire.access.credentials import KeyRing
from bucketwire.errors import Denied, InvalidRequest
from bucketwire.gateway import auth_v2, auth_v4
from bucketwire.gateway.caller import UNSIGNED, Caller
from bucketwire.gateway.request import Request


@dataclass(frozen=True, slots=True)
class Anonymous:
    """A request that says nothing of who sent it."""

    payload: str


Claim = auth_v4.Claim | auth_v2.Claim | Anonymous


def read_claim(request: Request) -> Claim:
    """The claim in the header or in the query; raises when there is one that cannot be read."""
    authorization = request.headers.get("authorization")
    if authorization is not None:
        return _header_claim(request, authorization)
    if "X-Amz-Algorithm" in request.parameters or "X-Amz-Credential" in request.parameters:
        return auth_v4.query_claim(request.parameters, request.headers)
    if auth_v2.is_presigned(request.parameters):
        return auth_v2.query_claim(request)
    return Anonymous(_unsigned_payload(request))


def read_signed_claim(request: Request) -> auth_v4.Claim | auth_v2.Claim:
    """The claim of a request that must be signed: with Version 4, or with Version 2 in the header.

    A presigned request of Version 2 says neither what it asks for nor what is in its body.
    """
    claim = read_claim(request)
    if isinstance(claim, Anonymous):
        raise Denied("Access Denied")
    if isinstance(claim, auth_v2.Claim) and claim.expires is not None:
        raise InvalidRequest(
            "The authorization mechanism you have provided is not supported. Please use AWS4-HMAC-SHA256."
        )
    return claim


def needs_lookup(claim: Claim, keys: KeyRing) -> bool:
    """Whether the key of the claim is not at hand, so that `authenticate` blocks."""
    return not isinstance(claim, Anonymous) and not keys.has(claim.access_key)


def authenticate(
    request: Request,
    claim: Claim,
    keys: KeyRing,
    now: Callable[[], datetime],
    body: bytes | None = None,
    *,
    path: str | None = None,
) -> Caller:
    """The caller, if the signature is that of the request. Blocks if the claim `needs_lookup`.

    `body` is needed where the claim hashes it; `path` has the bucket in it, if that stands in the host.
    """
    match claim:
        case Anonymous():
            return Caller(None, claim.payload)
        case auth_v2.Claim():
            caller = auth_v2.authenticate(request, claim, keys, now(), path or request.raw_path)
        case _:
            caller = auth_v4.authenticate(request, claim, keys, now(), body)
    if "authorization" not in request.headers:
        _hoist(request)
    return caller


def _header_claim(request: Request, authorization: str) -> Claim:
    scheme = authorization.strip().partition(" ")[0]
    if not scheme:
        raise Denied("Access Denied")
    if scheme == auth_v4.ALGORITHM:
        return auth_v4.header_claim(request, authorization)
    if scheme == auth_v2.SCHEME:
        return auth_v2.header_claim(request, authorization)
    raise InvalidRequest(
        "Unsupported Authorization Type", code="InvalidArgument", fields={"ArgumentName": "Authorization"}
    )


def _unsigned_payload(request: Request) -> str:
    payload = request.headers.get("x-amz-content-sha256", UNSIGNED)
    if payload.startswith("STREAMING-AWS4-"):
        raise Denied("Access Denied")
    return payload


def _hoist(request: Request) -> None:
    """Headers that were presigned into the query count as headers."""
    for name, text in request.parameters.items():
        if name.startswith("x-amz-"):
            request.headers.setdefault(name, text)
