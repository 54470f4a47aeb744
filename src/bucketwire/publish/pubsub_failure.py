"""What a failed request to Google Pub/Sub means: a status of gRPC in, a reason to retry out.

Google's own texts are not passed on: they hold addresses and names, and change.
"""

from typing import Any

from google.protobuf.message import DecodeError
from google.rpc.error_details_pb2 import RetryInfo
from grpc import StatusCode
from grpc_status import rpc_status

from bucketwire.publish.base import Retry

FOR_ALL = frozenset(
    {
        StatusCode.UNAVAILABLE,
        StatusCode.NOT_FOUND,
        StatusCode.PERMISSION_DENIED,
        StatusCode.UNAUTHENTICATED,
        StatusCode.RESOURCE_EXHAUSTED,
    }
)
"""What is as true for the next request as for this one: the rest of a batch is not sent."""

_REASONS = {
    StatusCode.NOT_FOUND: "the Pub/Sub topic does not exist",
    StatusCode.PERMISSION_DENIED: "no permission to publish to the Pub/Sub topic",
    StatusCode.UNAUTHENTICATED: "Pub/Sub does not accept the credentials",
    StatusCode.RESOURCE_EXHAUSTED: "the quota of Pub/Sub is used up",
}
_UNAVAILABLE = (  # by what gRPC says of a channel that does not work, in any case of letters
    ("certificate_verify_failed", "the certificate of Pub/Sub is not trusted"),
    ("peer name", "the certificate is for another host name"),
    ("handshake", "TLS handshake failed"),
    ("getting metadata from plugin failed", "no access token could be had with the Google credentials"),
    ("dns resolution failed", "host name not found"),
    ("connection refused", "connection refused"),
    ("failed to connect", "no connection"),
    ("socket closed", "connection lost"),
    ("connection reset", "connection lost"),
)


def retry_of_failure(answer: Any) -> Retry:
    """The outcome of a call that has ended with any status but OK."""
    code = answer.code()
    if code is StatusCode.UNAVAILABLE:
        return Retry(_reason_unavailable(answer.details() or ""), _after_seconds(answer))
    return Retry(_REASONS.get(code, f"Pub/Sub answered {code.name}"), _after_seconds(answer))


def _reason_unavailable(details: str) -> str:
    lowered = details.lower()
    return next((reason for sign, reason in _UNAVAILABLE if sign in lowered), "Pub/Sub is unavailable")


def _after_seconds(answer: Any) -> float | None:
    """The delay that Pub/Sub asked for, if it did."""
    try:
        status = rpc_status.from_call(answer)
        for detail in status.details if status else ():
            wait = RetryInfo()
            if detail.Unpack(wait):
                return float(wait.retry_delay.ToTimedelta().total_seconds()) or None
    except (ValueError, DecodeError):  # details that contradict the status, or are none
        return None
    return None
