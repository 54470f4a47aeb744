"""Every event goes by the rules that were in force at its write, whenever it is routed.

Configurations, single rules, objects and the bucket itself are put and deleted in any order, through two
gateways that take turns; then the whole change stream is routed and compared with what a naive oracle noted
at each write.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bucketwire.event.change import decode_change
from bucketwire.event.dialect import dialect_named
from bucketwire.event.installation import Installation
from bucketwire.metainfo.routing import Router
from gateway.in_process import InProcess
from gateway.notifications import document, prefix_filter, rule_element, topic_named

EVENTS = {"put": "s3:ObjectCreated:Put", "delete": "s3:ObjectRemoved:Delete"}
PATTERNS = (*EVENTS.values(), "s3:ObjectCreated:*", "s3:ObjectRemoved:*")
PREFIXES = ("", "a", "ab")
KEYS = ("a", "ab", "b")


@dataclass(frozen=True)
class Wanted:
    """A rule, as the oracle knows it."""

    id: str
    topic: str
    pattern: str
    prefix: str

    def takes(self, event: str, key: str) -> bool:
        return event.startswith(self.pattern.rstrip("*")) and key.startswith(self.prefix)


rules = st.builds(
    Wanted,
    st.sampled_from(["1", "2", "3"]),
    st.sampled_from(["one", "two"]),
    st.sampled_from(PATTERNS),
    st.sampled_from(PREFIXES),
)
steps = st.one_of(
    st.tuples(st.just("configure"), st.lists(rules, max_size=3, unique_by=lambda rule: rule.id)),
    st.tuples(st.just("configure one"), rules),
    st.tuples(st.just("remove one"), st.sampled_from(["1", "2", "3"])),
    st.tuples(st.sampled_from(["put", "delete"]), st.sampled_from(KEYS)),
    st.tuples(st.sampled_from(["put", "delete"]), st.sampled_from(KEYS)),
    st.tuples(st.just("make the bucket anew"), st.none()),
)


@dataclass
class Oracle:
    """Drives gateways, each in its turn, and remembers what each write must lead to."""

    gateways: Iterator[InProcess]
    merges: bool
    in_force: dict[str, Wanted] = field(default_factory=dict)
    keys: set[str] = field(default_factory=set)
    expected: list[tuple[str, str, set[tuple[str, str]]]] = field(default_factory=list)

    def take(self, step: tuple[str, object]) -> None:
        match step:
            case ("configure", list(wanted)):
                if self._put("", wanted):
                    kept = self.in_force if self.merges and wanted else {}
                    self.in_force = {**kept, **{rule.id: rule for rule in wanted}}
            case ("configure one", Wanted() as rule):
                if self._put(rule.id, [rule]):
                    self.in_force = {**self.in_force, rule.id: rule}
            case ("remove one", str(rule_id)):
                self._sent("DELETE", f"/media?notification={rule_id}")
                self.in_force.pop(rule_id, None)
            case ("put" | "delete" as action, str(key)):
                self._write(action, key)
            case _:
                self._make_anew()

    def _put(self, rule_id: str, wanted: list[Wanted]) -> bool:
        body = document(
            *(
                rule_element(
                    f"arn:aws:sns:us-east-1::{rule.topic}",
                    rule.id,
                    (rule.pattern,),
                    prefix_filter(rule.prefix) if rule.prefix else "",
                )
                for rule in wanted
            )
        )
        answered = next(self.gateways).signed("PUT", f"/media?notification={rule_id}", body)
        assert answered.status == 200 or (answered.status == 400 and not self.merges)
        return answered.status == 200

    def _write(self, action: str, key: str) -> None:
        self._sent(action.upper(), f"/media/{key}")
        self.keys = self.keys | {key} if action == "put" else self.keys - {key}
        event = EVENTS[action]
        takers = {(rule.id, rule.topic) for rule in self.in_force.values() if rule.takes(event, key)}
        if takers:
            self.expected.append((event, key, takers))

    def _make_anew(self) -> None:
        for key in sorted(self.keys):
            self._write("delete", key)
        self._sent("DELETE", "/media")
        self._sent("PUT", "/media")
        self.in_force = {}

    def _sent(self, method: str, target: str) -> None:
        assert next(self.gateways).signed(method, target).status in {200, 204}


def routed(gateway: InProcess, dialect: str) -> list[tuple[str, str, set[tuple[str, str]]]]:
    """The whole stream: event, key and the (rule, topic) pairs of each change."""
    metabase = gateway.metabase
    router = Router(metabase, Installation(dialect_named(dialect)))
    router.refresh()
    start = metabase.changes.start()
    slices = metabase.changes.split(start, metabase.changes.head(start, 10_000), 1)
    found = []
    for encoded in (encoded for part in slices for encoded in metabase.changes.read(part)):
        change, pairs = decode_change(encoded), set()
        for (arn, refusal), message in router.route(encoded):
            assert not refusal
            (record,) = json.loads(message.body)["Records"]
            pairs.add((record["s3"]["configurationId"], arn.rpartition(":")[2]))
        found.append((f"s3:{change.operation.value}", change.key, pairs))
    return found


@pytest.mark.parametrize("dialect", ["aws", "ceph"])
@given(taken=st.lists(steps, min_size=10, max_size=40))
@settings(max_examples=15)
def test_each_event_goes_by_the_rules_in_force_at_its_write(
    dialect: str, taken: list[tuple[str, object]]
) -> None:
    with TemporaryDirectory() as folder:
        gateways = [InProcess(Path(folder), dialect) for _ in range(2)]
        try:
            for name in ("one", "two"):
                topic_named(gateways[0], name)
            gateways[0].signed("PUT", "/media")
            oracle = Oracle(cycle(gateways), merges=dialect == "ceph")
            for step in taken:
                oracle.take(step)
            assert routed(gateways[0], dialect) == oracle.expected
        finally:
            for gateway in gateways:
                gateway.close()
