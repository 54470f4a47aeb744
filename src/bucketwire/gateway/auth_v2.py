"""Signature Version 2, in the header or presigned, with botocore's canonical strings.

The canonical resource is the path with the bucket in it, however the bucket was addressed, and all of the
query that picks an operation or changes it, as the gateway reads it. What narrows a listing (`prefix`,
`marker` and so on) is not part of the signature, nor is the body.
"""

import binascii
import hmac
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from hashlib import sha1
from operator import itemgetter
from urllib.parse import SplitResult

from botocore.auth import HmacV1Auth

from bucketwire.access.credentials import Credentials, KeyRing
from bucketwire.errors import Denied, InvalidRequest
from bucketwire.gateway.caller import (
    UNSIGNED,
    Caller,
    check_skew,
    does_not_match,
    find_credentials,
    no_date,
    same,
)
from bucketwire.gateway.request import Request

SCHEME = "AWS"
_MAX_EXPIRES_DIGITS = 11
_QUERY_PARTS = ("AWSAccessKeyId", "Signature", "Expires")
_SIGNED_NAMES = frozenset(HmacV1Auth.QSAOfInterest) | {
    "abac",
    "annotation",
    "annotationName",
    "attributes",
    "encryption",
    "intelligent-tiering",
    "legal-hold",
    "metadataAnnotationTable",
    "metadataConfiguration",
    "metadataInventoryTable",
    "metadataJournalTable",
    "metadataTable",
    "notification-id",
    "ownershipControls",
    "policyStatus",
    "publicAccessBlock",
    "renameObject",
    "retention",
    "session",
}
"""What botocore signs of a query, and what else picks an operation or changes it: others could add it."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What a request says of itself, before any of it is believed."""

    access_key: str
    signature: str
    payload: str
    expires: str | None = None
    """When a presigned request ends, in seconds since 1970."""


class _Signer(HmacV1Auth):  # type: ignore[misc]
    """Botocore's strings, with the date of the request instead of the time of day."""

    def __init__(self, credentials: Credentials, date: str) -> None:
        super().__init__(credentials)
        self._date = date

    def _get_date(self) -> str:
        return self._date


class _SignedHeaders(dict[str, str]):
    """Headers as botocore's signer reads them."""

    def get_all(self, name: str) -> list[str]:
        return [self[name]]


def is_presigned(parameters: Mapping[str, str]) -> bool:
    """Whether the query has a claim."""
    return "Signature" in parameters or "AWSAccessKeyId" in parameters


def header_claim(request: Request, authorization: str) -> Claim:
    """The claim in an Authorization header."""
    access_key, separator, signature = authorization.removeprefix(SCHEME).strip().rpartition(":")
    if not separator:
        raise InvalidRequest(
            "AWS authorization header is invalid. Expected AwsAccessKeyId:signature",
            code="InvalidArgument",
            fields={"ArgumentName": "Authorization"},
        )
    return Claim(access_key, signature, _payload(request))


def query_claim(request: Request) -> Claim:
    """The claim in a query; raises when it is not whole."""
    parameters = request.parameters
    if any(name not in parameters for name in _QUERY_PARTS):
        raise Denied(f"Query-string authentication requires the {', '.join(_QUERY_PARTS)} parameters")
    access_key, signature, expires = (parameters[name] for name in _QUERY_PARTS)
    return Claim(access_key, signature, _payload(request), expires)


def authenticate(request: Request, claim: Claim, keys: KeyRing, now: datetime, path: str) -> Caller:
    """The caller, if the signature is that of the request to that path, which has the bucket in it."""
    credentials = find_credentials(keys, claim.access_key)
    if claim.expires is None:
        _check_date(request.headers, now)
    else:
        _check_expires(claim.expires, now)
    _refuse_own(request)
    if any(_hides_another(name, text) for name, text in request.pairs):
        raise does_not_match(credentials.access_key)
    for date in _dates(request.headers, claim):
        for resource in _resources(path, request.pairs):
            signature = _signature(request, claim, credentials, date, resource)
            if same(signature, claim.signature):
                return Caller(credentials, claim.payload)
    raise does_not_match(credentials.access_key)


