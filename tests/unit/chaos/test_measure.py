"""How long recovery took: measured where it can be seen, and said where it cannot."""

import pytest
from chaos.history import Injury
from chaos.measure import Delay, late_by_chance, normal_seconds, percentile, recoveries, undisturbed
from chaos.plan import Kind

KILLED = Injury(Kind.KILL_WORKER, 100.0, 100.0)
FAST, SLOW = 0.05, 3.0


def delays(slow_until: float, first: float = 90.0, last: float = 130.0) -> list[Delay]:
    """One write a tenth of a second; those from 100 s on are slow for a while."""
    times = [first + number / 10 for number in range(int((last - first) * 10))]
    return [(at, SLOW if 100.0 <= at < slow_until else FAST) for at in times]


def seconds(found: list[Delay], *injuries: Injury) -> float | None:
    return recoveries(found, injuries, ends_at=130.0)[0].seconds


def test_a_fault_that_slows_nothing_is_recovered_from_at_the_next_write() -> None:
    assert seconds(delays(slow_until=0.0), KILLED) == pytest.approx(0.0, abs=0.1)


def test_recovery_lasts_until_no_later_write_is_slow() -> None:
    assert seconds(delays(slow_until=104.0), KILLED) == pytest.approx(4.0, abs=0.11)
    assert seconds(delays(slow_until=100.2), KILLED) == pytest.approx(0.2, abs=0.11)


@pytest.mark.parametrize(("late", "expected"), [(5, 4.0), (6, 20.6)])
def test_late_events_count_where_more_than_a_tenth_of_those_in_five_seconds_are(
    late: int, expected: float
) -> None:
    found = delays(slow_until=104.0)
    place = found.index((120.0, FAST))
    found[place : place + late] = [(at, SLOW) for at, _ in found[place : place + late]]
    assert seconds(found, KILLED) == pytest.approx(expected, abs=0.11)


def test_without_acknowledged_writes_nothing_has_recovered() -> None:
    away = [each for each in delays(slow_until=0.0) if not 100.0 <= each[0] < 106.0]
    assert seconds(away, KILLED) == pytest.approx(6.0, abs=0.11)


def test_a_fault_that_follows_too_soon_hides_the_recovery() -> None:
    assert seconds(delays(slow_until=104.0), KILLED, Injury(Kind.WAY_CUT, 103.0, 103.0)) is None


def test_where_the_end_of_a_recovery_was_not_seen_it_is_known_how_long_it_took_at_least() -> None:
    next_fault = Injury(Kind.WAY_CUT, 110.0, 110.0)
    found = recoveries(delays(slow_until=120.0), [KILLED, next_fault], ends_at=130.0)[0]
    assert (found.seconds, found.at_least_seconds) == (None, pytest.approx(9.5))
    assert recoveries(delays(slow_until=104.0), [KILLED], 130.0)[0].at_least_seconds == pytest.approx(
        4.0, abs=0.11
    )


def test_writes_that_the_next_fault_delays_are_not_put_down_to_the_one_before() -> None:
    late = [(at, SLOW if at >= 109.8 else FAST) for at, _ in delays(slow_until=0.0)]
    assert seconds(late, KILLED, Injury(Kind.WAY_CUT, 110.0, 112.0)) == pytest.approx(0.0, abs=0.1)


def test_a_fault_within_another_hides_the_recovery_of_both() -> None:
    outer, inner = Injury(Kind.STOP_GATEWAY, 100.0, 103.0), Injury(Kind.STOP_WORKER, 101.0, 102.0)
    found = recoveries(delays(slow_until=0.0), [outer, inner], ends_at=130.0)
    assert [each.seconds for each in found] == [None, None]


def test_writes_near_a_fault_or_under_way_when_it_begins_are_disturbed() -> None:
    found = [(90.0, 0.1), (99.95, 0.1), (103.0, 0.2), (104.9, 0.3), (105.1, 0.4)]
    assert undisturbed(found, [KILLED, Injury(Kind.WAY_CUT, 99.0, 99.0)]) == [0.1, 0.4]
    assert undisturbed(found, []) == [0.1, 0.1, 0.2, 0.3, 0.4]


def test_the_last_late_event_of_a_fault_is_found_by_its_receipt_however_few_there_are() -> None:
    hang = Injury(Kind.ENDPOINT_HANGS, 100.0, 102.0)
    swallowed = (101.0, 5.5)
    found = sorted([*delays(slow_until=0.0), swallowed])
    (recovery,) = recoveries(found, [hang], ends_at=130.0)
    assert recovery.seconds == pytest.approx(0.0, abs=0.11), "one event is no patch"
    assert recovery.last_late_seconds == pytest.approx(4.5)
    assert recoveries(delays(slow_until=0.0), [hang], 130.0)[0].last_late_seconds == 0


def test_what_is_late_long_after_a_fault_or_beside_another_is_not_put_down_to_it() -> None:
    found = sorted([*delays(slow_until=0.0), (105.2, 9.0)])
    assert recoveries(found, [KILLED], ends_at=130.0)[0].last_late_seconds == 0
    beside = Injury(Kind.WAY_CUT, 99.5, 100.5)
    assert [each.last_late_seconds for each in recoveries(found, [KILLED, beside], 130.0)] == [None, None]


def test_seconds_with_a_late_event_are_counted_where_nothing_was_broken() -> None:
    found = [
        (at / 4, 0.9 if at in (8, 9, 40, 90) else 0.1) for at in range(100)
    ]  # in the seconds 2, 10 and 22
    assert late_by_chance(found, [], 0.5) == pytest.approx(3 / 25)
    assert late_by_chance(found, [Injury(Kind.KILL_JVM, 9.4, 9.6)], 0.5) == pytest.approx(2 / 20)
    assert late_by_chance([], [], 0.5) == 0


def test_what_is_normal_depends_on_the_machine() -> None:
    assert normal_seconds([(float(at), 0.1) for at in range(20)], []) == 0.5
    assert normal_seconds([(float(at), 0.3) for at in range(20)], []) == pytest.approx(1.2)
    slow_after_the_fault = [(float(at), 9.0 if 100 <= at < 104 else 0.1) for at in range(90, 130)]
    assert normal_seconds(slow_after_the_fault, [KILLED]) == 0.5


def test_percentiles_of_nothing_are_nothing() -> None:
    assert percentile([], 50) == 0.0
    assert percentile([1.0, 2.0, 3.0], 50) == 2.0
    assert percentile([1.0, 2.0, 3.0], 99) == 3.0


def test_an_event_that_was_late_far_from_any_fault_counts_however_late_it_was() -> None:
    injuries = [Injury(Kind.KILL_JVM, 10.0, 10.0), Injury(Kind.KILL_JVM, 60.0, 60.0)]
    assert undisturbed([(40.0, 25.0), (59.8, 2.0), (12.0, 3.0)], injuries) == [25.0]
