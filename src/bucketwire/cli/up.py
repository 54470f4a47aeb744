"""`bucketwire up`: gateway and pipeline as one supervised program."""

import fcntl
import os
import shlex
import shutil
import signal
import socket
import ssl
import sys
import threading
import time
import urllib.request
from dataclasses import replace
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import IO

import click

from bucketwire.access.credentials import ROOT_FILE, Credentials, root_credentials
from bucketwire.cli.bundle import environment
from bucketwire.cli.delivery import Delivery, delivery_options
from bucketwire.cli.env import endpoint
from bucketwire.cli.options import (
    data_option,
    dialect_option,
    free_port,
    metabase_option,
    metabase_url,
    option,
    root_access_key_option,
    root_secret_key_option,
    system_name_option,
    system_uuid_option,
)
from bucketwire.cli.pipelines import Pipelines
from bucketwire.cli.serving import Serving, serving_options
from bucketwire.cli.supervise import Part, Start, Supervisor
from bucketwire.errors import ConfigError
from bucketwire.event.arn import PubsubArn, TopicArn
from bucketwire.event.dialect import Dialect, dialect_named

LEAST_FREE_BYTES = 32_000_000

_FIRST_EVENT = """
Your first event. In a second terminal:

  {program} inbox

and in a third:

  eval "$({program} env --host {host} --port {port} --data {data}{tls})"
  export PATH={bin}:"$PATH"
  {topic}
  aws s3 mb s3://first
  aws s3api put-bucket-notification-configuration --bucket first --notification-configuration \\
    '{{"TopicConfigurations":[{{"Id":"first","TopicArn":"{arn}","Events":["s3:ObjectCreated:*"]}}]}}'
  echo hello | aws s3 cp - s3://first/hello.txt
"""


@click.command()
@data_option
@dialect_option
@metabase_option
@serving_options
@system_uuid_option
@system_name_option
@option("--standby", "Keep a second pipeline ready to take over within seconds.", is_flag=True)
@delivery_options
@root_access_key_option
@root_secret_key_option
def up(
    data: Path,
    dialect: str,
    metabase: str | None,
    serving: Serving,
    system_uuid: str | None,
    system_name: str | None,
    delivery: Delivery,
    root_access_key: str | None,
    root_secret_key: str | None,
    *,
    standby: bool,
) -> None:
    """Run gateway and pipeline on this machine.

    A part that dies is started again. Ctrl-C stops everything.
    """
    from bucketwire.gateway.serve import check_tls

    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: stop.set())
    check_tls(serving.tls_certificate, serving.tls_key)
    data = data.absolute()
    serving = replace(serving, port=serving.port or free_port(serving.host))
    _check_port(serving.host, serving.port)
    lock = _lock(data)
    _check_room(data)
    root, generated = root_credentials(data, root_access_key or None, root_secret_key or None)
    url = metabase_url(metabase, data)
    where = [
        *("--data", str(data), "--dialect", dialect),
        *_given("--system-uuid", system_uuid),
        *_given("--system-name", system_name),
    ]
    gateway = Start(_command("gateway", *where))
    supervisor = Supervisor(
        [
            Part("gateway", lambda: gateway),
            *Pipelines(url, data, _command("pipeline", *where), stop).parts(standby=standby),
        ],
        {**_environment(data, url), **environment(serving), **environment(delivery)},
        _say,
        stop,
    )
    _greet(root, generated=generated, data=data)
    announce = threading.Thread(target=_announce, args=(stop, serving, data, dialect), daemon=True)
    announce.start()
    supervisor.run()
    announce.join()
    lock.close()
    _say("stopped")


def _given(flag: str, value: str | None) -> tuple[str, ...]:
    """The flag with its value, if it has one."""
    return (flag, value) if value else ()


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "bucketwire", *arguments, "--supervised"]


