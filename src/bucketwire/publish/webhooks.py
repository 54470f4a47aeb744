"""Signatures of HTTP messages, as Standard Webhooks 1.0 has them. Pure.

    webhook-id         the event id, the same on every attempt
    webhook-timestamp  seconds since 1970, of this attempt
    webhook-signature  v1,<base64 of HMAC-SHA256 over "id.timestamp.body">, once a secret, separated by spaces

While a secret is replaced a topic has two, the old one and the new one, and a receiver may check either.
Secrets are in no repr and no error. https://github.com/standard-webhooks/standard-webhooks
"""

import base64
import binascii
import hmac
from dataclasses import dataclass, field

ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
PREFIX = "whsec_"
MOST_SECRETS = 2
SECRET_BYTES = range(24, 65)
"""How long a secret may be, before it is written in base64."""
SECRET_FORM = f"{PREFIX} and base64 of {SECRET_BYTES[0]} to {SECRET_BYTES[-1]} bytes, padded with ="
"""Not all libraries that check signatures take a secret without padding."""


@dataclass(frozen=True, slots=True)
class Signer:
    """Signs with each of its secrets."""

    secrets: tuple[bytes, ...] = field(repr=False)

    def headers(self, event_id: str, body: bytes, at_seconds: int) -> tuple[str, str, str]:
        """The three header lines of an attempt at that time."""
        signed = b"%b.%d.%b" % (event_id.encode(), at_seconds, body)
        signatures = " ".join(_signature(secret, signed) for secret in self.secrets)
        return (
            f"{ID}: {event_id}",
            f"{TIMESTAMP}: {at_seconds}",
            f"{SIGNATURE}: {signatures}",
        )


def signer_from_text(text: str) -> Signer:
    """The signer for a `signing-secret`; `ValueError`, which does not show it, when it is none."""
    secrets = tuple(_secret(word) for word in text.split())
    if not 1 <= len(secrets) <= MOST_SECRETS:
        raise ValueError("it is one secret, or two with a space between them")
    return Signer(secrets)


def _secret(word: str) -> bytes:
    encoded = word.removeprefix(PREFIX)
    try:
        secret = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        secret = b""
    if encoded == word or len(secret) not in SECRET_BYTES:
        raise ValueError(f"a secret is {SECRET_FORM}")
    return secret


def _signature(secret: bytes, signed: bytes) -> str:
    return "v1," + base64.b64encode(hmac.digest(secret, signed, "sha256")).decode()