def sign_policy(credentials: Credentials, policy: str) -> str:
    """The signature of a form's policy."""
    digest = hmac.new(credentials.secret_key.encode(), policy.encode(), sha1).digest()
    return b64encode(digest).decode()


def _signature(request: Request, claim: Claim, credentials: Credentials, date: str, resource: str) -> str:
    headers = _SignedHeaders(_signed_headers(request, presigned=claim.expires is not None))
    signer = _Signer(credentials, date)
    split = SplitResult("", "", resource, "", "")
    try:
        signature: str = signer.sign_string(signer.canonical_string(request.method, split, headers))
    except (binascii.Error, ValueError) as problem:
        raise does_not_match(credentials.access_key) from problem
    return signature


def _signed_headers(request: Request, *, presigned: bool) -> dict[str, str]:
    """The headers that are signed; those of a presigned request may stand in its query."""
    given = {**request.parameters, **request.headers} if presigned else request.headers
    return {name: text for name, text in given.items() if _is_signed_header(name)}


def _is_signed_header(name: str) -> bool:
    return name in {"content-md5", "content-type"} or name.startswith("x-amz-")


def _dates(headers: Mapping[str, str], claim: Claim) -> Iterator[str]:
    """What may stand as the date: nothing if there is an `x-amz-date`, though botocore signs both."""
    if claim.expires is not None:
        yield claim.expires
        return
    if "x-amz-date" in headers:
        yield ""
    yield headers.get("date", "")


def _resources(path: str, pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    """What may stand as the canonical resource."""
    signed = sorted((pair for pair in pairs if pair[0] in _SIGNED_NAMES), key=itemgetter(0))
    for each in _paths(path):
        if not signed:
            yield each
            continue
        # Of a name without a value botocore signs the `=` if it was sent, and clients in Go never do.
        yield f"{each}?{'&'.join(f'{name}={text}' if text else name for name, text in signed)}"
        yield f"{each}?{'&'.join(f'{name}={text}' for name, text in signed)}"


def _paths(path: str) -> Iterator[str]:
    """The path; that of a bucket may end with a slash or not."""
    yield path
    if path.count("/") == 1 and path != "/":
        yield f"{path}/"
    elif path.count("/") == 2 and path.endswith("/"):  # noqa: PLR2004 - `/bucket/`
        yield path[:-1]


def _hides_another(name: str, text: str) -> bool:
    """Whether what is signed of a parameter reads like two, of which others may have made one."""
    if name in _SIGNED_NAMES:
        return any(part.partition("=")[0] in _SIGNED_NAMES for part in text.split("&")[1:])
    return _is_signed_header(name) and (":" in name or "\n" in name + text)


def _refuse_own(request: Request) -> None:
    """What Bucketwire adds to S3 no client signs with this version, so that others could add it."""
    own = sorted(name for name in request.headers if name.startswith("x-bucketwire-"))
    if own or "explain" in request.parameters:
        raise Denied(f"{own[0] if own else 'explain'} needs a signature of Version 4 (AWS4-HMAC-SHA256)")


def _payload(request: Request) -> str:
    payload = request.headers.get("x-amz-content-sha256", UNSIGNED)
    if payload.startswith("STREAMING-AWS4-"):
        raise InvalidRequest("A body that is signed in chunks needs a head signed with AWS4-HMAC-SHA256")
    return payload


def _check_date(headers: Mapping[str, str], now: datetime) -> None:
    told = headers.get("x-amz-date", headers.get("date", ""))
    try:
        signed_at = parsedate_to_datetime(told)
    except (ValueError, OverflowError, TypeError, IndexError) as problem:
        raise no_date() from problem
    aware = signed_at if signed_at.tzinfo else signed_at.replace(tzinfo=UTC)
    if aware.timestamp() < 0:
        raise no_date()
    check_skew(aware, told, now)


def _check_expires(text: str, now: datetime) -> None:
    if not (text.isascii() and text.isdecimal() and len(text) <= _MAX_EXPIRES_DIGITS):
        raise Denied(f"Invalid date (should be seconds since epoch): {text}")
    if int(text) < now.timestamp():
        raise Denied(
            "Request has expired",
            fields={"Expires": text, "ServerTime": now.strftime("%Y-%m-%dT%H:%M:%SZ")},
        )
