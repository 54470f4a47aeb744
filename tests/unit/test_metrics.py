"""What the pipeline counts."""

from bucketwire.metrics import DELIVERY, observe_deliveries

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
