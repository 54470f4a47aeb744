"""Where values stand in a message is seen from its twins, or not at all."""

from collections.abc import Callable

import msgspec
import pytest

from bucketwire.event.change import ObjectChange
from bucketwire.event.formats.stamp import Stamp
from bucketwire.event.formats.twin import Entries, Layout, sample_of, shape_of
from bucketwire.event.formats.writer import Rendering, make_writer
from bucketwire.event.message import Message
from bucketwire.event.name import Operation
from factories import change, state

Tell = Callable[[ObjectChange, Stamp], str]


def telling(tell: Tell) -> Callable[[ObjectChange, Stamp], Message]:
    """A format of which only the body matters."""
    return lambda changed, stamp: Message("arn", stamp.event_id, changed.key, tell(changed, stamp).encode())


def described(operation: Operation = Operation.PUT) -> ObjectChange:
    new = msgspec.structs.replace(state(), metadata={"b": "2", "a": "1", "c": "3"})
    return msgspec.structs.replace(change(operation=operation), new=new, old=state(9))


def listed(entries: dict[str, str]) -> str:
    return ", ".join(f"{name} is {entries[name]}" for name in sorted(entries))


def test_the_text_around_values_is_the_same_for_all() -> None:
    sample = sample_of(
        described(), telling(lambda changed, stamp: f"<{changed.key}> {changed.origin.host_id}|{stamp.time}!")
    )
    assert sample is not None
    assert sample.body == Layout(["<", "> ", "|", "!"], ["key", "origin.host_id", "time"])


def test_entries_are_one_value_however_many_they_are() -> None:
    sample = sample_of(described(), telling(lambda changed, _: f"({listed(changed.new.metadata)})"))
    assert sample is not None
    assert sample.body == Layout(["(", ")"], [Entries("new.metadata", " is ", ", ")])


@pytest.mark.parametrize(
    "tell",
    [
        lambda changed, _: f"{changed.key} is long" if changed.key > "8" else changed.key,
        lambda changed, _: str(changed.committed_at_ns),
        lambda changed, _: changed.key[:-3],
        lambda changed, _: changed.key[3:],
        lambda changed, _: str(changed.new.size_bytes // 2),
        lambda changed, _: " ".join(changed.new.metadata),
        lambda changed, _: next(iter(changed.new.metadata.values())),
        lambda changed, _: listed(dict(list(changed.new.metadata.items())[:1])),
    ],
)
def test_a_text_that_depends_on_more_than_the_shape_has_no_sample(tell: Tell) -> None:
    assert sample_of(described(), telling(tell)) is None


def test_what_is_told_of_a_state_that_no_writer_looks_at_is_left_to_the_structs() -> None:
    def written(operation: Operation) -> bool:
        rendering = Rendering(
            telling(lambda changed, _: changed.old.etag if changed.old else ""),
            3,
            key_is_attribute=False,
        )
        return (
            make_writer(described(operation), rendering, "0" * 16, lambda _: Message("", "", "", b""))
            is not None
        )

    assert written(Operation.DELETE)
    assert not written(Operation.PUT)


def test_changes_that_differ_in_values_alone_are_of_one_shape() -> None:
    first = described()
    other = msgspec.structs.replace(
        first, key="other", new=msgspec.structs.replace(first.new, etag="other", size_bytes=1), old=None
    )
    assert shape_of(first) == shape_of(other)
    assert shape_of(first) != shape_of(msgspec.structs.replace(first, new=state()))
