"""Signature Version 4, in the header or presigned, checked with botocore's signers.

The canonical URI is the path as it stood on the wire. Any region in the credential scope is accepted. What
the signature says of the body (`Caller.payload`) is checked when the body is received.

Headers with bytes that are no UTF-8 are read as Latin-1. Some clients sign those bytes, others sign the text
in UTF-8 and let their library send it in Latin-1: either is a signature of the request.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from hashlib import sha256
from typing import Any

from botocore.auth import S3SigV4Auth, SigV4Auth

from bucketwire.access.credentials import Credentials, KeyRing
from bucketwire.errors import Denied, InvalidRequest
from bucketwire.gateway.caller import (
    MAX_SKEW,
    UNSIGNED,
    Caller,
    check_skew,
    does_not_match,
    find_credentials,
    no_date,
    same,
)
from bucketwire.gateway.request import Request

ALGORITHM = "AWS4-HMAC-SHA256"
_S3 = "s3"
_MAX_EXPIRES_SECONDS = 7 * 24 * 3600
_TIME_FORMAT = "%Y%m%dT%H%M%SZ"
_TIME = re.compile(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z", re.ASCII)
_BLANKS = re.compile("[ \t]+")
_HEX_DIGEST = re.compile(r"[0-9a-fA-F]{64}")
_EMPTY_SHA256 = sha256().hexdigest()
_QUERY_PARTS = (
    "X-Amz-Algorithm",
    "X-Amz-Credential",
    "X-Amz-Signature",
    "X-Amz-Date",
    "X-Amz-SignedHeaders",
    "X-Amz-Expires",
)


@dataclass(frozen=True, slots=True)
class Scope:
    """A credential scope: `<access key>/<date>/<region>/<service>/aws4_request`."""

    access_key: str
    date: str
    region: str
    service: str


@dataclass(frozen=True, slots=True)
class Claim:
    """What a request says of itself, before any of it is believed."""

    scope: Scope
    signed_headers: tuple[str, ...]
    signature: str
    timestamp: str
    payload: str | None
    """What stands for the body in the signature; None: the hash of the body itself."""
    expires: timedelta | None = None
    """How long a presigned request is good."""

    @property
    def access_key(self) -> str:
        """Whose signature it is."""
        return self.scope.access_key


class ChainSigner:
    """Signs the parts of a body that follow a signed head, each over the signature of the one before."""

    def __init__(self, claim: Claim, signer: Any) -> None:
        self._context = _Context({"timestamp": claim.timestamp})
        self._signer = signer
        self._previous = claim.signature

    def accepts_chunk(self, digest: str, signature: str) -> bool:
        """Whether this is the signature of the next chunk, whose SHA-256 is `digest`."""
        return self._accepts(f"{ALGORITHM}-PAYLOAD", f"{_EMPTY_SHA256}\n{digest}", signature)

    def accepts_trailer(self, digest: str, signature: str) -> bool:
        """Whether this is the signature of the trailer, whose SHA-256 is `digest`."""
        return self._accepts(f"{ALGORITHM}-TRAILER", digest, signature)

    def _accepts(self, kind: str, digests: str, signature: str) -> bool:
        scope = self._signer.credential_scope(self._context)
        text = f"{kind}\n{self._context.context['timestamp']}\n{scope}\n{self._previous}\n{digests}"
        self._previous = self._signer.signature(text, self._context)
        return same(self._previous, signature)


@dataclass(slots=True)
class _Context:
    """The part of a botocore request that its signers look at."""

    context: dict[str, str]
    params: list[tuple[str, str]] | None = None
    url: str = ""


class _SignedHeaders(dict[str, str]):
    """Headers as botocore's signers read them."""

    def get_all(self, name: str) -> list[str]:
        return [self[name]]


class _FoldingBlanks(S3SigV4Auth):  # type: ignore[misc]
    """Folds blanks in headers alone: botocore folds spaces of other scripts too, most clients do not."""

    def _header_value(self, value: str) -> str:
        return _BLANKS.sub(" ", value.strip(" \t"))


