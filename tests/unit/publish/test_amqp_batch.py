"""Which messages of a call to an AMQP publisher are sent next, where order matters."""

import msgspec

from bucketwire.publish.amqp_batch import Batch
from bucketwire.publish.base import Delivered, Rejected, Retry
from factories import message

REFUSED = Retry("the broker did not accept the message")
BEHIND = Retry("an earlier message about the same key was not taken")


def batch_of(keys: str, *, ordered: bool = True) -> Batch:
    messages = [msgspec.structs.replace(message(f"event-{n}"), key=key) for n, key in enumerate(keys)]
    return Batch(messages, "videos", ordered=ordered)


def send(batch: Batch) -> list[int]:
    """Send what can be sent, with tags that count from 1 by place; the places."""
    places = []
    while (place := batch.next_place()) is not None:
        batch.sent(place, place + 1)
        places.append(place)
    return places


def answer(batch: Batch, place: int, *, accepted: bool = True) -> None:
    batch.confirmed(place + 1, multiple=False, accepted=accepted)


def test_without_ordering_everything_is_sent_at_once() -> None:
    assert send(batch_of("aab", ordered=False)) == [0, 1, 2]


def test_nothing_is_sent_behind_an_unanswered_message_about_the_same_key() -> None:
    batch = batch_of("abac")
    assert send(batch) == [0, 1]
    answer(batch, 1)
    assert send(batch) == []
    answer(batch, 0)
    assert send(batch) == [2, 3]


def test_what_stands_behind_a_refused_message_is_tried_again_and_other_keys_go_on() -> None:
    batch = batch_of("abaaca")
    send(batch)
    answer(batch, 0, accepted=False)
    assert send(batch) == [4]
    answer(batch, 1)
    answer(batch, 4)
    assert batch.is_answered
    assert batch.outcomes == [REFUSED, Delivered(), BEHIND, BEHIND, Delivered(), BEHIND]


def test_what_stands_behind_an_unroutable_message_is_tried_again() -> None:
    batch = batch_of("aa")
    send(batch)
    batch.returned("event-0")
    answer(batch, 0)
    assert send(batch) == []
    assert batch.outcomes == [Retry("no queue is bound for the routing key videos"), BEHIND]


def test_what_stands_behind_a_rejected_message_is_sent() -> None:
    batch = batch_of("aab")
    batch.unfit(batch.next_place() or 0)
    assert send(batch) == [1, 2]
    assert isinstance(batch.outcomes[0], Rejected)
