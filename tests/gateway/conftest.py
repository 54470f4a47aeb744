"""A gateway in this process, on a free port, and boto3 clients that talk to it."""

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from gateway.running import RunningGateway, run_gateway


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    yield from run_gateway(tmp_path_factory.mktemp("gateway"), "aws")


@pytest.fixture(scope="module")
def ceph_gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    yield from run_gateway(tmp_path_factory.mktemp("ceph"), "ceph")


@pytest.fixture(scope="module")
def s3(gateway: RunningGateway) -> Iterator[Any]:
    client = gateway.client("s3")
    yield client
    client.close()


@pytest.fixture(scope="module")
def sns(gateway: RunningGateway) -> Iterator[Any]:
    client = gateway.client("sns")
    yield client
    client.close()


@pytest.fixture
def bucket(s3: Any) -> str:
    """A bucket of the test's own."""
    name = f"bucket-{uuid.uuid4().hex}"
    s3.create_bucket(Bucket=name)
    return name
