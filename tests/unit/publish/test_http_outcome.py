"""What a status means for its message. Nothing is sent: the answers are made up."""

from typing import Any

import pycurl
import pytest

from bucketwire.publish.base import Delivered, Outcome, Rejected, Retry
from bucketwire.publish.http_outcome import outcome_of_answer


class Answer:
    """A request that has ended, with `Retry-After: 7`."""

    def __init__(self, status: int) -> None:
        self._found = {pycurl.RESPONSE_CODE: status, pycurl.RETRY_AFTER: 7}

    def getinfo(self, name: int) -> int:
        return self._found[name]


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (204, Delivered()),
        (404, Retry("HTTP 404")),
        (422, Retry("HTTP 422", of_message=True)),
        (413, Rejected("HTTP 413: the message is too large for the endpoint")),
        (431, Rejected("HTTP 431: the headers of the message are too large for the endpoint")),
        (503, Retry("HTTP 503", 7)),
    ],
)
def test_a_message_that_is_too_large_is_rejected_and_others_are_tried_again(
    status: int, outcome: Outcome
) -> None:
    answer: Any = Answer(status)
    assert outcome_of_answer(answer) == outcome