def authenticate(
    request: Request, claim: Claim, keys: KeyRing, now: datetime, body: bytes | None = None
) -> Caller:
    """The caller, if the signature is that of the request; `body` is needed where the claim hashes it."""
    credentials = find_credentials(keys, claim.access_key)
    _check_time(claim, now)
    _check_signed_headers(claim, request.headers)
    payload = claim.payload if claim.payload is not None else sha256(body or b"").hexdigest()
    signer = _signer(credentials, claim.scope)
    signed = (
        _signature(request, headers, claim, payload, each)
        for each in (signer, _FoldingBlanks(credentials, claim.scope.service, claim.scope.region))
        for headers in _readings(request)
    )
    if not any(same(each, claim.signature) for each in signed):
        raise does_not_match(credentials.access_key)
    return Caller(credentials, payload, ChainSigner(claim, signer))


def sign_policy(credentials: Credentials, scope: Scope, policy: str) -> str:
    """The signature of a form's policy."""
    context = _Context({"timestamp": scope.date})
    signature: str = _signer(credentials, scope).signature(policy, context)
    return signature


def _readings(request: Request) -> Iterator[Mapping[str, str]]:
    """The headers as the signer may have seen them."""
    yield request.headers
    if request.headers_as_sent != request.headers:
        yield request.headers_as_sent


def _signature(request: Request, sent: Mapping[str, str], claim: Claim, payload: str, signer: Any) -> str:
    headers = _SignedHeaders({name: sent.get(name, "") for name in claim.signed_headers})
    context = _Context({"timestamp": claim.timestamp}, _signed_pairs(request))
    canonical = "\n".join(
        (
            request.method,
            request.raw_path,
            signer.canonical_query_string(context),
            signer.canonical_headers(headers) + "\n",
            signer.signed_headers(headers),
            payload,
        )
    )
    digest = sha256(canonical.encode(errors="surrogateescape")).hexdigest()
    text = "\n".join((ALGORITHM, claim.timestamp, signer.credential_scope(context), digest))
    signature: str = signer.signature(text, context)
    return signature


def _signed_pairs(request: Request) -> list[tuple[str, str]]:
    return [(name, text) for name, text in request.pairs if name != "X-Amz-Signature"]


def _signer(credentials: Credentials, scope: Scope) -> Any:
    kind = S3SigV4Auth if scope.service == _S3 else SigV4Auth
    return kind(credentials, scope.service, scope.region)


def header_claim(request: Request, authorization: str) -> Claim:
    """The claim in an Authorization header."""
    rest = authorization.removeprefix(ALGORITHM)
    parts = dict(part.strip().partition("=")[::2] for part in rest.split(","))
    if not {"Credential", "SignedHeaders", "Signature"} <= parts.keys():
        raise malformed_header()
    scope = read_scope(parts["Credential"], malformed_header())
    timestamp = _header_time(request.headers)
    if timestamp[:8] != scope.date:
        raise malformed_header(f"Invalid credential date {scope.date}: it is not the date of the request.")
    return Claim(
        scope,
        tuple(parts["SignedHeaders"].lower().split(";")),
        parts["Signature"],
        timestamp,
        _header_payload(request.headers, scope),
    )


def _header_payload(headers: Mapping[str, str], scope: Scope) -> str | None:
    payload = headers.get("x-amz-content-sha256")
    if payload is None and scope.service == _S3:
        raise InvalidRequest(
            "Missing required header for this request: x-amz-content-sha256", code="InvalidRequest"
        )
    return payload


def _header_time(headers: Mapping[str, str]) -> str:
    """The time of signing, from `x-amz-date` or `Date`."""
    if (stamp := headers.get("x-amz-date")) is not None:
        if _read_time(stamp) is not None:
            return stamp
    elif (date := headers.get("date")) is not None:
        try:
            return parsedate_to_datetime(date).astimezone(UTC).strftime(_TIME_FORMAT)
        except (ValueError, OverflowError, TypeError) as problem:
            raise no_date() from problem
    raise no_date()


