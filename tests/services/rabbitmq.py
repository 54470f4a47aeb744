"""A private RabbitMQ node for tests: its own folder, ports, cookie and port mapper, gone at the end.

    server = rabbitmq_server()        the one of this test session; skips the test where there is none
    server.port, server.tls_port, server.certificates
    with server.channel() as channel: a channel of pika's, as the administrator, to look behind the scenes

It runs as whoever runs the tests, root too. The users and virtual hosts that tests need are there from the
start: see `USERS` and `VHOSTS`.
"""

import atexit
import base64
import functools
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pika
import pytest

from services.certificates import Certificates, make_certificates
from services.ports import lasting_port

HOW_TO_GET_IT = "there is no RabbitMQ server here: `make services` installs it"
START_SECONDS = 90.0
STOP_SECONDS = 20.0
VHOSTS = ("/", "media/eu")
USERS = {"guest": "guest", "jörg": "p@ss:word/100%", "reader": "reader", "stranger": "stranger"}
"""`reader` may not write, `stranger` has no virtual host; the others may do all in every one."""
MESSAGE_LIMIT_BYTES = 4_000_000


def rabbitmq_server() -> "RabbitmqServer":
    """The server of this test session, started on first use; one that does not start is not tried again."""
    if find_program() is None:
        if os.environ.get("CI") == "true":
            pytest.fail(HOW_TO_GET_IT)
        pytest.skip(HOW_TO_GET_IT)
    started = _start_once()
    if isinstance(started, TimeoutError):
        raise started
    return started


@functools.cache
def _start_once() -> "RabbitmqServer | TimeoutError":
    try:
        server = RabbitmqServer.start()
    except TimeoutError as problem:
        return problem
    atexit.register(server.stop)
    return server


def find_program() -> Path | None:
    """The script that starts a node as the user who calls it; Debian's own on the PATH changes the user."""
    packaged = sorted(Path("/usr/lib/rabbitmq/lib").glob("rabbitmq_server-*/sbin/rabbitmq-server"))
    on_path = shutil.which("rabbitmq-server")
    if shutil.which("epmd") is None:
        return None
    if packaged:
        return packaged[-1]
    return Path(on_path) if on_path else None


