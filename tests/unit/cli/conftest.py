"""Commands run in this process, on a data folder of their own."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bucketwire.cli.main import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs a command: exit code, what it printed, and its errors."""
    monkeypatch.setattr("os.umask", lambda _mask: 0)  # it would last for the tests that follow

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["bucketwire", *arguments, "--data", str(tmp_path)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capfd.readouterr()
        return int(ended.value.code or 0), out, err

    return run
