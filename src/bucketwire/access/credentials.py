"""S3 credentials: who an access key belongs to.

The first user is root. Its keys come from the operator, or are made once and kept in the data folder
in a file that only the owner can read. Secrets are never shown by `repr`.
"""

import hashlib
import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from bucketwire.errors import ConfigError

ROOT_FILE = "root-credentials.json"
_MIN_ACCESS_KEY = 3
_MIN_SECRET_KEY = 8


@dataclass(frozen=True, slots=True)
class Credentials:
    """A key pair and its user. `user_id` is public: it stands in messages and listings."""

    access_key: str
    secret_key: str = field(repr=False)
    user_id: str
    display_name: str


class KeyRing:
    """Finds the credentials of an access key."""

    def __init__(self, credentials: list[Credentials]) -> None:
        self._by_access_key = {each.access_key: each for each in credentials}

    def find(self, access_key: str) -> Credentials | None:
        """The credentials, or None for a key that nobody has."""
        return self._by_access_key.get(access_key)


class _Kept(msgspec.Struct, frozen=True):
    access_key: str
    secret_key: str
    user_id: str


def root_credentials(
    folder: Path, access_key: str | None, secret_key: str | None
) -> tuple[Credentials, bool]:
    """The root user's credentials, and whether they were generated just now.

    Given keys win over kept ones. The user's id is made once and stays, whatever the keys.
    """
    if (access_key is None) != (secret_key is None):
        raise ConfigError("set both BUCKETWIRE_ROOT_ACCESS_KEY and BUCKETWIRE_ROOT_SECRET_KEY, or none")
    path = folder / ROOT_FILE
    kept = _load(path)
    if access_key is not None and secret_key is not None:
        _check(access_key, secret_key)
        wanted = _Kept(access_key, secret_key, kept.user_id if kept else _new_user_id())
    else:
        wanted = kept or _Kept(_new_access_key(), secrets.token_urlsafe(30), _new_user_id())
    if wanted != kept:
        _save(path, wanted)
    root = Credentials(wanted.access_key, wanted.secret_key, wanted.user_id, "root")
    return root, kept is None and access_key is None


def _load(path: Path) -> _Kept | None:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        return msgspec.json.decode(content, type=_Kept)
    except msgspec.DecodeError:
        raise ConfigError(f"{path.name} in the data folder is damaged: restore it, or remove it") from None


def _save(path: Path, kept: _Kept) -> None:
    """Written beside and renamed, so that a crash leaves the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".new")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, 0o600)
        file.write(msgspec.json.encode(kept))
        file.flush()
        os.fsync(descriptor)
    beside.replace(path)


def _check(access_key: str, secret_key: str) -> None:
    if len(access_key) < _MIN_ACCESS_KEY or not access_key.isascii() or "/" in access_key:
        raise ConfigError("BUCKETWIRE_ROOT_ACCESS_KEY needs 3 or more ASCII characters, none of them a slash")
    if len(secret_key) < _MIN_SECRET_KEY:
        raise ConfigError("BUCKETWIRE_ROOT_SECRET_KEY needs 8 or more characters")


def _new_access_key() -> str:
    return "BW" + "".join(secrets.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") for _ in range(18))


def _new_user_id() -> str:
    return hashlib.sha256(secrets.token_bytes(32)).hexdigest()