def query_claim(parameters: Mapping[str, str], headers: Mapping[str, str]) -> Claim:
    """The claim in a query; raises when it is not whole."""
    missing = [name for name in _QUERY_PARTS if name not in parameters]
    if missing:
        raise _bad_query(
            f"Query-string authentication version 4 requires the {', '.join(_QUERY_PARTS)} parameters"
        )
    if parameters["X-Amz-Algorithm"] != ALGORITHM:
        raise _bad_query('X-Amz-Algorithm only supports "AWS4-HMAC-SHA256"')
    scope = read_scope(parameters["X-Amz-Credential"], _bad_query("The Credential is malformed"))
    timestamp = parameters["X-Amz-Date"]
    if _read_time(timestamp) is None or timestamp[:8] != scope.date:
        raise _bad_query("X-Amz-Date must be in the ISO8601 Long Format and on the date of the credential")
    signed_headers = tuple(parameters["X-Amz-SignedHeaders"].lower().split(";"))
    payload = headers.get("x-amz-content-sha256") if "x-amz-content-sha256" in signed_headers else None
    return Claim(
        scope,
        signed_headers,
        parameters["X-Amz-Signature"],
        timestamp,
        payload or (UNSIGNED if scope.service == _S3 else None),
        _read_expires(parameters["X-Amz-Expires"]),
    )


def _read_expires(text: str) -> timedelta:
    if not (text.isascii() and text.removeprefix("-").isdecimal() and len(text) < len("1000000000")):
        raise _bad_query("X-Amz-Expires should be a number of seconds, up to a week")
    seconds = int(text)
    if not 0 < seconds <= _MAX_EXPIRES_SECONDS:
        raise Denied(
            "X-Amz-Expires must be positive and at most a week (604800 seconds)",
            code="AuthorizationQueryParametersError",
        )
    return timedelta(seconds=seconds)


def read_scope(text: str, problem: InvalidRequest) -> Scope:
    """The scope that stands in the text; raises the problem when it cannot be read."""
    parts = text.rsplit("/", 4)
    if len(parts) != len(("key", "date", "region", "service", "end")) or parts[4] != "aws4_request":
        raise problem
    return Scope(*parts[:4])


def _read_time(stamp: str) -> datetime | None:
    found = _TIME.fullmatch(stamp)
    try:
        return datetime(*map(int, found.groups()), tzinfo=UTC) if found else None  # type: ignore[arg-type,misc]
    except ValueError:
        return None


def _check_time(claim: Claim, now: datetime) -> None:
    signed_at = _read_time(claim.timestamp)
    if signed_at is None:
        raise no_date()
    if claim.expires is not None:
        _check_lifetime(signed_at, claim.expires, now)
    else:
        check_skew(signed_at, claim.timestamp, now)


def _check_lifetime(signed_at: datetime, expires: timedelta, now: datetime) -> None:
    if signed_at - now > MAX_SKEW:  # first: what is signed near the end of time cannot be added to
        raise Denied("Request is not valid yet")
    if now > signed_at + expires:
        raise Denied(
            "Request has expired",
            fields={
                "X-Amz-Expires": str(expires // timedelta(seconds=1)),
                "Expires": (signed_at + expires).strftime("%Y-%m-%dT%H:%M:%SZ"),
                "ServerTime": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
            },
        )


def _check_signed_headers(claim: Claim, headers: Mapping[str, str]) -> None:
    """The host and all that speaks to the gateway must be signed, or others could add to the request."""
    signed = set(claim.signed_headers)
    unsigned = sorted(
        name
        for name in headers
        if name not in signed and (name == "host" or name.startswith(("x-amz-", "x-bucketwire-")))
    )
    if unsigned:
        raise Denied(
            "There were headers present in the request which were not signed",
            fields={"HeadersNotSigned": ", ".join(unsigned)},
        )


def valid_payload_digest(payload: str) -> bool:
    """Whether the text is a SHA-256 in hexadecimal."""
    return _HEX_DIGEST.fullmatch(payload) is not None


def malformed_header(message: str | None = None) -> InvalidRequest:
    """The Authorization header cannot be read."""
    return InvalidRequest(
        message or "The authorization header that you provided is not valid.",
        code="AuthorizationHeaderMalformed",
    )


def _bad_query(message: str) -> InvalidRequest:
    return InvalidRequest(message, code="AuthorizationQueryParametersError")
