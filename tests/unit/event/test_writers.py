"""Messages that are written straight have the bytes that the structs give, whatever is in the change."""

from collections.abc import Iterator
from itertools import product

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bucketwire.event import compose as composing
from bucketwire.event.change import BucketRef, ObjectChange, ObjectState, Origin, Status, Versioning
from bucketwire.event.compose import PLANS_KEPT, Plan, compose
from bucketwire.event.dialect import AWS, CEPH, DIALECTS
from bucketwire.event.formats import layout
from bucketwire.event.formats.cos_writer import cos_writer
from bucketwire.event.formats.layout import marked_change
from bucketwire.event.formats.s3_writer import s3_writer
from bucketwire.event.installation import Installation
from bucketwire.event.message import Message
from bucketwire.event.name import Operation
from bucketwire.event.rule import Rule
from bucketwire.event.topic import Topic
from factories import change, rule, state, topic
from golden.cases import CHANGES as GOLDEN

ODD = [
    "",
    '"',
    "\\",
    "\0",
    "\x1f",
    "\x7f",
    "\x85",
    "\u2028",
    "\ufffe",
    "%s",
    "{0}",
    "ä",
    "a b",
    "null",
    "😀",
    *"[]{},:",
]
MARKS = [layout.KEY, layout.TIME, layout.NAME, layout.SIZE, layout.EVENT_ID]
CREATIONS = [Operation.PUT, Operation.POST, Operation.COPY, Operation.COMPLETE_MULTIPART_UPLOAD]
ATTRIBUTES: list[dict[str, str]] = [
    {**form, **order}
    for form in (
        {},
        {"cloudevents": "true"},
        {"format": "cos"},
        {"format": "cloudevents"},
        {"format": "cloudevents", "cloudevents-mode": "binary"},
    )
    for order in ({}, {"ordering": "key"})
]
TEXT = (
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
    | st.text("abcXYZ019-_./", max_size=12)
    | st.lists(st.sampled_from([*ODD, *MARKS, "a"]), max_size=3).map("".join)
)
ENTRIES = st.dictionaries(TEXT, TEXT, max_size=3)
STATES = st.builds(
    ObjectState,
    st.sampled_from(Status),
    st.integers(0, 2**63 - 1),
    TEXT,
    st.none() | TEXT,
    st.none() | TEXT,
    ENTRIES,
    ENTRIES,
)
BUCKETS = st.builds(BucketRef, TEXT, TEXT, TEXT, TEXT, st.sampled_from(Versioning))
CHANGES = st.builds(
    ObjectChange,
    st.sampled_from(CREATIONS) | st.sampled_from(Operation),
    st.integers(0, 2**62),
    BUCKETS,
    TEXT,
    st.builds(Origin, TEXT, TEXT, TEXT, TEXT),
    st.none() | STATES,
    st.none() | STATES,
    st.none() | STATES,
)
TOPICS = st.builds(
    lambda attributes, more, opaque: topic(**attributes, **more, OpaqueData=opaque),
    st.sampled_from(ATTRIBUTES),
    st.sampled_from([{}, {"before-image": "true"}]),
    TEXT,
)
INSTALLATION = Installation(CEPH)
INSTALLATIONS = st.builds(Installation, st.sampled_from(list(DIALECTS.values())), TEXT, TEXT)


def rendered(changed: ObjectChange, rule: Rule, topic: Topic, installation: Installation) -> Message:
    """By the structs alone."""
    return Plan(rule, topic, installation, changed.bucket).render(changed)


@given(
    changes=st.lists(CHANGES, min_size=1, max_size=4), rule_id=TEXT, topic=TOPICS, installation=INSTALLATIONS
)
def test_any_change_has_the_bytes_that_the_structs_give(
    changes: list[ObjectChange], rule_id: str, topic: Topic, installation: Installation
) -> None:
    subscribed = rule(id=rule_id)
    for each in changes:
        message = composed(each, subscribed, topic, installation)
        assert message == rendered(each, subscribed, topic, installation)


def composed(changed: ObjectChange, subscribed: Rule, topic: Topic, installation: Installation) -> Message:
    """The second message of its kind: from then on they are written straight."""
    for _ in range(2):
        (message,) = compose(changed, [(subscribed, topic)], installation)
    return message


def usual_change() -> ObjectChange:
    new = msgspec.structs.replace(
        state(7, "v1"), content_type="video/mp4", metadata={"color": "red"}, tags={"team": "blue"}
    )
    return msgspec.structs.replace(change("videos/2026/one.mp4"), new=new)


