"""What librdkafka says went wrong, in our words: an outcome for a message, or why there is no connection.

Its own texts are read but never passed on: they have addresses and the names of files in them.
"""

from confluent_kafka import KafkaError

from bucketwire.publish.base import Outcome, Rejected, Retry

TOO_LARGE = Rejected("the message is too large for the Kafka topic")
"""Of all in a batch that the broker finds too large; some of them may be small enough by themselves."""

_MISSING = Retry("the Kafka topic does not exist")
_OUTCOMES: dict[int, Outcome] = {
    KafkaError.MSG_SIZE_TOO_LARGE: TOO_LARGE,
    KafkaError.RECORD_LIST_TOO_LARGE: TOO_LARGE,
    KafkaError.UNKNOWN_TOPIC_OR_PART: _MISSING,
    KafkaError._UNKNOWN_TOPIC: _MISSING,  # noqa: SLF001 so librdkafka names its own errors
    KafkaError.TOPIC_AUTHORIZATION_FAILED: Retry("no permission to write to the Kafka topic"),
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: Retry("no permission for an idempotent producer"),
}
_CAUSES = (  # of having no connection, by what librdkafka's text has in it
    ("certificate verify failed", "the certificate of the broker is not trusted"),
    ("alert bad certificate", "the broker refuses the client certificate"),
    ("alert certificate required", "the broker refuses the client certificate"),
    ("alert unknown ca", "the broker refuses the client certificate"),
    ("SSL handshake failed", "TLS handshake failed"),
    ("OAUTHBEARER token", "no token from oauth-token-endpoint"),
    ("Connection refused", "connection refused"),
)


def outcome_of(error: KafkaError) -> Outcome:
    """What became of the message that has this error."""
    return _OUTCOMES.get(error.code()) or Retry(f"Kafka error {error.name()}")


def connection_reason(cause: KafkaError | None) -> str:
    """Why there is no connection."""
    if cause is None:
        return "no connection to any broker"
    if cause.code() == KafkaError._RESOLVE:  # noqa: SLF001
        return "host name not found"
    for part, reason in _CAUSES:
        if part in cause.str():
            return reason
    if cause.code() == KafkaError._AUTHENTICATION:  # noqa: SLF001
        return "the broker refuses the credentials"
    return "no connection to any broker"
