"""Who calls, and the words in which a caller that cannot be believed is refused."""

import hmac
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from bucketwire.access.credentials import Credentials, KeyRing
from bucketwire.errors import Denied

UNSIGNED = "UNSIGNED-PAYLOAD"
MAX_SKEW = timedelta(minutes=15)


class Chain(Protocol):
    """Checks the parts of a body that follow a signed head, each signed over the one before."""

    def accepts_chunk(self, digest: str, signature: str) -> bool:
        """Whether this is the signature of the next chunk, whose SHA-256 is `digest`."""
        ...

    def accepts_trailer(self, digest: str, signature: str) -> bool:
        """Whether this is the signature of the trailer, whose SHA-256 is `digest`."""
        ...


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, and how the body must be received for the signature to hold."""

    credentials: Credentials | None
    """None: the request is not signed."""
    payload: str
    """What stands for the body in the signature."""
    chain: Chain | None = None
    """For a body that is signed chunk by chunk."""


def find_credentials(keys: KeyRing, access_key: str) -> Credentials:
    """The credentials of the key; `Denied` with InvalidAccessKeyId."""
    credentials = keys.find(access_key)
    if credentials is None:
        raise Denied(
            "The AWS Access Key Id you provided does not exist in our records.",
            code="InvalidAccessKeyId",
            fields={"AWSAccessKeyId": access_key},
        )
    return credentials


def check_skew(signed_at: datetime, told: str, now: datetime) -> None:
    """Raise unless the clocks agree well enough; `told` is the time as the request has it."""
    if abs(now - signed_at) > MAX_SKEW:
        raise Denied(
            "The difference between the request time and the current time is too large.",
            code="RequestTimeTooSkewed",
            fields={
                "RequestTime": told,
                "ServerTime": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
                "MaxAllowedSkewMilliseconds": str(MAX_SKEW // timedelta(milliseconds=1)),
            },
        )


def same(ours: str, theirs: str) -> bool:
    """Whether the signatures are the same, in a time that tells nothing."""
    return hmac.compare_digest(ours.encode(), theirs.encode())


def does_not_match(access_key: str) -> Denied:
    """The signature is not that of the request."""
    return Denied(
        "The request signature we calculated does not match the signature you provided."
        " Check your key and signing method.",
        code="SignatureDoesNotMatch",
        fields={"AWSAccessKeyId": access_key},
    )


def no_date() -> Denied:
    """The request does not say when it was signed."""
    return Denied("AWS authentication requires a valid Date or x-amz-date header")
