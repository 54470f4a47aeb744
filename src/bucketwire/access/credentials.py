"""S3 credentials: who an access key belongs to.

The first user is root. Its keys come from the operator, or are made once and kept in the data folder
in a file that only the owner can read. All other users are kept elsewhere, and looked up by a function
that the key ring is given. Secrets are never shown by `repr`.
"""

import hashlib
import os
import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from bucketwire.errors import ConfigError

ROOT_FILE = "root-credentials.json"
_MIN_ACCESS_KEY = 3
_MAX_ACCESS_KEY = 128
_MIN_SECRET_KEY = 8
_KEPT_SECONDS = 1.0
_KEPT_KEYS = 10_000


@dataclass(frozen=True, slots=True)
class Credentials:
    """A key pair and its user. `user_id` is public: it stands in messages and listings."""

    access_key: str
    secret_key: str = field(repr=False)
    user_id: str
    display_name: str
    tenant: str = ""


Lookup = Callable[[str], Credentials | None]
"""Finds the credentials of an access key, wherever they are kept."""


class KeyRing:
    """Finds the credentials of an access key: one of those given, or one that `lookup` finds.

    What was found is believed for a second, so that a user who is removed is out soon; what was not found is
    looked up every time, so that a new user is in at once.
    """

    def __init__(
        self,
        credentials: Iterable[Credentials],
        lookup: Lookup = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.fixed = tuple(credentials)
        """Those that need no lookup: root's."""
        self._fixed = {each.access_key: each for each in self.fixed}
        self._lookup = lookup
        self._clock = clock
        self._found: dict[str, tuple[Credentials, float]] = {}

    def has(self, access_key: str) -> bool:
        """Whether the credentials are at hand, so that `find` does not block."""
        return self._at_hand(access_key) is not None

    def find(self, access_key: str) -> Credentials | None:
        """The credentials, or None for a key that nobody has. Blocks unless they are at hand."""
        return self._at_hand(access_key) or self._look_up(access_key)

    def _at_hand(self, access_key: str) -> Credentials | None:
        if (fixed := self._fixed.get(access_key)) is not None:
            return fixed
        found, until = self._found.get(access_key, (None, 0.0))
        return found if self._clock() < until else None

    def _look_up(self, access_key: str) -> Credentials | None:
        found = self._lookup(access_key)
        if found is None:
            self._found.pop(access_key, None)
            return None
        if len(self._found) >= _KEPT_KEYS:
            self._found.clear()
        self._found[access_key] = (found, self._clock() + _KEPT_SECONDS)
        return found


def new_keys(access_key: str | None = None, secret_key: str | None = None) -> tuple[str, str]:
    """The pair of keys of a new user: those given, or generated ones; `ConfigError` for half a pair."""
    if access_key is None and secret_key is None:
        return _new_access_key(), _new_secret_key()
    if access_key is None or secret_key is None:
        raise ConfigError("give both --access-key and --secret-key, or none")
    _check(access_key, secret_key, "--access-key", "--secret-key")
    return access_key, secret_key


def new_user_id() -> str:
    """A public id, in the form of S3's canonical ids."""
    return hashlib.sha256(secrets.token_bytes(32)).hexdigest()


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
        _check(access_key, secret_key, "BUCKETWIRE_ROOT_ACCESS_KEY", "BUCKETWIRE_ROOT_SECRET_KEY")
        wanted = _Kept(access_key, secret_key, kept.user_id if kept else new_user_id())
    else:
        wanted = kept or _Kept(_new_access_key(), _new_secret_key(), new_user_id())
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


def _check(access_key: str, secret_key: str, access_name: str, secret_name: str) -> None:
    visible = access_key.isascii() and access_key.isprintable() and not set(access_key) & set("/ ,=")
    if not _MIN_ACCESS_KEY <= len(access_key) <= _MAX_ACCESS_KEY or not visible:
        raise ConfigError(
            f"{access_name} needs {_MIN_ACCESS_KEY} to {_MAX_ACCESS_KEY} ASCII characters,"
            " none of them a slash, space, comma or equals sign"
        )
    if len(secret_key) < _MIN_SECRET_KEY:
        raise ConfigError(f"{secret_name} needs {_MIN_SECRET_KEY} or more characters")


def _new_access_key() -> str:
    return "BW" + "".join(secrets.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") for _ in range(18))


def _new_secret_key() -> str:
    return secrets.token_urlsafe(30)
