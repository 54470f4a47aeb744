"""Signatures, checked by the implementation of the Standard Webhooks project."""

import base64
import time

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from bucketwire.publish.webhooks import Signer, signer_from_text

OLD = "whsec_" + base64.b64encode(b"o" * 24).decode()
NEW = "whsec_" + base64.b64encode(b"n" * 64).decode()
ODD = "whsec_" + base64.b64encode(b"p" * 32).decode()


def signed(signer: Signer, body: bytes, at_seconds: float | None = None) -> dict[str, str]:
    lines = signer.headers("event-1", body, int(at_seconds or time.time()))
    return {name: value for name, _, value in (line.partition(": ") for line in lines)}


def test_the_example_of_the_specification_comes_out() -> None:
    signer = signer_from_text("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    lines = signer.headers("msg_p5jXN8AQM9LWM0D4loKWxJek", b'{"test": 2432232314}', 1614265330)
    assert lines == (
        "webhook-id: msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp: 1614265330",
        "webhook-signature: v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    )


@pytest.mark.parametrize("secret", [OLD, NEW, ODD])
def test_another_implementation_accepts_the_signature(secret: str) -> None:
    body = '{"key": "ü"}'.encode()
    assert Webhook(secret).verify(body, signed(signer_from_text(secret), body)) == {"key": "ü"}


def test_with_two_secrets_a_receiver_may_have_either() -> None:
    headers = signed(signer_from_text(f"{OLD} {NEW}"), b"{}")
    assert headers["webhook-signature"].count("v1,") == 2
    for secret in (OLD, NEW):
        Webhook(secret).verify(b"{}", headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(ODD).verify(b"{}", headers)


def test_a_body_that_was_changed_is_not_accepted() -> None:
    headers = signed(signer_from_text(OLD), b"{}")
    with pytest.raises(WebhookVerificationError):
        Webhook(OLD).verify(b'{"a": 1}', headers)


def test_an_old_attempt_is_not_accepted() -> None:
    headers = signed(signer_from_text(OLD), b"{}", time.time() - 3600)
    with pytest.raises(WebhookVerificationError):
        Webhook(OLD).verify(b"{}", headers)


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "hunter2", OLD.removeprefix("whsec_"), "whsec_", "whsec_hunter2", "whsec_" + "ü" * 40,
        "whsec_" + "!" * 40, "whsec_" + base64.b64encode(b"x" * 23).decode(),
        "whsec_" + base64.b64encode(b"x" * 65).decode(), f"{OLD} {NEW} {ODD}", f"{OLD} hunter2",
        f"{OLD},{NEW}", ODD.rstrip("="), f"{ODD}=",
    ],
)  # fmt: skip
def test_what_is_no_secret_is_refused_without_showing_it(text: str) -> None:
    with pytest.raises(ValueError, match=r"secret") as raised:
        signer_from_text(text)
    for word in text.split():
        assert word == "whsec_" or word not in str(raised.value)
    assert raised.value.__cause__ is None


def test_no_repr_shows_the_secrets() -> None:
    assert "ooo" not in repr(signer_from_text(OLD))
