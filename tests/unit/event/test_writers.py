"""Messages that are written straight have the bytes that the structs give, whatever is in the change."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from itertools import permutations, product

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bucketwire.event.change import (
    BucketRef,
    ObjectChange,
    ObjectState,
    Origin,
    Status,
    Versioning,
    encode_change,
    read_change,
)
from bucketwire.event.compose import Subscription
from bucketwire.event.dialect import CEPH, DIALECTS
from bucketwire.event.formats import layout
from bucketwire.event.installation import Installation
from bucketwire.event.message import Message
from bucketwire.event.name import Operation
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
MARKS = [layout.EVENT_NAME, layout.KEY, layout.TIME, layout.NAME, layout.SIZE, layout.EVENT_ID]
CREATIONS = list(layout.CREATED)
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
BUCKETS = st.builds(
    lambda text, versioning: BucketRef(f"{text}-id", text, f"owner of {text}", f"{text}-1", versioning),
    TEXT,
    st.sampled_from(Versioning),
)
"""Two of them with one id differ in nothing but the versioning."""
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


@given(
    changes=st.lists(CHANGES, min_size=1, max_size=4), rule_id=TEXT, topic=TOPICS, installation=INSTALLATIONS
)
def test_any_change_has_the_bytes_that_the_structs_give(
    changes: list[ObjectChange], rule_id: str, topic: Topic, installation: Installation
) -> None:
    subscription = Subscription(rule(id=rule_id), topic, installation)
    for each in changes:
        assert composed(each, subscription) == subscription.compose(each)


def composed(changed: ObjectChange, subscription: Subscription) -> Message:
    """The second message about its bucket: from then on they are written straight."""
    read, is_plain = read_change(encode_change(changed))
    make = subscription.write if is_plain else subscription.compose
    make(read)
    return make(read)


def usual_change() -> ObjectChange:
    new = msgspec.structs.replace(
        state(7, "v1"), content_type="video/mp4", metadata={"color": "red"}, tags={"team": "blue"}
    )
    plain = change("videos/2026/one.mp4")
    bucket = msgspec.structs.replace(plain.bucket, versioning=Versioning.ENABLED)
    return msgspec.structs.replace(plain, bucket=bucket, new=new)


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
        subscription = Subscription(rule(), topic(**attributes), Installation(dialect))
        assert composed(GOLDEN[case], subscription) == subscription.compose(GOLDEN[case])


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("attributes", ATTRIBUTES, ids=str)
def test_every_field_of_a_new_object_may_be_odd(dialect: str, attributes: dict[str, str]) -> None:
    subscription = Subscription(rule(), topic(**attributes), Installation(DIALECTS[dialect]))
    for odd in (*ODD, *MARKS):
        for each in with_one_odd_value(usual_change(), odd):
            assert composed(each, subscription) == subscription.compose(each)


@pytest.mark.parametrize("named", ["rule", "bucket", "opaque"])
@pytest.mark.parametrize("attributes", ATTRIBUTES, ids=str)
def test_names_that_look_like_marks_do_no_harm(attributes: dict[str, str], named: str) -> None:
    bucket = usual_change().bucket
    for mark in MARKS:
        name = {"rule": "rule", "bucket": "bucket", "opaque": "opaque"} | {named: mark}
        changed = msgspec.structs.replace(
            usual_change(), bucket=msgspec.structs.replace(bucket, name=name["bucket"])
        )
        mine = topic(**attributes, OpaqueData=name["opaque"])
        subscription = Subscription(rule(id=name["rule"]), mine, INSTALLATION)
        assert composed(changed, subscription) == subscription.compose(changed)


@pytest.mark.parametrize("operation", CREATIONS)
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("attributes", ATTRIBUTES, ids=str)
@pytest.mark.parametrize("key", ["videos/2026/one.mp4", "a b+c", "käse"])
def test_the_usual_change_is_written_without_the_structs(
    operation: Operation, dialect: str, attributes: dict[str, str], key: str
) -> None:
    usual = msgspec.structs.replace(usual_change(), operation=operation, key=key)
    subscription = Subscription(rule(), topic(**attributes), Installation(DIALECTS[dialect]))
    assert written_alone(usual, subscription) == subscription.compose(usual)


def written_alone(changed: ObjectChange, subscription: Subscription) -> Message:
    """What the writer makes of it, without help from the structs."""
    rendering = subscription.rendering(changed.bucket)
    write = subscription.writer(msgspec.structs.replace(rendering, compose=refused, write_other=refused))
    return write(changed)


@pytest.mark.parametrize("metadata", [{}, {"one": "1"}, {"two": "2", "one": "1", "three": "3"}], ids=len)
@pytest.mark.parametrize(
    ("versioning", "version"),
    [
        (Versioning.UNVERSIONED, None),
        (Versioning.SUSPENDED, None),
        (Versioning.SUSPENDED, "v1"),
        (Versioning.ENABLED, "v1"),
    ],
)
@pytest.mark.parametrize("attributes", ATTRIBUTES, ids=str)
def test_whatever_an_object_has_not_is_left_out_without_the_structs(
    attributes: dict[str, str], versioning: Versioning, version: str | None, metadata: dict[str, str]
) -> None:
    replace, usual = msgspec.structs.replace, usual_change()
    subscription = Subscription(rule(), topic(**attributes), INSTALLATION)
    for content_type in (None, "", "text/plain"):
        new = replace(usual.new, version_id=version, content_type=content_type, metadata=metadata)
        changed = replace(usual, new=new, bucket=replace(usual.bucket, versioning=versioning))
        assert written_alone(changed, subscription) == subscription.compose(changed)


@pytest.mark.parametrize("attributes", ATTRIBUTES, ids=str)
def test_times_around_every_turn_of_digits(attributes: dict[str, str]) -> None:
    """Of the second, of the digits that are kept with it, and within the second in which those turn."""
    subscription = Subscription(rule(), topic(**attributes), INSTALLATION)
    turn, second = 6265 << 48, 1_000_000_000
    whole = turn - turn % second
    around = [
        moment + offset
        for moment in (0, turn, whole, whole + second, whole + 2 * second)
        for offset in (0, 1, 999_999, 1_000_000)
    ]
    for at_ns in [*around, *(at_ns - 1 for at_ns in reversed(around) if at_ns)]:
        changed = msgspec.structs.replace(usual_change(), committed_at_ns=at_ns)
        message = written_alone(changed, subscription)
        assert message == subscription.compose(changed)
        assert message.event_id.startswith(f"{at_ns:016x}")
        in_utc = datetime.fromtimestamp(at_ns // second, UTC).strftime("%Y-%m-%dT%H:%M:%S.")
        assert f"{in_utc}{at_ns % second // 1_000_000:03d}".encode() in message.body


@given(change=CHANGES)
def test_a_change_is_plain_if_no_text_in_it_is_escaped(change: ObjectChange) -> None:
    read, is_plain = read_change(encode_change(change))
    assert read == change
    texts = texts_of(msgspec.to_builtins(change))
    assert is_plain == all(json.dumps(text, ensure_ascii=False) == f'"{text}"' for text in texts)


def texts_of(value: object) -> Iterator[str]:
    """All text in it, names among them."""
    match value:
        case str():
            yield value
        case dict():
            for name, held in value.items():
                yield from texts_of(name)
                yield from texts_of(held)


@pytest.mark.parametrize("attributes", ATTRIBUTES, ids=str)
def test_a_bucket_may_change_between_messages(attributes: dict[str, str]) -> None:
    replace, usual = msgspec.structs.replace, usual_change()
    buckets = [
        *(replace(usual.bucket, versioning=versioning) for versioning in Versioning),
        replace(usual.bucket, id="another"),
        replace(usual.bucket, id="a third", name="videos"),
    ]
    for before, after in permutations(buckets, 2):
        subscription = Subscription(rule(), topic(**attributes), INSTALLATION)
        for bucket in (before, before, after, after):
            for new in (usual.new, replace(usual.new, version_id=None)):
                changed = replace(usual, bucket=bucket, new=new)
                assert subscription.write(changed) == subscription.compose(changed)


def test_threads_may_share_a_subscription() -> None:
    """Also while the writer is made, for buckets and seconds that alternate."""
    replace, usual = msgspec.structs.replace, usual_change()
    changes = [
        replace(
            usual,
            committed_at_ns=usual.committed_at_ns + number * 300_000_007,
            bucket=replace(usual.bucket, id=f"bucket-{number % 3}"),
        )
        for number in range(400)
    ]
    for attributes in ATTRIBUTES:
        subscription = Subscription(rule(), topic(**attributes), INSTALLATION)
        composed = [subscription.compose(each) for each in changes]
        with ThreadPoolExecutor(4) as threads:
            written = [threads.submit(written_all, changes, subscription) for _ in range(4)]
            assert all(each.result() == composed for each in written)


def written_all(changes: list[ObjectChange], subscription: Subscription) -> list[Message]:
    return [subscription.write(each) for each in changes]


def test_a_second_message_makes_the_writer_and_the_first_does_not() -> None:
    subscription = Subscription(rule(), topic(), INSTALLATION)
    unlearnt = subscription.write
    for operation in (Operation.DELETE, Operation.DELETE, Operation.PUT):
        subscription.write(change(operation=operation))
        assert subscription.write == unlearnt
    subscription.write(change(operation=Operation.COPY))
    assert subscription.write != unlearnt


def test_a_text_without_utf_8_is_refused_in_both_ways() -> None:
    subscription = Subscription(rule(), topic(), INSTALLATION)
    composed(usual_change(), subscription)
    broken = msgspec.structs.replace(usual_change(), key="\ud800")
    for write in (subscription.write, subscription.compose):
        with pytest.raises(UnicodeEncodeError):
            write(broken)
