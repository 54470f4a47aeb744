"""What the gateway makes of requests are the golden messages: every case, in every format and dialect.

Its own deliveries are compared, as an endpoint gets them from topics that are not persistent, and beside them
what is composed of the changes that it committed. Expirations have only these, as no request makes them, and
so has the key of COS, which does not travel over HTTP.

What no two runs share is pinned to the golden values (`golden.pinned`). Some cases cannot be made:

- put-huge: an object of 2^63 - 1 bytes; its size is pinned.
- those with metadata that has a control character, which the gateway refuses; a tab is sent, and pinned.
- storj, post and versioned-multipart: they are called ObjectCreated:Put there; the name is pinned.
- storj, delete-missing: there is no event; that is asserted.

The storj dialect serves no topics and knows few events: there, topics and rules are put into the metabase.
"""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from bucketwire.event.dialect import DIALECTS
from gateway.golden_acts import UNSAYABLE, act_out
from gateway.golden_gateway import Served, serving
from gateway.in_process import InProcess
from golden.cases import CHANGES
from golden.expected import EVERY, compared, expected, written
from golden.pinned import Pin, pinned, pins_of
from golden.wire import lines_of_request

OTHER_NAMES: dict[tuple[str, str], list[Pin]] = {
    ("post", "storj"): [("ObjectCreated:Put", "ObjectCreated:Post")],
    ("versioned-multipart", "storj"): [("ObjectCreated:Put", "ObjectCreated:CompleteMultipartUpload")],
}
NO_EVENT = {("delete-missing", "storj")}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Served]]:
    """A gateway of each dialect."""
    with ExitStack() as stack:
        yield {
            dialect: stack.enter_context(serving(tmp_path_factory.mktemp(dialect), dialect))
            for dialect in DIALECTS
        }


def made_lines(served: Served, case: str, form: str) -> list[list[bytes]]:
    """What was pushed and what is composed of the last change of the case, if there is one; pinned."""
    place, rule = served.new_place(case, form)
    start = served.head()
    served.endpoint.forget()
    act_out(case, place)
    changes = served.changes_since(start)
    if not changes:
        return []
    change = changes[-1]
    lines = [lines_of_request(each) for each in served.endpoint.events()[-1:] if change.origin.pushes]
    pins = [*pins_of(change, CHANGES[case], rule), *UNSAYABLE, *OTHER_NAMES.get((case, served.dialect), [])]
    return [[pinned(line, pins) for line in each] for each in (*lines, served.composed(change))]


@pytest.mark.parametrize(("case", "form", "dialect"), EVERY)
def test_what_comes_of_requests_is_the_golden_message(
    case: str, form: str, dialect: str, served: dict[str, Served]
) -> None:
    lines = made_lines(served[dialect], case, form)
    golden = expected(case, form, dialect)
    if (case, dialect) in NO_EVENT:
        assert lines == []
        return
    *pushed, composed = lines
    assert composed == golden
    if not case.startswith("expire-"):
        assert pushed == [golden[1:] if form == "cos" else golden]


def test_no_line_of_a_golden_file_is_left_out() -> None:
    assert compared() == written()


@pytest.fixture(scope="module")
def in_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    opened = InProcess(tmp_path_factory.mktemp("in-process"))
    opened.signed("PUT", "/media")
    yield opened
    opened.close()


@pytest.mark.parametrize("key", ["%FF", "a%C3", "%C0%AF", "%ED%A0%80", "a%00b", "a%zz"])
def test_a_key_that_no_message_could_carry_is_refused(key: str, in_process: InProcess) -> None:
    answered = in_process.signed("PUT", f"/media/{key}", b"hello")
    assert (answered.status, answered.code) == (400, "InvalidURI")
