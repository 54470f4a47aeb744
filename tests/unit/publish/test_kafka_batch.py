"""The outcomes of one call to a Kafka publisher, as the producer's thread and the caller write them."""

from threading import Thread

from confluent_kafka import KafkaError

from bucketwire.publish.base import Delivered, Rejected, Retry
from bucketwire.publish.kafka_producer import Batch

LONG_SECONDS = 60.0
TOO_LARGE = KafkaError(KafkaError.MSG_SIZE_TOO_LARGE)
THROWN_AWAY = KafkaError(KafkaError._PURGE_QUEUE)


def test_a_batch_ends_with_its_last_outcome_whoever_brings_it() -> None:
    for refused_last in (True, False):
        batch = Batch(2)
        steps = [lambda: batch.answer(0, None, None), lambda: batch.refuse(1, TOO_LARGE)]  # noqa: B023 called here
        for step in steps if refused_last else reversed(steps):
            assert not batch.wait(0)
            step()
        assert batch.wait(0)
        assert batch.answered
        assert batch.outcomes == [Delivered(), Rejected("the message is too large for the Kafka topic")]


def test_no_outcome_is_missed_when_both_threads_write_at_once() -> None:
    for _ in range(200):
        batch = Batch(200)
        answers = Thread(target=lambda: [batch.answer(place, None, None) for place in range(0, 200, 2)])  # noqa: B023
        answers.start()
        for place in range(1, 200, 2):
            batch.refuse(place, TOO_LARGE)
        assert batch.wait(LONG_SECONDS)
        answers.join()


def test_a_batch_that_is_given_up_ends_without_being_answered() -> None:
    batch = Batch(1)
    batch.give_up(Retry("connection refused"))
    assert batch.wait(0)
    assert not batch.answered
    assert batch.dead == Retry("connection refused")


def test_a_message_that_was_thrown_away_has_no_outcome_and_is_not_answered() -> None:
    batch = Batch(2)
    batch.answer(0, None, None)
    batch.answer(1, THROWN_AWAY, None)
    assert batch.wait(0)
    assert batch.outcomes == [Delivered(), None]
    assert not batch.answered
    assert batch.cleared


def test_a_batch_that_was_given_up_is_cleared_when_its_last_message_is_thrown_away() -> None:
    batch = Batch(3)
    batch.withhold(1)
    batch.give_up(Retry("connection refused"))
    batch.answer(0, THROWN_AWAY, None)
    batch.clear(0)
    assert not batch.cleared
    waiting = Thread(target=batch.clear, args=[LONG_SECONDS])
    waiting.start()
    batch.answer(1, THROWN_AWAY, None)
    waiting.join(LONG_SECONDS / 2)
    assert not waiting.is_alive()
    assert batch.cleared
    assert not batch.answered
