"""What the gateway makes of requests are the golden messages: every case, in every format and dialect.

Its own deliveries are compared, as an endpoint gets them from topics that are not persistent, and beside them
what is composed of the changes that it committed. Expirations have only these, as no request makes them, and
so has the key of COS, which does not travel over HTTP.

What no two runs share is pinned to the golden values (`golden.pinned`). Some cases cannot be made:

- put-huge: an object of 2^63 - 1 bytes; its size is pinned.
- those with metadata that has a control character, which the gateway refuses; a tab is sent, and pinned.
- storj, delete-missing: there is no event; that is asserted.

The storj dialect serves no topics and knows few events: there, topics and rules are put into the metabase.
"""

import re
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from bucketwire.event.change import ObjectChange
from bucketwire.event.dialect import DIALECTS
from bucketwire.metainfo.permission import ANONYMOUS
from gateway.golden_acts import ACTS, UNSAYABLE, act_out
from gateway.golden_gateway import Served, serving
from gateway.in_process import InProcess
from gateway.running import ROOT
from golden.cases import BEFORE_IMAGE, CHANGES, FORMS, LIFECYCLE
from golden.expected import EVERY, compared, expected, written
from golden.pinned import pinned, pins_of
from golden.wire import lines_of_message, lines_of_request

NO_EVENT = {("delete-missing", "storj"), ("delete-missing-before-image", "storj")}
Made = dict[str, list[list[bytes]]]
"""What was pushed, if anything was, and what is composed of the change; pinned, by form."""


class Making:
    """The last change of each case, made once in each dialect."""

    def __init__(self, stack: ExitStack, folders: pytest.TempPathFactory) -> None:
        self._served: dict[str, Served] = {
            dialect: stack.enter_context(serving(folders.mktemp(dialect), dialect)) for dialect in DIALECTS
        }
        self._made: dict[tuple[str, str], Made] = {}

    def of(self, case: str, dialect: str) -> Made:
        if (case, dialect) not in self._made:
            self._made[case, dialect] = _made(self._served[dialect], case)
        return self._made[case, dialect]


def _made(served: Served, case: str) -> Made:
    place = served.new_place(case)
    start = served.head()
    served.endpoint.forget()
    act_out(case, place)
    changes = served.changes_since(start)
    if not changes:
        return {}
    change = changes[-1]
    assert_origin_is_filled(change)
    pushed = served.pushed(case) if change.origin.pushes else {}
    composed = served.composed(change)
    made: Made = {}
    for form in FORMS:
        rule = served.rule(case, form)
        lines = [lines_of_request(pushed[form])] if pushed else []
        pins = [*pins_of(change, CHANGES[case], rule), *UNSAYABLE]
        both = (*lines, lines_of_message(composed[rule.topic_arn]))
        made[form] = [[pinned(line, pins) for line in each] for each in both]
    return made


def assert_origin_is_filled(change: ObjectChange) -> None:
    """It is pinned, so what it says is looked at here."""
    origin = change.origin
    assert re.fullmatch("[0-9A-F]{16}", origin.request_id)
    if "Expiration" in change.operation:
        assert (origin.principal_id, origin.source_ip, origin.host_id) == (
            LIFECYCLE.principal_id,
            LIFECYCLE.source_ip,
            LIFECYCLE.host_id,
        )
        return
    assert origin.principal_id in {ROOT.user_id, ANONYMOUS}
    assert origin.source_ip == "127.0.0.1"
    assert re.fullmatch("[A-Za-z0-9+/=]{16,}", origin.host_id)


@pytest.fixture(scope="module")
def making(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Making]:
    """With a gateway of each dialect."""
    with ExitStack() as stack:
        yield Making(stack, tmp_path_factory)


@pytest.mark.parametrize(("case", "form", "dialect"), EVERY)
def test_what_comes_of_requests_is_the_golden_message(
    case: str, form: str, dialect: str, making: Making
) -> None:
    made = making.of(case, dialect)
    golden = expected(case, form, dialect)
    if (case, dialect) in NO_EVENT:
        assert made == {}
        return
    *pushed, composed = made[form]
    assert composed == golden
    if "expire" not in case:
        assert pushed == [golden[1:] if form == "cos" else golden]


def test_there_is_a_way_to_make_each_case_and_no_other() -> None:
    assert ACTS.keys() == {case.removesuffix(BEFORE_IMAGE) for case in CHANGES}


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
