"""The files in which processes count: no more than processes, and a full disk ends none that counts."""

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from prometheus_client.mmap_dict import MmapedDict
from prometheus_client.multiprocess import MultiProcessCollector

from bucketwire.metric_files import ReservedFile

HOW_TO_GET_IT = "no file system can be mounted here: run the tests as root, or allow user namespaces"
COUNTING = """
import resource, sys
from bucketwire import metrics
if sys.argv[1] != "all":
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
for number in range(1000):
    metrics.count_critical(f"a topic with a name that takes some room: {number:0100}")
    metrics.count_messages("delivered", 1)
print(metrics.MESSAGES.labels("delivered")._value.get())
"""


COUNTING_ONE = """
import os, sys
from bucketwire import metrics
def count():
    metrics.count_messages("delivered", 1)
    metrics.observe_deliveries([0], 1_000_000)
count()
if sys.argv[1] == "forks" and os.fork():
    os.wait()
count()
print("counted", flush=True)
sys.stdin.read()
"""


def names(folder: Path) -> set[str]:
    return {
        key for file in folder.glob("*.db") for key, *_ in MmapedDict.read_all_values_from_file(str(file))
    }


def counted(folder: Path, limit: str, *before: str) -> str:
    """What a process says that counts in a folder where files may have so many bytes."""
    command = [*before, sys.executable, "-c", COUNTING, limit]
    environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(folder)}
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.strip()


@contextmanager
def counting(folder: Path, how: str = "alone") -> Iterator[subprocess.Popen[str]]:
    """A process that has counted twice and lives; killed at the end."""
    environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(folder)}
    command = [sys.executable, "-c", COUNTING_ONE, how]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "counted\n"
        yield process
        process.kill()


def shown(folder: Path) -> tuple[float, float]:
    """The messages and the observations on the page."""
    families = MultiProcessCollector(None, str(folder)).collect()  # type: ignore[no-untyped-call]
    values = {
        each.name: each.value for family in families for each in family.samples if "le" not in each.labels
    }
    return values["bucketwire_messages_total"], values["bucketwire_delivery_seconds_count"]


def files(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir() if file.suffix != ".lock"}


def test_processes_that_follow_each_other_count_on_in_the_same_files(tmp_path: Path) -> None:
    for lives in range(1, 4):
        with counting(tmp_path):
            assert shown(tmp_path) == (2 * lives, 2 * lives)
    assert files(tmp_path) == {"counter_0.db", "histogram_0.db"}


def test_processes_that_live_together_have_files_of_their_own_and_leave_them_to_the_next(
    tmp_path: Path,
) -> None:
    for rounds in range(1, 3):
        with ExitStack() as together:
            for _ in range(3):
                together.enter_context(counting(tmp_path))
            assert shown(tmp_path) == (6 * rounds, 6 * rounds)
    assert len(files(tmp_path)) == 6


def test_a_process_and_its_fork_do_not_count_in_one_file(tmp_path: Path) -> None:
    with counting(tmp_path, "forks") as parent:
        assert parent.stdin is not None
        parent.stdin.close()
        assert parent.wait() == 0
    assert shown(tmp_path) == (3, 3)
    assert len(files(tmp_path)) == 4


def test_a_gauge_keeps_the_file_of_its_process(tmp_path: Path) -> None:
    ReservedFile(str(tmp_path / "gauge_all_17.db")).close()
    assert files(tmp_path) == {"gauge_all_17.db"}


def test_a_file_has_its_size_before_it_can_be_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def look(*_: object) -> None:
        seen.append(list(tmp_path.glob("*.db")))
        raise OSError(errno.ENOSPC, "no room")

    seen: list[list[Path]] = []
    monkeypatch.setattr(os, "posix_fallocate", look)
    ReservedFile(str(tmp_path / "counter_1.db")).close()
    assert seen == [[]]
    assert not names(tmp_path)


def test_counts_are_in_files_as_long_as_there_is_room(tmp_path: Path) -> None:
    assert counted(tmp_path, "all") == "1000.0"
    assert sum("a topic" in name for name in names(tmp_path)) >= 1000
    for file in tmp_path.glob("*.db"):
        assert file.stat().st_blocks * 512 >= file.stat().st_size, "a hole in a mapped file is a trap"


@pytest.mark.parametrize("limit", [0, 1_000, 70_000, 200_000])
def test_a_process_that_gets_no_room_counts_in_memory(tmp_path: Path, limit: int) -> None:
    assert counted(tmp_path, str(limit)) == "1000.0"
    names(tmp_path)  # what there is can be read


@pytest.mark.parametrize("kilobytes", [64, 128, 200])
def test_a_process_that_counts_on_a_full_disk_goes_on(tmp_path: Path, kilobytes: int) -> None:
    assert counted(tmp_path, "all", *on_a_disk_of(kilobytes, tmp_path)) == "1000.0"


def test_the_system_does_not_start_on_a_full_disk_and_says_so(tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("bucketwire")
    command = [*on_a_disk_of(4_000, tmp_path), program, "up", "--port", "0", "--data", tmp_path / "data"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert "is full" in done.stderr
    assert "--data" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_was_counted_before_the_disk_was_full_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = ReservedFile(str(tmp_path / "counter_1.db"))
    file.write_value("first", 3.0, 0.0)
    monkeypatch.setattr("bucketwire.metric_files._reserve", lambda *_: False)
    for number in range(2_000):
        file.write_value(f"another counter {number}", 1.0, 0.0)
    file.write_value("first", 4.0, 0.0)
    assert (file.read_value("first")[0], file.read_value("another counter 1999")[0]) == (4.0, 1.0)
    file.close()
    assert "first" in names(tmp_path)


def on_a_disk_of(kilobytes: int, folder: Path) -> list[str]:
    """Runs what follows it with a small file system at that folder, which it alone sees."""
    apart = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
    mount = f'mount -t tmpfs -o size={kilobytes}k none "{folder}"'
    try:
        usable = subprocess.run([*apart, mount], check=False, capture_output=True).returncode == 0
    except FileNotFoundError:
        usable = False
    if not usable:
        pytest.skip(HOW_TO_GET_IT)
    return [*apart, f'{mount} && exec "$@"', "sh"]
