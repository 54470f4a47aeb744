"""What a call that is refused is told."""

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError


def refusal(call: Callable[..., Any], **given: Any) -> tuple[str, int]:
    """The code and the status of the error that the call ends with."""
    answer = refused(call, **given)
    return answer["Error"]["Code"], answer["ResponseMetadata"]["HTTPStatusCode"]


def refused(call: Callable[..., Any], **given: Any) -> dict[str, Any]:
    """The whole answer."""
    with pytest.raises(ClientError) as raised:
        call(**given)
    return raised.value.response
