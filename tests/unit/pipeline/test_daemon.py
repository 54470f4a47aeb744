"""What Spark's workers are forked from."""

import subprocess
import sys

PROGRAM = """
import gc, sys
from bucketwire.errors import ConfigError
from bucketwire.pipeline.daemon import prepare
from bucketwire.publish import SCHEMES, publisher_kind

prepare()
known, found = set(sys.modules), []
for scheme in SCHEMES:
    try:
        found.append(publisher_kind(scheme, "").__name__)
    except ConfigError:  # not installed
        continue
print(len(found), gc.get_freeze_count(), *set(sys.modules) - known)
"""


def test_a_worker_has_the_library_of_each_destination_when_it_is_forked() -> None:
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    found, frozen, *imported = ran.stdout.split()
    assert imported == []
    assert int(found) >= 2
    assert int(frozen) > 100_000
