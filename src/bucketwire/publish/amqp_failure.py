"""What goes wrong with a broker, in our words: pika's errors become a `Failure` with a short, stable reason.

The texts of the broker and of pika are read but never passed on: they name users and virtual hosts.
"""

import re
import socket
import ssl
from collections.abc import Sequence

from pika import exceptions
from pika.adapters.utils.connection_workflow import (
    AMQPConnectionWorkflowFailed,
    AMQPConnectorPhaseErrorBase,
    AMQPConnectorSocketConnectError,
)

from bucketwire.publish.guard import PRIVATE_NETWORK
from bucketwire.publish.reasons import CERTIFICATE, CONNECTION

_FORCED = 320
_TOO_LARGE = re.compile(r"message size \d+ is larger than \D*(\d+)")


class Failure(Exception):
    """Why nothing more can be published now."""

    def __init__(self, reason: str, *, of_connection: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.of_connection = of_connection
        """Whether the whole connection is lost."""


class ForbiddenAddress(Exception):
    """The name leads to no address that may be called."""


class TooLarge(Failure):
    """One of the messages is longer than the broker takes: it closed the channel, and all else with it."""

    def __init__(self, limit_bytes: int) -> None:
        super().__init__("the broker takes no message as large as one in this batch")
        self.limit_bytes = limit_bytes


def connection_failure(error: BaseException) -> Failure:
    """Why there is no connection, or no longer."""
    return Failure(_connection_reason(_innermost(error)), of_connection=True)


def channel_failure(error: BaseException) -> Failure:
    """Why the channel was closed; the connection may be well."""
    if not isinstance(error, exceptions.ChannelClosedByBroker):
        return connection_failure(error)
    match error.reply_code:
        case 404:
            return Failure("the exchange does not exist")
        case 403:
            return Failure("access to the exchange is refused")
        case 406 if found := _TOO_LARGE.search(error.reply_text):
            return TooLarge(int(found.group(1)))
    return Failure(f"the broker closed the channel (AMQP {error.reply_code})")


def unexpected_failure(error: Exception) -> Failure:
    """Of what should not happen. Its text may show anything."""
    return Failure(f"unexpected {type(error).__name__}")


def _innermost(error: BaseException) -> BaseException:
    """What pika has wrapped."""
    while True:
        match error:
            case AMQPConnectionWorkflowFailed():
                error = _most_telling(error.exceptions)
            case AMQPConnectorPhaseErrorBase():
                error = error.exception
            case exceptions.AMQPConnectionError(args=(BaseException() as inner,)):
                error = inner
            case _:
                return error


def _most_telling(errors: Sequence[BaseException]) -> BaseException:
    """Of a host's several addresses one may answer, and others not be there at all."""
    answered = [each for each in errors if not isinstance(each, AMQPConnectorSocketConnectError)]
    return (answered or errors)[-1]


def _connection_reason(error: BaseException) -> str:
    match error:
        case exceptions.ProbableAuthenticationError():
            return "the login is refused" if "(403)" in str(error) else "connection lost while logging in"
        case exceptions.ProbableAccessDeniedError():
            return _vhost_reason(str(error))
        case exceptions.IncompatibleProtocolError():
            return "the server does not speak AMQP 0.9.1"
        case exceptions.ConnectionClosedByBroker():
            return _closed_reason(error.reply_code)
        case OSError() | UnicodeError() | ForbiddenAddress():
            return _network_reason(error)
    return "connection lost"


def _closed_reason(code: int) -> str:
    if code == _FORCED:
        return "the broker is shutting down"
    return f"the broker closed the connection (AMQP {code})"


def _vhost_reason(text: str) -> str:
    if "not found" in text:
        return "the virtual host does not exist"
    if "refused" in text:
        return "access to the virtual host is refused"
    return "connection lost while opening the virtual host"


def _network_reason(error: OSError | UnicodeError | ForbiddenAddress) -> str:
    match error:
        case ForbiddenAddress():
            return PRIVATE_NETWORK
        case ssl.SSLCertVerificationError():
            return CERTIFICATE.get(error.verify_code, "the certificate is not trusted")
        case ssl.SSLError():
            return "TLS handshake failed"
        case socket.gaierror() | UnicodeError():  # the latter of a name that cannot even be asked for
            return "host name not found"
        case TimeoutError():
            return "connection timed out"
        case _:
            return CONNECTION.get(error.errno or 0, "connection lost")
