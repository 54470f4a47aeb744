"""Log lines."""

from collections.abc import Iterator

import pytest
import structlog

from bucketwire.log import configure_logging, get_logger


@pytest.fixture(autouse=True)
def configuration_as_before() -> Iterator[None]:
    before = structlog.get_config()
    yield
    structlog.configure(**before)


def fail_with(_password: str) -> None:
    raise RuntimeError("nobody has thought of this")


@pytest.mark.parametrize("json", [True, False])
def test_a_traceback_does_not_show_the_values_of_variables(
    capfdbinary: pytest.CaptureFixture[bytes], *, json: bool
) -> None:
    configure_logging(json=json)
    try:
        fail_with("hunter2"[::-1])
    except RuntimeError:
        get_logger("gateway").exception("push_failed")
    shown = capfdbinary.readouterr().err
    assert b"nobody has thought of this" in shown
    assert b"2retnuh" not in shown
