"""The PEM files of the server that a topic names: authorities to trust, a client's certificate and its key.

A tenant chooses the paths, and is to learn nothing of the files: whatever is wrong with one, the reason is
the same, and is found before anybody is called. A file is looked at before it is opened, as to open or read
a pipe or a device may block for ever.
"""

import os
import ssl
import stat
from pathlib import Path

UNUSABLE = "the certificate or key files cannot be used"
"""The reason of the outcome. It is `Retry`: files can be mended."""
LARGEST_BYTES = 1024 * 1024


class UnusableFile(Exception):
    """It is missing, no regular file, empty, too large, not readable, or holds nothing of use."""


def check_file(path: str) -> None:
    """`UnusableFile` unless it can be read, and is of a size that such files have.

    One without any size may be a kernel's: some of those block the reader.
    """
    try:
        found = Path(path).stat()
        usable = stat.S_ISREG(found.st_mode) and 0 < found.st_size <= LARGEST_BYTES
        usable = usable and os.access(path, os.R_OK)
    except (OSError, ValueError):  # the latter of a path that no file can have
        usable = False
    if not usable:
        raise UnusableFile


def trust(ca_location: str | None) -> ssl.SSLContext:
    """For clients that trust the authorities of the file, or else the system's; `UnusableFile`."""
    if ca_location is not None:
        check_file(ca_location)
    try:
        return ssl.create_default_context(cafile=ca_location)
    except OSError:  # of ssl too
        raise UnusableFile from None
