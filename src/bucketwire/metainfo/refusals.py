"""The errors with which a notification configuration is refused, in the words and fields of S3."""

from bucketwire.errors import InvalidRequest

MAX_SHOWN_CHARACTERS = 1024


def shortened(text: str) -> str:
    """What an error repeats of a value: its beginning."""
    return text[:MAX_SHOWN_CHARACTERS]


def invalid_argument(message: str, name: str, value: str) -> InvalidRequest:
    """An element has a value that it cannot have."""
    return InvalidRequest(
        message, code="InvalidArgument", fields={"ArgumentName": name, "ArgumentValue": shortened(value)}
    )


def malformed() -> InvalidRequest:
    """An element is missing, or stands where it must not."""
    return InvalidRequest(
        "The XML you provided was not well-formed or did not validate against our published schema",
        code="MalformedXML",
    )


def too_many_rules(allowed: int, wanted: int) -> InvalidRequest:
    """A bucket would have more rules than the dialect allows."""
    return invalid_argument(
        f"A bucket can have up to {allowed} notification configurations", "TopicConfiguration", str(wanted)
    )