def with_one_odd_value(usual: ObjectChange, odd: str) -> Iterator[ObjectChange]:
    """The change, with this text in each of its fields in turn."""
    replace, new = msgspec.structs.replace, usual.new
    yield replace(usual, key=odd)
    for name in ("principal_id", "source_ip", "request_id", "host_id"):
        yield replace(usual, origin=replace(usual.origin, **{name: odd}))
    for name in ("etag", "version_id", "content_type"):
        yield replace(usual, new=replace(new, **{name: odd}))
    for name in ("metadata", "tags"):
        for entries in ({odd: "value"}, {"name": odd}, {odd: "value", "name": odd}, {}):
            yield replace(usual, new=replace(new, **{name: entries}))


def refused(_: ObjectChange) -> Message:
    raise AssertionError("the structs were asked")


@pytest.mark.parametrize("case", GOLDEN)
def test_a_golden_message_is_the_same_in_both_ways(case: str) -> None:
    for attributes, dialect in product(ATTRIBUTES, DIALECTS.values()):
        subscription, installation = (rule(), topic(**attributes)), Installation(dialect)
        message = composed(GOLDEN[case], *subscription, installation)
        assert message == rendered(GOLDEN[case], *subscription, installation)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("attributes", ATTRIBUTES, ids=str)
def test_every_field_of_a_new_object_may_be_odd(dialect: str, attributes: dict[str, str]) -> None:
    subscription, installation = (rule(), topic(**attributes)), Installation(DIALECTS[dialect])
    for odd in (*ODD, *MARKS):
        for each in with_one_odd_value(usual_change(), odd):
            message = composed(each, *subscription, installation)
            assert message == rendered(each, *subscription, installation)


@pytest.mark.parametrize("named", ["rule", "bucket", "opaque"])
@pytest.mark.parametrize("attributes", ATTRIBUTES, ids=str)
def test_names_that_look_like_marks_do_no_harm(attributes: dict[str, str], named: str) -> None:
    bucket = usual_change().bucket
    for mark in MARKS:
        name = {"rule": "rule", "bucket": "bucket", "opaque": "opaque"} | {named: mark}
        changed = msgspec.structs.replace(
            usual_change(), bucket=msgspec.structs.replace(bucket, name=name["bucket"])
        )
        subscription = rule(id=name["rule"]), topic(**attributes, OpaqueData=name["opaque"])
        message = composed(changed, *subscription, INSTALLATION)
        assert message == rendered(changed, *subscription, INSTALLATION)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("attributes", ATTRIBUTES, ids=str)
@pytest.mark.parametrize("key", ["videos/2026/one.mp4", "a b+c", "käse"])
def test_the_usual_change_is_written_without_the_structs(
    dialect: str, attributes: dict[str, str], key: str
) -> None:
    usual = msgspec.structs.replace(usual_change(), key=key)
    plan = Plan(rule(), topic(**attributes), Installation(DIALECTS[dialect]), usual.bucket)
    rendering = msgspec.structs.replace(plan.rendering(), render=refused)
    marked = marked_change(Operation.PUT, usual.bucket)
    is_cos = attributes.get("format") == "cos"
    write = cos_writer(marked, rendering) if is_cos else s3_writer(marked, rendering, DIALECTS[dialect])
    assert write(usual) == plan.render(usual)


def test_a_plan_serves_its_own_topic_installation_and_bucket_alone() -> None:
    subscribed = rule()
    topics = [topic(), topic(name="other"), topic(format="cos")]
    installations = [Installation(AWS), Installation(CEPH)]
    bucket = usual_change().bucket
    buckets = [bucket, msgspec.structs.replace(bucket, name="renamed")]
    for _ in range(2):
        for each, installation, its_bucket in product(topics, installations, buckets):
            changed = msgspec.structs.replace(usual_change(), bucket=its_bucket)
            message = composed(changed, subscribed, each, installation)
            assert message == rendered(changed, subscribed, each, installation)


def test_plans_are_bounded() -> None:
    for _ in range(PLANS_KEPT + 10):
        compose(change(operation=Operation.DELETE), [(rule(), topic())], Installation(AWS))
    assert len(composing._plans) <= PLANS_KEPT


def test_a_second_message_makes_the_writer_and_the_first_does_not() -> None:
    usual = usual_change()
    plan = Plan(rule(), topic(), Installation(AWS), usual.bucket)
    assert plan.writer(Operation.PUT) == plan.render
    assert plan.writer(Operation.PUT) != plan.render
    assert plan.writers[Operation.PUT](usual) == plan.render(usual)
    assert plan.writer(Operation.DELETE) == plan.render


def test_a_text_without_utf_8_is_refused_in_both_ways() -> None:
    subscribed, plain = rule(), topic()
    composed(usual_change(), subscribed, plain, INSTALLATION)
    broken = msgspec.structs.replace(usual_change(), key="\ud800")
    for write in (
        lambda: compose(broken, [(subscribed, plain)], INSTALLATION),
        lambda: rendered(broken, subscribed, plain, INSTALLATION),
    ):
        with pytest.raises(UnicodeEncodeError):
            write()
