"""What the end of an HTTP request means for its message.

Reasons are words of ours: libcurl's own error texts may show the URL.
"""

import pycurl

from bucketwire.publish.base import Delivered, Outcome, Rejected, Retry
from bucketwire.publish.pem_files import UNUSABLE
from bucketwire.publish.reasons import CERTIFICATE, CONNECTION

RETRY_AFTER_LIMIT_SECONDS = 3600.0
"""An endpoint may ask for a longer pause, and does not get it."""

_DELIVERED = Delivered()
_REQUEST_TIMEOUT, _GONE, _TOO_MANY_REQUESTS = 408, 410, 429
_TOO_LARGE = {
    413: Rejected("HTTP 413: the message is too large for the endpoint"),
    431: Rejected("HTTP 431: the headers of the message are too large for the endpoint"),
}
_OF_MESSAGE = frozenset({400, 409, 412, 415, 422})
"""What endpoints answer when they cannot make anything of a message."""
_SUCCESS = range(200, 300)
_SERVER_ERRORS = range(500, 600)

_REASONS = {
    pycurl.E_COULDNT_RESOLVE_HOST: "host name not found",
    pycurl.E_GOT_NOTHING: "connection closed without an answer",
    pycurl.E_OPERATION_TIMEDOUT: "no connection in time",
    pycurl.E_PARTIAL_FILE: "answer cut short",
    pycurl.E_RECV_ERROR: "connection lost",
    pycurl.E_SEND_ERROR: "connection lost",
    pycurl.E_SSL_CONNECT_ERROR: "TLS handshake failed",
    pycurl.E_SSL_CACERT_BADFILE: UNUSABLE,
    pycurl.E_UNSUPPORTED_PROTOCOL: "the answer is not HTTP",
    pycurl.E_FTP_WEIRD_SERVER_REPLY: "the answer is not HTTP",
}
_CERTIFICATE = CERTIFICATE | {1: CERTIFICATE[62]}
"""libcurl leaves 1 when it found the name wrong."""


def outcome_of_answer(request: pycurl.Curl) -> Outcome:
    """2xx is `Delivered`, 413 and 431 are `Rejected`, all else is `Retry`, as long as the topic retries."""
    status = request.getinfo(pycurl.RESPONSE_CODE)
    if status in _SUCCESS:
        return _DELIVERED
    if status in _TOO_LARGE:
        return _TOO_LARGE[status]
    if status == _GONE:
        return Retry("410: the endpoint is gone for good")
    return Retry(f"HTTP {status}", _pause_seconds(request, status), of_message=status in _OF_MESSAGE)


def reason_of_failure(request: pycurl.Curl, error: int) -> str:
    """Why there is no answer."""
    if error == pycurl.E_COULDNT_CONNECT:
        return CONNECTION.get(request.getinfo(pycurl.OS_ERRNO), "no connection")
    if error == pycurl.E_PEER_FAILED_VERIFICATION:
        code = request.getinfo(pycurl.SSL_VERIFYRESULT)
        return _CERTIFICATE.get(code, "the certificate is not trusted")
    return _REASONS.get(error, f"libcurl error {error}")


def _pause_seconds(request: pycurl.Curl, status: int) -> float | None:
    """What Retry-After asks for, where the status is about the endpoint and not about the message."""
    if status not in _SERVER_ERRORS and status not in {_REQUEST_TIMEOUT, _TOO_MANY_REQUESTS}:
        return None
    asked = float(request.getinfo(pycurl.RETRY_AFTER))
    return min(asked, RETRY_AFTER_LIMIT_SECONDS) or None