@dataclass
class RabbitmqServer:
    folder: Path
    port: int
    tls_port: int
    certificates: Certificates
    environment: dict[str, str] = field(default_factory=dict)
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @classmethod
    def start(cls) -> "RabbitmqServer":
        """A node that listens; tried twice, as somebody may take a port between its choice and its use."""
        try:
            return cls._started()
        except TimeoutError:
            return cls._started()

    @classmethod
    def _started(cls) -> "RabbitmqServer":
        """Write the settings into a folder of its own, start the node, and wait until it listens."""
        program = find_program()
        if program is None:
            raise FileNotFoundError(HOW_TO_GET_IT)
        folder = Path(tempfile.mkdtemp(prefix="bucketwire-rabbitmq-"))
        ports = [lasting_port() for _ in range(2)]
        server = cls(folder, *ports, make_certificates(folder / "certificates"))
        try:
            server._configure()
            server._launch(program)
            server._wait_until_ready()
        except BaseException:
            server.stop()
            raise
        return server

    def stop(self) -> None:
        """End the node and its port mapper; calling it twice is harmless."""
        for process in reversed(self.processes):
            _end(process)
        self.processes.clear()
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, *, tls: bool = False, port: int | None = None) -> str:
        """As a customer would write it; through a proxy when its port is given."""
        scheme, own = ("amqps", self.tls_port) if tls else ("amqp", self.port)
        return f"{scheme}://127.0.0.1:{port or own}"

    @contextmanager
    def channel(self, vhost: str = "/") -> Iterator[Any]:
        """A channel of pika's with all rights."""
        parameters = pika.ConnectionParameters("127.0.0.1", self.port, vhost, heartbeat=0)
        with pika.BlockingConnection(parameters) as connection:
            yield connection.channel()

    def evaluate(self, erlang: str) -> None:
        """Run an expression inside the node."""
        self._control("eval", erlang)

    def suspend_queue(self, name: str) -> None:
        """Let a queue take nothing until it is resumed."""
        self._tell_queue(name, "suspend")

    def resume_queue(self, name: str) -> None:
        """Let it work again."""
        self._tell_queue(name, "resume")

    def client_connections(self, name: str) -> int:
        """How many connections clients of that name have open."""
        listed = self._control("list_connections", "client_properties", "--silent")
        return sum(f'"{name}"' in line for line in listed.splitlines())

    def held_up_connections(self) -> int:
        """How many connections it reads nothing from, or did so a moment ago, as a queue cannot keep up."""
        return self._control("list_connections", "state", "--silent").split().count("flow")

    def _tell_queue(self, name: str, what: str) -> None:
        resource = f'rabbit_misc:r(<<"/">>, queue, <<"{name}">>)'
        self.evaluate(f"{{ok, Q}} = rabbit_amqqueue:lookup({resource}), sys:{what}(amqqueue:get_pid(Q)).")

    def _control(self, *arguments: str) -> str:
        program = find_program()
        assert program is not None
        command = [str(program.with_name("rabbitmqctl")), *arguments]
        done = subprocess.run(
            command,
            env=self.environment,
            cwd=self.folder,
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            timeout=START_SECONDS,
        )
        return done.stdout.decode()

    def log(self) -> str:
        """The end of what the node has said."""
        files = [*sorted(self.folder.glob("log/*.log")), self.folder / "output"]
        return "\n".join(file.read_text(errors="replace")[-4000:] for file in files if file.exists())

    def _configure(self) -> None:
        definitions = self.folder / "definitions.json"
        definitions.write_text(json.dumps(_definitions()))
        settings = {
            "listeners.tcp.1": f"127.0.0.1:{self.port}",
            "listeners.ssl.1": f"127.0.0.1:{self.tls_port}",
            "ssl_options.cacertfile": self.certificates.ca,
            "ssl_options.certfile": self.certificates.server_cert,
            "ssl_options.keyfile": self.certificates.server_key,
            "ssl_options.verify": "verify_peer",
            "ssl_options.fail_if_no_peer_cert": "false",
            "loopback_users": "none",
            "load_definitions": definitions,
            "max_message_size": MESSAGE_LIMIT_BYTES,
            "disk_free_limit.absolute": "10MB",
            "vm_memory_high_watermark.relative": "0.8",
        }
        lines = [f"{name} = {value}" for name, value in settings.items()]
        (self.folder / "rabbitmq.conf").write_text("\n".join([*lines, ""]))
        (self.folder / "enabled_plugins").write_text("[].\n")

    def _launch(self, program: Path) -> None:
        mapper_port = lasting_port()
        self.environment = {**os.environ, **self._environment(), "ERL_EPMD_PORT": str(mapper_port)}
        with (self.folder / "output").open("ab") as output:
            for command in (["epmd", "-address", "127.0.0.1", "-port", str(mapper_port)], [str(program)]):
                process = subprocess.Popen(
                    command,
                    env=self.environment,
                    cwd=self.folder,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
                self.processes.append(process)

    def _environment(self) -> dict[str, str]:
        return {
            "HOME": str(self.folder),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": f"bucketwire-{self.port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(lasting_port()),
            "RABBITMQ_CONF_ENV_FILE": str(self.folder / "none"),
            "RABBITMQ_CONFIG_FILE": str(self.folder / "rabbitmq.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "enabled_plugins"),
            "RABBITMQ_MNESIA_BASE": str(self.folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(self.folder / "log"),
            "RABBITMQ_PID_FILE": str(self.folder / "pid"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 2:2 -kernel inet_dist_use_interface {127,0,0,1}",
        }

    def _wait_until_ready(self) -> None:
        give_up_at = time.monotonic() + START_SECONDS
        while not self._is_ready():
            ended = [process.args for process in self.processes if process.poll() is not None]
            if ended or time.monotonic() > give_up_at:
                raise TimeoutError(f"RabbitMQ did not start in {START_SECONDS} s; it says:\n{self.log()}")
            time.sleep(0.1)

    def _is_ready(self) -> bool:
        """Whether the listener that opens last accepts, and the users are there."""
        with (
            suppress(OSError, pika.exceptions.AMQPError),
            socket.create_connection(("127.0.0.1", self.tls_port), 1),
            self.channel(VHOSTS[-1]),
        ):
            return True
        return False


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ask the whole group to end, and make it."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, how)
        with suppress(subprocess.TimeoutExpired):
            process.wait(STOP_SECONDS)


def _definitions() -> dict[str, Any]:
    """Users, virtual hosts and permissions, as the node loads them when it starts."""
    return {
        "users": [
            {
                "name": name,
                "password_hash": _password_hash(password),
                "hashing_algorithm": "rabbit_password_hashing_sha256",
                "tags": "",
            }
            for name, password in USERS.items()
        ],
        "vhosts": [{"name": name} for name in VHOSTS],
        "permissions": [
            {
                "user": user,
                "vhost": vhost,
                "configure": "" if user == "reader" else ".*",
                "write": "" if user == "reader" else ".*",
                "read": ".*",
            }
            for user in USERS
            if user != "stranger"
            for vhost in VHOSTS
        ],
    }


def _password_hash(password: str) -> str:
    salt = b"salt"
    return base64.b64encode(salt + hashlib.sha256(salt + password.encode()).digest()).decode()
