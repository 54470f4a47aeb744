"""Root credentials: given, generated, kept."""

import stat
from pathlib import Path

import pytest

from bucketwire.access.credentials import ROOT_FILE, Credentials, KeyRing, root_credentials
from bucketwire.errors import ConfigError


def test_generated_credentials_are_kept_and_told_once(tmp_path: Path) -> None:
    first, generated = root_credentials(tmp_path, None, None)
    again, generated_again = root_credentials(tmp_path, None, None)
    assert (generated, generated_again) == (True, False)
    assert first == again
    assert len(first.secret_key) >= 32


def test_only_the_owner_can_read_the_file(tmp_path: Path) -> None:
    (tmp_path / ROOT_FILE).touch(0o644)
    (tmp_path / ROOT_FILE).unlink()
    root_credentials(tmp_path, None, None)
    assert stat.S_IMODE((tmp_path / ROOT_FILE).stat().st_mode) == 0o600


def test_given_keys_win_and_the_user_stays_the_same(tmp_path: Path) -> None:
    before, _ = root_credentials(tmp_path, None, None)
    after, generated = root_credentials(tmp_path, "operator", "long enough secret")
    assert (after.access_key, after.secret_key, generated) == ("operator", "long enough secret", False)
    assert after.user_id == before.user_id
    assert root_credentials(tmp_path, None, None)[0] == after


@pytest.mark.parametrize(
    ("access_key", "secret_key"),
    [
        ("only-one", None),
        (None, "only-the-other"),
        ("ab", "long enough"),
        ("a/b/c", "long enough"),
        ("abc", "short"),
    ],
)
def test_bad_keys_are_refused_by_the_name_of_their_variable(
    tmp_path: Path, access_key: str | None, secret_key: str | None
) -> None:
    with pytest.raises(ConfigError, match="BUCKETWIRE_ROOT_"):
        root_credentials(tmp_path, access_key, secret_key)


def test_a_damaged_file_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / ROOT_FILE).write_text("{")
    with pytest.raises(ConfigError, match="restore it, or remove it"):
        root_credentials(tmp_path, None, None)


def test_a_key_ring_finds_only_its_own_keys_and_secrets_are_not_shown() -> None:
    one = Credentials("one", "very secret", "user-1", "root")
    assert KeyRing([one]).find("one") is one
    assert KeyRing([one]).find("two") is None
    assert "very secret" not in repr(one)


def test_a_key_that_was_looked_up_is_believed_for_a_second_and_a_missing_one_never() -> None:
    now = [100.0]
    users: dict[str, Credentials] = {}
    keys = KeyRing([], users.get, lambda: now[0])
    assert keys.find("new") is None
    users["new"] = Credentials("new", "very secret", "user-2", "new")
    assert keys.find("new") is users["new"]
    user = users.pop("new")
    assert keys.has("new")
    assert keys.find("new") is user
    now[0] += 1.0
    assert not keys.has("new")
    assert keys.find("new") is None
