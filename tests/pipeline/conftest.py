"""A real local Spark, one for all tests here, and a metabase, an endpoint and settings for each."""

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bucketwire.config import PipelineSettings
from bucketwire.event.name import Operation
from bucketwire.metabase import open_metabase
from bucketwire.metabase.base import Metabase
from bucketwire.pipeline.job import Query, start_queries
from bucketwire.pipeline.session import close_session, fresh_scratch, open_session
from factories import new_object, origin, rule, topic
from services.http_endpoint import HttpEndpoint

BUCKET = "media"
Subscribe = Callable[..., str]
Write = Callable[..., None]


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    folder = tmp_path_factory.mktemp("spark")
    session = open_session(PipelineSettings(metabase="", dialect="aws", scratch=folder))
    yield session
    close_session(session)


@pytest.fixture
def settings(tmp_path: Path) -> PipelineSettings:
    made = PipelineSettings(
        metabase=f"sqlite:///{tmp_path}/metabase.db", dialect="aws", scratch=tmp_path / "scratch"
    )
    fresh_scratch(made)
    return made


@pytest.fixture
def metabase(settings: PipelineSettings) -> Iterator[Metabase]:
    opened = open_metabase(settings.metabase)
    opened.buckets.create(BUCKET, "owner-1", "us-east-1")
    yield opened
    opened.close()


@pytest.fixture
def endpoint() -> Iterator[HttpEndpoint]:
    with HttpEndpoint() as opened:
        yield opened


@pytest.fixture
def other_endpoint() -> Iterator[HttpEndpoint]:
    with HttpEndpoint() as opened:
        yield opened


@pytest.fixture
def subscribe(metabase: Metabase) -> Subscribe:
    """Make a topic and a rule for keys with its name as prefix; the ARN."""

    def act(url: str, name: str = "videos", **attributes: str) -> str:
        made = topic(url, name, **attributes)
        metabase.topics.put(made)
        added = rule("s3:ObjectCreated:*", id=name, topic_arn=made.arn, prefix=f"{name}/")
        metabase.rules.edit(BUCKET, lambda rules: [*rules, added])
        return made.arn

    return act


@pytest.fixture
def write(metabase: Metabase) -> Write:
    """Commit objects under the topic's prefix."""

    def act(count: int = 1, name: str = "videos", first: int = 0) -> None:
        for number in range(first, first + count):
            metabase.objects.put(BUCKET, new_object(f"{name}/{number}"), Operation.PUT, origin())

    return act


@pytest.fixture
def run_pipeline(spark: SparkSession, settings: PipelineSettings) -> Iterator[Callable[..., list[Query]]]:
    """Start both queries; they are stopped when the test ends."""
    started: list[Query] = []

    def act(**changed: Any) -> list[Query]:
        queries = start_queries(spark, dataclasses.replace(settings, **changed))
        started.extend(queries)
        return queries

    yield act
    for query in started:
        query.running.stop()
