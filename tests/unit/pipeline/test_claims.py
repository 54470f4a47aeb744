"""Nobody else tries what a worker has in hand, for as long as the worker lives and not for much longer."""

from threading import Event, Thread

import pytest
import structlog

from bucketwire.errors import Conflict, Unavailable
from bucketwire.metabase.base import Metabase
from bucketwire.metabase.values import TopicHealth
from bucketwire.pipeline import claims
from bucketwire.pipeline.claims import Claims
from clock import Clock
from factories import TOPIC_ARN, message
from wire import until

CALL_SECONDS = 5.0
FAILED = TopicHealth(TOPIC_ARN, 4, 0, "HTTP 503")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(claims, "time", made)
    return made


@pytest.fixture
def ours(metabase: Metabase) -> Claims:
    """Of a worker; the topic has a message parked, and has failed."""
    metabase.queue.park([message("event-1", TOPIC_ARN)], due_at_ns=0, attempts=1, reason="HTTP 503")
    metabase.queue.report(FAILED)
    return Claims(metabase.queue, CALL_SECONDS)


@pytest.fixture
def theirs(metabase: Metabase) -> Claims:
    """Of another worker."""
    return Claims(metabase.queue, CALL_SECONDS)


def is_due(metabase: Metabase, clock: Clock) -> bool:
    return TOPIC_ARN in metabase.queue.due_topics(clock.time_ns())


def known(metabase: Metabase) -> TopicHealth:
    return metabase.queue.unhealthy()[TOPIC_ARN]


def test_a_claim_ends_soon_after_the_process_that_kept_it(
    ours: Claims, metabase: Metabase, clock: Clock
) -> None:
    assert ours.take([FAILED]) == [FAILED]
    for _ in range(60):
        clock.pass_by(claims.KEEP_EVERY_SECONDS)
        ours.keep()
        assert not is_due(metabase, clock)
    clock.pass_by(claims.SECONDS)
    assert is_due(metabase, clock)


def test_the_last_failure_can_be_read_while_a_claim_is_kept(
    ours: Claims, metabase: Metabase, clock: Clock
) -> None:
    ours.take([FAILED])
    clock.pass_by(1)
    ours.keep()
    until_ns = clock.time_ns() + int(claims.SECONDS * 1e9)
    assert known(metabase) == TopicHealth(TOPIC_ARN, 4, until_ns, "HTTP 503")


def test_a_topic_that_has_not_failed_can_be_claimed(ours: Claims, metabase: Metabase, clock: Clock) -> None:
    healthy = TopicHealth(TOPIC_ARN)
    metabase.queue.report(healthy)
    assert ours.take([healthy]) == [healthy]
    assert not is_due(metabase, clock)


def test_what_another_has_in_hand_is_passed_over(
    ours: Claims, theirs: Claims, metabase: Metabase, clock: Clock
) -> None:
    theirs.take([FAILED])
    assert ours.take([FAILED]) == [], "what is known of it is out of date"
    assert ours.take([known(metabase)]) == []
    with pytest.raises(Conflict):
        ours.check(TOPIC_ARN)
    clock.pass_by(claims.SECONDS)
    assert ours.take([known(metabase)]) != []


def test_a_time_from_a_clock_that_was_ahead_keeps_nobody_off(
    ours: Claims, metabase: Metabase, clock: Clock
) -> None:
    ahead = TopicHealth(TOPIC_ARN, 1, clock.time_ns() + 10**16, "HTTP 503")
    metabase.queue.report(ahead)
    assert ours.take([ahead]) == [ahead]


def test_what_was_given_up_is_not_kept(ours: Claims, metabase: Metabase, clock: Clock) -> None:
    ours.take([FAILED])
    ours.give_up(TopicHealth(TOPIC_ARN))
    ours.keep()
    assert metabase.queue.unhealthy() == {}
    assert is_due(metabase, clock)


def test_what_is_given_up_while_it_is_kept_stays_given_up(
    ours: Claims, metabase: Metabase, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The topic is told of after the thread has looked what is in hand, and before it writes."""
    ours.take([FAILED])
    failed_again = TopicHealth(TOPIC_ARN, 5, clock.time_ns() + 1, "HTTP 503")
    claim = metabase.queue.claim

    def claim_late(topics: list[TopicHealth], until_ns: int) -> set[str]:
        ours.give_up(failed_again)
        return claim(topics, until_ns)

    monkeypatch.setattr(metabase.queue, "claim", claim_late)
    ours.keep()
    assert known(metabase) == failed_again


def test_what_was_dropped_stays_claimed_for_a_moment(ours: Claims, metabase: Metabase, clock: Clock) -> None:
    ours.take([FAILED])
    ours.drop(TOPIC_ARN)
    assert not is_due(metabase, clock)
    clock.pass_by(claims.SECONDS)
    ours.keep()
    assert is_due(metabase, clock)


def test_a_topic_that_another_has_taken_after_a_pause_is_left_to_it(
    ours: Claims, theirs: Claims, metabase: Metabase, clock: Clock
) -> None:
    ours.take([FAILED])
    ours.check(TOPIC_ARN)
    clock.pass_by(claims.SECONDS + 1)
    theirs.take([known(metabase)])
    theirs_is_known = known(metabase)
    with pytest.raises(Conflict, match="has run out"):
        ours.check(TOPIC_ARN)
    ours.keep()
    with pytest.raises(Conflict):
        ours.give_up(TopicHealth(TOPIC_ARN))
    assert known(metabase) == theirs_is_known
    theirs.check(TOPIC_ARN)


def test_a_topic_that_nobody_has_taken_in_a_pause_is_kept(
    ours: Claims, theirs: Claims, metabase: Metabase, clock: Clock
) -> None:
    ours.take([FAILED])
    clock.pass_by(claims.SECONDS + 1)
    seen_in_the_pause = known(metabase)
    ours.keep()
    ours.check(TOPIC_ARN)
    assert theirs.take([seen_in_the_pause]) == []


def test_what_hangs_for_good_is_let_go(ours: Claims, metabase: Metabase, clock: Clock) -> None:
    ours.take([FAILED])
    with structlog.testing.capture_logs() as lines:
        for _ in range(int(CALL_SECONDS + claims.LONGEST_SECONDS) + 2):
            clock.pass_by(claims.KEEP_EVERY_SECONDS)
            ours.keep()
    assert [(line["event"], line["topic"]) for line in lines] == [("drain_hangs", TOPIC_ARN)]
    clock.pass_by(claims.SECONDS)
    assert is_due(metabase, clock)


def test_claims_that_could_not_be_kept_for_a_moment_are_kept_after_it(
    ours: Claims, metabase: Metabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread outlives a metabase that is away, and says so."""
    monkeypatch.setattr(claims, "KEEP_EVERY_SECONDS", 0.01)
    ours.take([FAILED])
    claim, refused = metabase.queue.claim, []

    def claim_at_last(topics: list[TopicHealth], until_ns: int) -> set[str]:
        if len(refused) < 3:
            refused.append(topics)
            raise Unavailable("the disk is full")
        return claim(topics, until_ns)

    first_ns = known(metabase).retry_at_ns
    with structlog.testing.capture_logs() as lines:
        monkeypatch.setattr(metabase.queue, "claim", claim_at_last)
        stopped = Event()
        keeper = Thread(target=ours.keep_until, args=[stopped])
        keeper.start()
        until(lambda: known(metabase).retry_at_ns > first_ns, 30, lambda: str(lines))
        stopped.set()
        keeper.join()
    told = [line["reason"] for line in lines if line["event"] == "claims_not_kept"]
    assert told == ["Unavailable: the disk is full"] * 3
