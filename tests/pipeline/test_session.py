"""The end of a session, in a process of its own."""

import subprocess
import sys
from pathlib import Path

CALLS_UNDER_WAY = 3
PROGRAM = f"""
import os, signal, sys, time
from pathlib import Path
from threading import Barrier, Thread
from bucketwire.config import PipelineSettings
from bucketwire.pipeline.session import end_session, open_session

settings = PipelineSettings(metabase="sqlite:///unused.db", dialect="aws", scratch=Path(sys.argv[1]))
session = open_session(settings)
java = session.sparkContext._gateway.proc.process
now = session.sparkContext._jvm.java.lang.System.currentTimeMillis
connected, paused = Barrier({CALLS_UNDER_WAY + 1}), Barrier({CALLS_UNDER_WAY + 1})

def call():
    now()
    connected.wait()
    paused.wait()
    try:
        now()
    except Exception:
        failed.append(True)

failed = []
calls = [Thread(target=call) for _ in range({CALLS_UNDER_WAY})]
for each in calls:
    each.start()
connected.wait()
os.kill(java.pid, signal.SIGSTOP)  # so that it dies with calls that it has not read
os.waitpid(java.pid, os.WUNTRACED)
paused.wait()
time.sleep(0.5)
end_session(session)
for each in calls:
    each.join()
print(len(failed), "failed")
"""


def test_calls_that_are_under_way_at_the_end_print_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert ended.stderr == ""
    assert ended.stdout == f"{CALLS_UNDER_WAY} failed\n"
