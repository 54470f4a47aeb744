"""Nobody else tries what a worker has in hand, for as long as the worker lives and not for much longer."""

from threading import Thread

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

FAILED = TopicHealth(TOPIC_ARN, 4, 0, "HTTP 503")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(claims, "time", made)
    return made


@pytest.fixture
def ours(metabase: Metabase) -> Claims:
    metabase.queue.park([message("event-1", TOPIC_ARN)], due_at_ns=0, attempts=1, reason="HTTP 503")
    return Claims(metabase.queue)


def is_due(metabase: Metabase, clock: Clock) -> bool:
    return TOPIC_ARN in metabase.queue.due_topics(clock.time_ns())


def ends_ns(metabase: Metabase) -> int:
    return metabase.queue.unhealthy()[TOPIC_ARN].retry_at_ns


def test_a_claim_ends_soon_after_the_process_that_kept_it(
    ours: Claims, metabase: Metabase, clock: Clock
) -> None:
    ours.take([FAILED])
    for _ in range(100):
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
    assert metabase.queue.unhealthy() == {TOPIC_ARN: TopicHealth(TOPIC_ARN, 4, until_ns, "HTTP 503")}


def test_a_topic_that_has_not_failed_can_be_claimed(ours: Claims, metabase: Metabase, clock: Clock) -> None:
    ours.take([TopicHealth(TOPIC_ARN)])
    assert not is_due(metabase, clock)


def test_what_was_given_up_is_not_kept(ours: Claims, metabase: Metabase, clock: Clock) -> None:
    ours.take([FAILED])
    ours.give_up(TopicHealth(TOPIC_ARN))
    ours.keep()
    assert metabase.queue.unhealthy() == {}
    assert is_due(metabase, clock)


def test_what_was_dropped_stays_claimed_for_a_moment(ours: Claims, metabase: Metabase, clock: Clock) -> None:
    ours.take([FAILED])
    ours.drop(TOPIC_ARN)
    assert not is_due(metabase, clock)
    clock.pass_by(claims.SECONDS)
    ours.keep()
    assert is_due(metabase, clock)


def test_a_claim_that_has_run_out_is_not_taken_back(ours: Claims, metabase: Metabase, clock: Clock) -> None:
    """Another may have the topic by then."""
    ours.take([FAILED])
    ours.check(TOPIC_ARN)
    clock.pass_by(claims.SECONDS + 1)
    ours.keep()
    with pytest.raises(Conflict, match="has run out"):
        ours.check(TOPIC_ARN)
    with pytest.raises(Conflict):
        ours.give_up(TopicHealth(TOPIC_ARN))
    assert is_due(metabase, clock)


def test_claims_that_could_not_be_kept_for_a_moment_are_kept_after_it(
    ours: Claims, metabase: Metabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread outlives a metabase that is away, and says so."""
    monkeypatch.setattr(claims, "KEEP_EVERY_SECONDS", 0.01)
    monkeypatch.setattr(claims, "SECONDS", 600.0)  # it does not run out, however slow the machine is
    ours.take([FAILED])
    report, refused = metabase.queue.report, []

    def report_at_last(*topics: TopicHealth) -> None:
        if len(refused) < 3:
            refused.append(topics)
            raise Unavailable("the disk is full")
        report(*topics)

    first_ns = ends_ns(metabase)
    with structlog.testing.capture_logs() as lines:
        monkeypatch.setattr(metabase.queue, "report", report_at_last)
        Thread(target=ours.keep_always, daemon=True).start()
        until(lambda: ends_ns(metabase) > first_ns, 30, lambda: str(lines))
    ours.drop(TOPIC_ARN)
    told = [line["reason"] for line in lines if line["event"] == "claims_not_kept"]
    assert told == ["Unavailable: the disk is full"] * 3
