"""Messages that are written straight have the bytes that the structs give, whatever is in the change."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from itertools import permutations, product
from typing import Any

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
from bucketwire.event.compose import WORTH_A_WRITER, Subscription
from bucketwire.event.dialect import CEPH, DIALECTS
from bucketwire.event.formats import writer
from bucketwire.event.formats.twin import MANY
from bucketwire.event.installation import Installation
from bucketwire.event.message import Message
from bucketwire.event.name import REMOVALS, Operation
from bucketwire.event.topic import Topic
from factories import change, rule, state, topic
from golden.cases import CHANGES as GOLDEN
from golden.cases import FORMS

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
MARKS = [
    "730294616058117000",
    "730294616058117000 ",
    "918273645546372050",
    "730294616058117990",
    "730294616058117",
    "918273645546372",
    "73029461-6058-1170-70-",
    "730294616058117120918273645546372120",
]
"""What the marks of twins look like, whole and in part."""
CREATIONS = [Operation.PUT, Operation.POST, Operation.COPY, Operation.COMPLETE_MULTIPART_UPLOAD]
ATTRIBUTES: list[dict[str, str]] = [
    {**form, **order}
    for form in FORMS.values()
    for order in ({}, {"ordering": "key", "before-image": "true"})
]
TEXT = (
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
    | st.text("abcXYZ019-_./", max_size=12)
    | st.lists(st.sampled_from([*ODD, *MARKS, "a"]), max_size=3).map("".join)
)
PLAIN_TEXT = (
    st.text("abcXYZ019-_./ +%äé{}'\u65e5😀\x7f", max_size=6)
    | st.sampled_from(MARKS)
    | st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters='"\\'), max_size=6)
)
"""JSON escapes nothing in it."""


def changes_of(text: st.SearchStrategy[str]) -> st.SearchStrategy[ObjectChange]:
    """Two buckets with one id differ in nothing but the versioning."""
    entries = st.dictionaries(text, text, max_size=3) | st.dictionaries(text, text, min_size=4, max_size=7)
    states = st.none() | st.builds(
        ObjectState,
        st.sampled_from(Status),
        st.integers(0, 2**63 - 1),
        text,
        st.none() | text,
        st.none() | text,
        entries,
        entries,
    )
    buckets = st.builds(
        lambda name, versioning: BucketRef(f"{name}-id", name, f"owner of {name}", f"{name}-1", versioning),
        text,
        st.sampled_from(Versioning),
    )
    return st.builds(
        ObjectChange,
        st.sampled_from(Operation),
        st.integers(0, 2**62),
        buckets,
        text,
        st.builds(Origin, text, text, text, text),
        states,
        states,
        states,
    )


CHANGES = changes_of(TEXT)
TOPICS = st.builds(
    lambda attributes, more, opaque: topic(**(attributes | more), OpaqueData=opaque),
    st.sampled_from(ATTRIBUTES),
    st.sampled_from([{}, {"before-image": "true"}]),
    TEXT,
)
INSTALLATION = Installation(CEPH)
INSTALLATIONS = st.builds(Installation, st.sampled_from(list(DIALECTS.values())), TEXT, TEXT)


@given(
    changes=st.lists(CHANGES | changes_of(PLAIN_TEXT), min_size=1, max_size=4),
    rule_id=TEXT,
    topic=TOPICS,
    installation=INSTALLATIONS,
)
def test_any_change_has_the_bytes_that_the_structs_give(
    changes: list[ObjectChange], rule_id: str, topic: Topic, installation: Installation
) -> None:
    subscription = Subscription(rule(id=rule_id), topic, installation)
    for each in changes:
        assert composed(each, subscription) == subscription.compose(each)


@given(changes=st.lists(changes_of(PLAIN_TEXT), min_size=2, max_size=6), topic=TOPICS, data=st.data())
def test_no_writer_takes_a_change_of_another_shape(
    changes: list[ObjectChange], topic: Topic, data: st.DataObject
) -> None:
    """All of them are of one bucket and one kind, so that little tells their shapes apart."""
    first = changes[0]
    alike = [
        msgspec.structs.replace(each, bucket=first.bucket, operation=first.operation) for each in changes
    ]
    dialect = data.draw(st.sampled_from(list(DIALECTS.values())))
    subscription = Subscription(rule(), topic, Installation(dialect))
    learn(first, subscription)
    for each in alike:
        assert subscription.write(each) == subscription.compose(each)


def composed(changed: ObjectChange, subscription: Subscription) -> Message:
    """As a worker does, when changes of this shape are written straight, if ever."""
    read, is_plain = read_change(encode_change(changed))
    if not is_plain:
        return subscription.compose(read)
    learn(read, subscription)
    return subscription.write(read)


def learn(changed: ObjectChange, subscription: Subscription) -> None:
    for _ in range(WORTH_A_WRITER):
        subscription.write(changed)


def usual_state(size_bytes: int = 7) -> ObjectState:
    return msgspec.structs.replace(
        state(size_bytes, "v1"), content_type="video/mp4", metadata={"color": "red"}, tags={"team": "blue"}
    )


def usual_change(operation: Operation = Operation.PUT) -> ObjectChange:
    plain = change("videos/2026/one.mp4")
    bucket = msgspec.structs.replace(plain.bucket, versioning=Versioning.ENABLED)
    return msgspec.structs.replace(plain, operation=operation, bucket=bucket, **sides_of(operation))


def sides_of(operation: Operation) -> dict[str, ObjectState | None]:
    """What was there before an operation, and is after it."""
    match operation:
        case Operation.DELETE | Operation.EXPIRATION_DELETE:
            return {"new": None, "old": usual_state(8), "previous": None}
        case Operation.DELETE_MARKER_CREATED | Operation.EXPIRATION_DELETE_MARKER_CREATED:
            marker = ObjectState(Status.DELETE_MARKER_VERSIONED, 0, "of the marker", "v2")
            return {"new": marker, "old": None, "previous": usual_state(9)}
        case _:
            return {"new": usual_state(), "old": None, "previous": usual_state(9)}


def with_one_odd_value(usual: ObjectChange, odd: str) -> Iterator[ObjectChange]:
    """The change, with this text in each of its fields in turn."""
    replace = msgspec.structs.replace
    yield replace(usual, key=odd)
    for name in ("principal_id", "source_ip", "request_id", "host_id"):
        yield replace(usual, origin=replace(usual.origin, **{name: odd}))
    for side in ("new", "old", "previous"):
        if (shown := getattr(usual, side)) is not None:
            for name in ("etag", "version_id", "content_type"):
                yield replace(usual, **{side: replace(shown, **{name: odd})})
            for name in ("metadata", "tags"):
                for entries in ({odd: "value"}, {"name": odd}, {odd: "value", "name": odd}, {}):
                    yield replace(usual, **{side: replace(shown, **{name: entries})})


def refused(_self: Subscription, _change: ObjectChange) -> Message:
    raise AssertionError("the structs were asked")


def written_alone(changed: ObjectChange, subscription: Subscription) -> Message:
    """What the writers make of it, without help from the structs."""
    learn(changed, subscription)
    return without_structs(changed, subscription)


def without_structs(changed: ObjectChange, subscription: Subscription) -> Message:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Subscription, "compose", refused)
        return subscription.write(changed)


@pytest.mark.parametrize("case", GOLDEN)
def test_a_golden_message_is_the_same_in_both_ways(case: str) -> None:
    for attributes, dialect in product(ATTRIBUTES, DIALECTS.values()):
        subscription = Subscription(rule(), topic(**attributes), Installation(dialect))
        assert composed(GOLDEN[case], subscription) == subscription.compose(GOLDEN[case])


@pytest.mark.parametrize("operation", [Operation.PUT, Operation.DELETE, Operation.DELETE_MARKER_CREATED])
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("attributes", ATTRIBUTES, ids=str)
def test_every_field_may_be_odd(operation: Operation, dialect: str, attributes: dict[str, str]) -> None:
    subscription = Subscription(rule(), topic(**attributes), Installation(DIALECTS[dialect]))
    usual = usual_change(operation)
    learn(usual, subscription)
    for odd in (*ODD, *MARKS):
        for each in with_one_odd_value(usual, odd):
            read, is_plain = read_change(encode_change(each))
            make = subscription.write if is_plain else subscription.compose
            assert make(read) == subscription.compose(each)


@pytest.mark.parametrize("named", ["rule", "bucket", "opaque"])
@pytest.mark.parametrize("attributes", ATTRIBUTES, ids=str)
def test_names_that_look_like_marks_do_no_harm(attributes: dict[str, str], named: str) -> None:
    """Not even if the values of the change from which a writer is made are the same text."""
    replace, usual = msgspec.structs.replace, usual_change()
    for mark in MARKS:
        name = {"rule": "rule", "bucket": "bucket", "opaque": "opaque"} | {named: mark}
        changed = replace(usual, bucket=replace(usual.bucket, name=name["bucket"]))
        mine = topic(**attributes, OpaqueData=name["opaque"])
        subscription = Subscription(rule(id=name["rule"]), mine, INSTALLATION)
        for key in (mark, usual.key):
            each = replace(changed, key=key)
            assert composed(each, subscription) == subscription.compose(each)


@pytest.mark.parametrize("operation", Operation)
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("attributes", ATTRIBUTES, ids=str)
def test_whatever_has_happened_is_written_without_the_structs(
    operation: Operation, dialect: str, attributes: dict[str, str]
) -> None:
    subscription = Subscription(rule(), topic(**attributes), Installation(DIALECTS[dialect]))
    for key in ("videos/2026/one.mp4", "a b+c", "käse", "\u65e5\u672c/😀"):
        usual = msgspec.structs.replace(usual_change(operation), key=key)
        assert written_alone(usual, subscription) == subscription.compose(usual)


@pytest.mark.parametrize("operation", [Operation.PUT, Operation.DELETE, Operation.DELETE_MARKER_CREATED])
@pytest.mark.parametrize("attributes", ATTRIBUTES, ids=str)
def test_whatever_a_state_has_not_is_left_out_without_the_structs(
    attributes: dict[str, str], operation: Operation
) -> None:
    replace, usual = msgspec.structs.replace, usual_change(operation)
    entries = ({}, {"one": "1"}, {"two": "2", "one": "1", "three": "3"})
    for side, metadata in product(("new", "old", "previous"), entries):
        subscription = Subscription(rule(), topic(**attributes), INSTALLATION)
        versions = ((Versioning.UNVERSIONED, None), (Versioning.SUSPENDED, None), (Versioning.ENABLED, "v1"))
        for (versioning, version), content_type in product(versions, (None, "", "text/plain")):
            shown = replace(
                usual_state(), version_id=version, content_type=content_type, metadata=metadata, tags=metadata
            )
            changed = replace(usual, bucket=replace(usual.bucket, versioning=versioning), **{side: shown})
            assert written_alone(changed, subscription) == subscription.compose(changed)


@pytest.mark.parametrize("attributes", ATTRIBUTES, ids=str)
def test_many_entries_have_one_writer_however_many_they_are(attributes: dict[str, str]) -> None:
    subscription = Subscription(rule(), topic(**attributes), INSTALLATION)
    learn(with_entries(MANY), subscription)
    for number in (MANY, MANY + 1, 50):
        changed = with_entries(number)
        assert without_structs(changed, subscription) == subscription.compose(changed)
    for number in range(MANY):
        assert subscription.write(with_entries(number)) == subscription.compose(with_entries(number))


def with_entries(number: int) -> ObjectChange:
    """In an order of their own, which is not the one in which they are told."""
    entries = {f"name-{each * 7 % 50}": f"text {each}" for each in range(number)}
    new = msgspec.structs.replace(usual_state(), metadata=entries, tags=entries)
    return msgspec.structs.replace(usual_change(), new=new)


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
        for bucket in [before] * WORTH_A_WRITER + [after] * WORTH_A_WRITER + [before, after]:
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


def test_a_writer_is_made_when_it_would_have_paid() -> None:
    subscription = Subscription(rule(), topic(), INSTALLATION)
    unlearnt = subscription.write
    for operation in [Operation.DELETE, Operation.PUT] * (WORTH_A_WRITER - 1):
        subscription.write(change(operation=operation))
        assert subscription.write == unlearnt
    subscription.write(change())
    assert subscription.write != unlearnt


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("attributes", ATTRIBUTES, ids=str)
def test_kinds_in_turn_are_written_without_the_structs(dialect: str, attributes: dict[str, str]) -> None:
    """Whichever writer is asked first; some kinds differ in the operation alone, some in a status."""
    replace = msgspec.structs.replace
    kinds = [usual_change(operation) for operation in Operation]
    kinds += [
        replace(each, **{side: replace(getattr(each, side), status=Status.DELETE_MARKER_VERSIONED)})
        for each in kinds
        for side in ("old", "previous")
        if each.operation in REMOVALS and getattr(each, side) is not None
    ]
    subscription = Subscription(rule(), topic(**attributes), Installation(DIALECTS[dialect]))
    for each in kinds:
        assert written_alone(each, subscription) == subscription.compose(each)
    for each in kinds:
        assert without_structs(each, subscription) == subscription.compose(each)


def test_changes_that_differ_in_what_no_message_tells_have_one_writer() -> None:
    """The S3 message of the aws dialect tells neither type nor metadata nor tags, nor what was before."""
    subscription = Subscription(rule(), topic(), Installation(DIALECTS["aws"]))
    learn(usual_change(), subscription)
    learnt, replace = subscription.write, msgspec.structs.replace
    for content_type, entries, old in product(
        (None, "a/b"), ({}, {"a": "1", "b": "2"}), (None, usual_state())
    ):
        new = replace(usual_state(), content_type=content_type, metadata=entries, tags=entries)
        changed = replace(usual_change(), new=new, old=old)
        assert written_alone(changed, subscription) == subscription.compose(changed)
    assert subscription.write == learnt


def test_more_shapes_than_a_subscription_has_writers_for() -> None:
    """The first ones are kept, and the others composed: nothing is made over and over again."""
    replace, subscription = msgspec.structs.replace, Subscription(rule(), topic(), INSTALLATION)
    changes = [
        replace(usual_change(), bucket=replace(usual_change().bucket, id=f"bucket-{number}"))
        for number in range(600)
    ]
    for each in [*changes, *(each for each in changes[:40] for _ in range(WORTH_A_WRITER)), *changes]:
        assert subscription.write(each) == subscription.compose(each)
    for each in changes[:32]:
        assert without_structs(each, subscription) == subscription.compose(each)
    learn(changes[32], subscription)
    with pytest.raises(AssertionError, match="the structs were asked"):
        without_structs(changes[32], subscription)


def test_a_writer_that_writes_otherwise_than_the_structs_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(change: ObjectChange, *_: object) -> Any:
        return lambda _: Message("arn", "id", change.key, b"otherwise")

    monkeypatch.setattr("bucketwire.event.compose.make_writer", wrong)
    subscription = Subscription(rule(), topic(), INSTALLATION)
    assert composed(usual_change(), subscription) == subscription.compose(usual_change())


def test_a_writer_that_leaves_its_own_change_to_the_others_does_no_harm(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def leaving(_change: ObjectChange, _rendering: object, _half: str, other: writer.Writer) -> writer.Writer:
        return other

    monkeypatch.setattr("bucketwire.event.compose.make_writer", leaving)
    subscription = Subscription(rule(), topic(), INSTALLATION)
    assert composed(usual_change(), subscription) == subscription.compose(usual_change())


def test_rules_whose_messages_tell_the_same_share_a_source_without_their_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sources, compiled = [], writer._compiled

    def noted(source: str) -> Any:
        sources.append(source)
        return compiled(source)

    monkeypatch.setattr(writer, "_compiled", noted)
    replace, usual = msgspec.structs.replace, usual_change()
    for name in ("first", "{second}", "'third"):
        bucket = replace(usual.bucket, id=f"id {name}", name=f"bucket {name}", owner_id=f"owner {name}")
        mine = topic(cloudevents="true", OpaqueData=f"opaque {name}")
        subscription = Subscription(rule(id=f"rule {name}"), mine, INSTALLATION)
        changed = replace(usual, bucket=bucket)
        assert written_alone(changed, subscription) == subscription.compose(changed)
    assert len(sources) == 3
    assert len(set(sources)) == 1
    assert not any(
        text in sources[0] for text in ("first", "opaque ", "owner", "color", "video", "192.0.2.7")
    )


def test_a_text_without_utf_8_is_refused_in_both_ways() -> None:
    subscription = Subscription(rule(), topic(), INSTALLATION)
    learn(usual_change(), subscription)
    broken = msgspec.structs.replace(usual_change(), key="\ud800")
    for write in (subscription.write, subscription.compose):
        with pytest.raises(UnicodeEncodeError):
            write(broken)
