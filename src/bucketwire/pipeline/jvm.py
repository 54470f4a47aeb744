"""Starts the Java process that Spark runs in, directly: no shell scripts, and no other JVM before it.

    this process --stdin pipe--> JVM --stdin pipe--> Python daemon --fork--> Python workers

Each link is a pipe that nobody else holds: when its upper end dies, by kill -9 too, the lower end reads
the end of the file and exits, and so on down. A Ctrl-C in the terminal does not reach the JVM: whoever
started it stops it.
"""

import os
import struct
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyspark

from bucketwire.errors import Unavailable

START_TIMEOUT_SECONDS = 60.0
STOP_TIMEOUT_SECONDS = 2.0
_HEAP = "-Xmx640m"
_OPENED = (
    "java.base/java.lang",
    "java.base/java.lang.invoke",
    "java.base/java.lang.reflect",
    "java.base/java.io",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.base/sun.nio.cs",
    "java.base/sun.util.calendar",
    "java.security.jgss/sun.security.krb5",
)
"""Packages of Java that Spark looks into. The vector module, which it also asks for, is not in every JRE and
is used by its machine learning alone."""
_OPTIONS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    "-XX:+UseSerialGC",
    # A plan is made anew for each batch: code that runs a few hundred times a second is worth compiling soon,
    # and never worth the second compiler's time on two cores.
    "-XX:TieredStopAtLevel=1",
    "-XX:Tier3InvocationThreshold=60",
    "-XX:Tier3MinInvocationThreshold=30",
    "-XX:Tier3CompileThreshold=200",
    "-XX:Tier3BackEdgeThreshold=6000",
    "-Xshare:auto",
    "-Xlog:disable",
    "-Xlog:all=error:stderr",
    "-Djava.net.preferIPv6Addresses=false",
    "-Djdk.reflect.useDirectMethodHandle=false",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
)


@dataclass(frozen=True, slots=True)
class Jvm:
    """A running JVM that waits for calls on `port`."""

    process: subprocess.Popen[bytes]
    port: int
    secret: str

    def kill(self) -> None:
        """End it at once: for when nothing in it matters any more."""
        self.process.kill()
        self.process.wait()

    def stop(self, timeout_seconds: float = STOP_TIMEOUT_SECONDS) -> None:
        """End it: by closing its standard input, by force if that does not help in time."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            self.process.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            self.kill()


def start_jvm(java: Path, conf: Mapping[str, str], environment: Mapping[str, str], *extra: str) -> Jvm:
    """Start Spark's Java side with these settings; `Unavailable` when it does not come up."""
    with tempfile.TemporaryDirectory(prefix="bucketwire-") as folder:
        greeting = Path(folder) / "greeting"
        process = subprocess.Popen(  # noqa: S603
            [str(java), *_command(conf, extra)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env=_environment(environment, greeting),
            # Where this process leads a session, as a supervised one does, no terminal can reach it, and
            # whoever ends its group ends Java with it.
            start_new_session=os.getsid(0) != os.getpid(),
        )
        try:
            return Jvm(process, *_read_greeting(process, greeting))
        except BaseException:
            process.kill()
            process.wait()
            raise


def _command(conf: Mapping[str, str], extra: Sequence[str]) -> list[str]:
    return [
        _HEAP,
        *_OPTIONS,
        *extra,
        *(f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED),
        f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}",
        *(f"-D{name}={value}" for name, value in conf.items()),
        "-cp",
        str(Path(pyspark.__file__).parent / "jars" / "*"),
        "org.apache.spark.api.python.PythonGatewayServer",
    ]


def _environment(environment: Mapping[str, str], greeting: Path) -> dict[str, str]:
    """Without SPARK_HOME the workers import compiled modules; with it they would read a zip file."""
    kept = {name: value for name, value in environment.items() if name != "SPARK_HOME"}
    return kept | {"_PYSPARK_DRIVER_CONN_INFO_PATH": str(greeting), "SPARK_LOCAL_IP": "127.0.0.1"}


def _read_greeting(process: subprocess.Popen[bytes], greeting: Path) -> tuple[int, str]:
    """The port and the secret, which the JVM writes, whole, when it is ready."""
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    while not greeting.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            raise Unavailable(f"Spark's Java process did not start (exit code {process.returncode})")
        time.sleep(0.02)
    content = greeting.read_bytes()
    port, length = struct.unpack_from("!ii", content)
    return port, content[8 : 8 + length].decode()