def _environment(data: Path, url: str) -> dict[str, str]:
    """The parts' environment: without the root keys, which they read from the data folder.

    The metabase's URL is here and not among the arguments, which `ps` shows.
    """
    metrics = data / "metrics"
    shutil.rmtree(metrics, ignore_errors=True)
    metrics.mkdir()
    ours = {name: value for name, value in os.environ.items() if not name.startswith("BUCKETWIRE_ROOT_")}
    return {
        **ours,
        "BUCKETWIRE_METABASE": url,
        "PROMETHEUS_MULTIPROC_DIR": str(metrics),
    }


def _lock(data: Path) -> IO[str]:
    """Make and hold the data folder: two systems in one folder would share a pipeline's cursor."""
    if "," in str(data) or not str(data).isprintable():
        raise ConfigError("the data folder's name may not have a comma or a control character")
    try:
        data.mkdir(parents=True, exist_ok=True)
        file = (data / "lock").open("a")
    except OSError as error:
        raise ConfigError(f"cannot write to {data} ({error.strerror}): choose a folder with --data") from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ConfigError(
            f"another `bucketwire up` runs in {data}: stop it, or choose another folder with --data"
        ) from None
    return file


def _check_room(data: Path) -> None:
    """A server cannot start on a full disk: it would die over and over, each time of something else."""
    free = shutil.disk_usage(data).free
    if free < LEAST_FREE_BYTES:
        raise ConfigError(
            f"the disk of {data} is full ({free // 1_000} kB are free, a start needs "
            f"{LEAST_FREE_BYTES // 1_000} kB): make room, or choose another folder with --data"
        )


def _check_port(host: str, port: int) -> None:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise ConfigError(
                f"cannot listen on {host}:{port} ({error.strerror}): choose another with --host and --port"
            ) from None


def _greet(root: Credentials, *, generated: bool, data: Path) -> None:
    _say("starting gateway and pipeline (the first start takes longest)")
    if generated:
        click.echo(
            f"\nNew root credentials, shown this once and kept in {data / ROOT_FILE}:\n\n"
            f"  AWS_ACCESS_KEY_ID={root.access_key}\n"
            f"  AWS_SECRET_ACCESS_KEY={root.secret_key}\n"
        )


def _announce(stop: threading.Event, serving: Serving, data: Path, dialect: str) -> None:
    """Say when the system is ready, with commands to paste."""
    certificate, region = serving.tls_certificate, serving.region
    url = endpoint(serving.host, serving.port, tls=certificate is not None)
    began = time.monotonic()
    while not _is_ready(url):
        if stop.wait(0.2):
            return
    _say(f"ready on {url} after {time.monotonic() - began:.1f} s (dialect {dialect}, region {region})")
    program = Path(sys.executable).with_name("bucketwire")
    arn, topic = _first_topic(dialect_named(dialect), region)
    click.echo(
        _FIRST_EVENT.format(
            program=shlex.quote(str(program)),
            host=serving.host,
            port=serving.port,
            data=shlex.quote(str(data)),
            tls=f" --tls-certificate {shlex.quote(str(certificate))}" if certificate else "",
            bin=shlex.quote(str(program.parent)),
            arn=arn,
            topic=topic,
        )
    )


def _first_topic(dialect: Dialect, region: str) -> tuple[TopicArn | PubsubArn, str]:
    """A topic to begin with, and the command that makes it."""
    if not dialect.topics_served:
        return PubsubArn("YOUR-PROJECT", "YOUR-TOPIC"), "gcloud pubsub topics create YOUR-TOPIC"
    attributes = "push-endpoint=http://127.0.0.1:8085/"
    if not dialect.persistent_by_default:
        attributes += ",persistent=true"
    arn = TopicArn(region, dialect.topic_tenant, "first")
    return arn, f"aws sns create-topic --name first --attributes {attributes}"


def _is_ready(url: str) -> bool:
    trusting = ssl._create_unverified_context()  # noqa: S323, SLF001 - our own gateway, by its address
    try:
        with urllib.request.urlopen(f"{url}/-/ready", timeout=2, context=trusting) as response:  # noqa: S310
            return bool(response.status == HTTPStatus.OK)
    except (OSError, HTTPException):
        return False


def _say(text: str) -> None:
    click.echo(f"bucketwire: {text}")
