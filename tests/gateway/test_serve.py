"""The gateway as a process."""

import http.client
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bucketwire.errors import ConfigError
from bucketwire.gateway.serve import listen

PROGRAM = """
import sys
from pathlib import Path
from bucketwire.access.credentials import KeyRing
from bucketwire.blobs import Blobs
from bucketwire.config import GatewaySettings
from bucketwire.gateway.serve import serve
from bucketwire.metabase import open_metabase

folder = Path(sys.argv[1])
metabase = open_metabase(f"sqlite:///{folder}/metabase.db")
settings = GatewaySettings("127.0.0.1", 0, folder, "", "aws", "us-east-1")
serve(settings, metabase, KeyRing([]), Blobs(f"file://{folder}/objects"), lambda: None,
      listening=lambda port: print(port, flush=True))
metabase.close()
print("closed", flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("GET", "/-/live")
        assert connection.getresponse().status == 200
        process.send_signal(number)
        assert process.stdout.read().endswith("closed\n")
        assert process.wait() == 0
        connection.close()


def test_an_address_that_is_taken_is_told_as_such() -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"port {port}"):
            listen("127.0.0.1", port)
