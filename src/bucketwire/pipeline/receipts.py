"""Event ids of delivered messages, noted beside the batches: they make repetitions rare.

    note      after each call of a publisher: appended to a file that all workers of this machine share
    has       after a start or a takeover: whether a message of a repeated batch was delivered before
    outdate   what was read before a query was started anew is not enough

The cursor says what is done, but a batch late: what was delivered in the batch under way when a process is
killed would go out again. Nothing is promised here: a file may be lost, with the machine, or on another one,
and then a message comes twice, which is what at least once means. Notes are never forced to disk. What was
parked or buried is not noted: only the queue knows whether that was kept, and it takes no message twice.
"""

import os
import time
from collections.abc import Iterable
from pathlib import Path
from threading import Lock

from bucketwire.event.message import Message
from bucketwire.log import get_logger

FILE_BYTES = 4 * 1024 * 1024
FILES_KEPT = 3
"""The one that is written, and those before it: some 250,000 ids, which is several batches."""

log = get_logger("pipeline")


class Receipts:
    """The notes of this machine's workers. Threads may note at once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = Lock()
        self._file = -1
        self._known: frozenset[str] = frozenset()
        self._read_at_ns = 0

    def read(self) -> None:
        """Learn what was noted until now, by others too."""
        self._read_at_ns = time.time_ns()
        try:
            ids = [each for path in self._files() for each in path.read_text("ascii").split("\n")]
        except (OSError, ValueError) as error:
            log.warning("receipts_not_read", reason=str(error))
            ids = []
        self._known = frozenset(ids)

    def outdate(self, before_ns: int) -> None:
        """Read again, at the next message, if that was last done before then."""
        if self._read_at_ns < before_ns:
            self._read_at_ns = 0

    def has(self, message: Message) -> bool:
        """Whether the message was noted when the notes were read: at the first message, or since."""
        if not self._read_at_ns:
            self.read()
        if message.committed_at_ns > self._read_at_ns:  # nothing older comes from here on
            self._known = frozenset()
        return message.event_id in self._known

    def note(self, messages: Iterable[Message]) -> None:
        """These are delivered."""
        lines = "".join([f"{message.event_id}\n" for message in messages]).encode()
        try:
            with self._lock:
                os.write(self._open(), lines)
        except OSError as error:  # a full disk: what cannot be noted may come twice
            log.warning("receipts_not_noted", reason=error.strerror)

    def _open(self) -> int:
        """The file to append to: another one when it is full."""
        if self._file < 0 or os.fstat(self._file).st_size >= FILE_BYTES:
            self._folder.mkdir(parents=True, exist_ok=True)
            files = self._files()
            last = _number(files[-1]) if files else 0
            if not files or files[-1].stat().st_size >= FILE_BYTES:
                last += 1
            opened = os.open(self._folder / str(last), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            self._close()
            self._file = opened
            for path in files[: -FILES_KEPT + 1]:
                path.unlink(missing_ok=True)
        return self._file

    def _close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _files(self) -> list[Path]:
        """Oldest first."""
        return sorted(self._folder.glob("[0-9]*"), key=_number)


def _number(path: Path) -> int:
    return int(path.name)
