"""Errors on the wire: the status of each code, and the documents of S3 and SNS."""

from collections.abc import Mapping

from bucketwire.errors import CallError, Conflict, Denied, InvalidRequest, NotFound, Unavailable
from bucketwire.gateway.protocol.serialize import DECLARATION
from bucketwire.gateway.protocol.xml import escape_legibly

INTERNAL_CODE = "InternalError"
INTERNAL_MESSAGE = "We encountered an internal error. Please try again."

_STATUS_BY_CODE = {
    "InternalError": 500,
    "InvalidRange": 416,
    "MethodNotAllowed": 405,
    "MissingContentLength": 411,
    "NotImplemented": 501,
    "PreconditionFailed": 412,
    "RequestTimeTooSkewed": 403,
}
"""Codes whose status is not that of their class."""

_STATUS_BY_CLASS: tuple[tuple[type[CallError], int], ...] = (
    (InvalidRequest, 400),
    (NotFound, 404),
    (Conflict, 409),
    (Denied, 403),
    (Unavailable, 503),
)

_SNS_CODES = {"AccessDenied": "AuthorizationError", "InvalidAccessKeyId": "InvalidClientTokenId"}
"""What SNS calls an error that S3 knows by another name."""

_FIRST_SERVER_FAULT = 500


def status_of(error: CallError) -> int:
    """The HTTP status of an error."""
    if (status := _STATUS_BY_CODE.get(error.code)) is not None:
        return status
    return next((status for kind, status in _STATUS_BY_CLASS if isinstance(error, kind)), 500)


def not_implemented(what: str) -> InvalidRequest:
    """The answer to what is understood and not built."""
    return InvalidRequest(
        f"{what} is not implemented", code="NotImplemented", fields={"Header": what} if "-" in what else {}
    )


def slow_down() -> Unavailable:
    """The answer to those who come when all places are taken."""
    return Unavailable("Please reduce your request rate.", code="SlowDown", retry_after_seconds=1)


def s3_fault(
    code: str, message: str, fields: Mapping[str, str], *, resource: str, request_id: str, host_id: str
) -> bytes:
    """The error document of S3."""
    members = {
        "Code": code,
        "Message": message,
        **fields,
        "Resource": resource,
        "RequestId": request_id,
        "HostId": host_id,
    }
    inner = "".join(f"<{name}>{escape_legibly(text)}</{name}>" for name, text in members.items())
    return f"{DECLARATION}<Error>{inner}</Error>".encode(errors="replace")


def sns_fault(code: str, message: str, status: int, *, namespace: str, request_id: str) -> bytes:
    """The error document of SNS."""
    kind = "Receiver" if status >= _FIRST_SERVER_FAULT else "Sender"
    return (
        f'{DECLARATION}<ErrorResponse xmlns="{namespace}"><Error><Type>{kind}</Type>'
        f"<Code>{escape_legibly(_SNS_CODES.get(code, code))}</Code>"
        f"<Message>{escape_legibly(message)}</Message></Error>"
        f"<RequestId>{request_id}</RequestId></ErrorResponse>"
    ).encode(errors="replace")
