"""Options that travel together: what `up` hands on is what was chosen."""

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from bucketwire.cli.bundle import environment
from bucketwire.cli.delivery import Delivery, delivery_options
from bucketwire.cli.serving import Serving, serving_options

CHOSEN = Serving(
    host="0.0.0.0",
    port=9443,
    region="eu-west-1",
    domain="s3.example.com",
    housekeeping_seconds=60,
    retention_hours=24,
    tls_certificate=Path("server one.pem"),
    tls_key=Path("key.pem"),
    trusted_proxies=frozenset({"192.0.2.1", "2001:db8::1"}),
    allow_secrets_in_cleartext=True,
    test_events="off",
    metrics_token="s3cret, with a comma",
)
DELIVERY = Delivery(60, 3, 0.5, 1_000, "reject", "http://127.0.0.1:1/", "robot@example.com", True)


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    monkeypatch.setenv("BUCKETWIRE_PUBSUB_SERVICE_ACCOUNT", "")
    return []


@pytest.fixture
def command(chosen: list[object]) -> click.Command:
    @click.command()
    @serving_options
    @delivery_options
    def act(serving: Serving, delivery: Delivery) -> None:
        chosen.extend((serving, delivery))

    return act


def test_a_choice_is_the_same_when_another_process_reads_it(
    command: click.Command, chosen: list[object]
) -> None:
    CliRunner().invoke(command, env={**environment(CHOSEN), **environment(DELIVERY)}, catch_exceptions=False)
    assert chosen == [CHOSEN, DELIVERY]


def test_defaults_stay_defaults(command: click.Command, chosen: list[object]) -> None:
    runner = CliRunner()
    runner.invoke(command, [], catch_exceptions=False)
    again = {**environment(chosen[0]), **environment(chosen[1])}
    runner.invoke(command, env=again, catch_exceptions=False)
    assert chosen[:2] == chosen[2:]


def test_a_flag_counts_more_than_the_variable_that_is_handed_on(
    command: click.Command, chosen: list[object]
) -> None:
    CliRunner().invoke(command, ["--port", "1"], env=environment(CHOSEN), catch_exceptions=False)
    assert isinstance(chosen[0], Serving)
    assert chosen[0].port == 1


def test_the_token_is_not_shown() -> None:
    assert "s3cret" not in repr(CHOSEN)
