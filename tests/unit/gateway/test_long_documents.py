"""Long documents are read and written in threads, where nobody waits for them; short ones at once."""

import threading
from typing import Any

import pytest

from bucketwire.gateway.protocol.parse import RestPlan
from bucketwire.gateway.protocol.serialize import OutputPlan
from gateway.in_process import InProcess

FEW, MANY = 3, 1000


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> dict[str, bool]:
    """By what was done: whether it was done in a thread of its own."""
    seen: dict[str, bool] = {}
    for plan, name in ((RestPlan, "parse_document"), (OutputPlan, "body")):
        monkeypatch.setattr(plan, name, observed(seen, name, getattr(plan, name)))
    return seen


def observed(seen: dict[str, bool], name: str, function: Any) -> Any:
    def call(*given: Any) -> Any:
        seen[name] = threading.current_thread() is not threading.main_thread()
        return function(*given)

    return call


@pytest.mark.parametrize("count", [FEW, MANY])
def test_deletes(app: InProcess, threads: dict[str, bool], count: int) -> None:
    keys = "".join(f"<Object><Key>{number:0100}</Key></Object>" for number in range(count))
    assert app.signed("POST", "/media?delete", f"<Delete>{keys}</Delete>".encode()).status == 200
    assert threads == {"parse_document": count == MANY, "body": count == MANY}


@pytest.mark.parametrize("count", [FEW, 60])
@pytest.mark.parametrize("query", ["list-type=2", "prefix=", "versions="])
def test_listings(app: InProcess, threads: dict[str, bool], count: int, query: str) -> None:
    for number in range(count):
        app.signed("PUT", f"/media/{number}")
    assert app.signed("GET", f"/media?max-keys={count}&{query}").status == 200
    assert threads["body"] == (count > FEW)
