"""What the pipeline counts."""

import pytest

from bucketwire import metrics
from bucketwire.metrics import DELIVERY, OTHER_TOPICS, PUBLISH_CRITICAL, count_critical, observe_deliveries
from factories import TOPIC_ARN

SECOND_NS = 1_000_000_000


def samples() -> dict[tuple[str, str], float]:
    (family,) = DELIVERY.collect()
    return {(each.name, each.labels.get("le", "")): each.value for each in family.samples}


def test_many_deliveries_are_observed_as_one_by_one() -> None:
    before = samples()
    now_ns = 1_000 * SECOND_NS
    delays = [0.0, 0.02, 0.021, 0.5, 3.0, 5_000.0, -1.0]
    observe_deliveries([now_ns - int(each * SECOND_NS) for each in delays], now_ns)
    observe_deliveries([], now_ns)
    grown = {key: value - before[key] for key, value in samples().items() if value != before[key]}
    by_hand = [max(0.0, each) for each in delays]
    assert grown["bucketwire_delivery_seconds_count", ""] == len(delays)
    assert round(grown["bucketwire_delivery_seconds_sum", ""], 6) == round(sum(by_hand), 6)
    for (name, bound), count in grown.items():
        if name.endswith("_bucket"):
            assert count == sum(1 for each in by_hand if each <= float(bound)), bound
    assert grown["bucketwire_delivery_seconds_bucket", "+Inf"] == len(delays)


def test_an_alarm_is_counted_by_topic_and_the_labels_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "MOST_TOPICS", 2)
    monkeypatch.setattr(metrics, "_critical", set())
    names = [f"{TOPIC_ARN}-{number}" for number in range(4)]
    before = {name: PUBLISH_CRITICAL.labels(name)._value.get() for name in (names[0], OTHER_TOPICS)}
    for name in (*names, names[0]):
        count_critical(name)
    assert PUBLISH_CRITICAL.labels(names[0])._value.get() == before[names[0]] + 2
    assert PUBLISH_CRITICAL.labels(OTHER_TOPICS)._value.get() == before[OTHER_TOPICS] + 2
    labels = {each.labels["topic"] for family in PUBLISH_CRITICAL.collect() for each in family.samples}
    assert names[2] not in labels
