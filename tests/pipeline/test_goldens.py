"""What Spark delivers are the golden messages, byte for byte: every case, in every format and dialect.

The changes go into the stream as the cases have them, so that nothing has to be left out of the comparison.
The dialect is a setting of the pipeline: there is one run for each, in one session, with one batch.
"""

from collections import defaultdict
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from bucketwire.config import PipelineSettings
from bucketwire.event.dialect import DIALECTS
from bucketwire.pipeline.job import start_queries, stop_queries
from golden.cases import CHANGES, FORMS, REPEATS
from golden.expected import EVERY, compared, expected, written
from golden.wire import PATIENCE_SECONDS, lines_from_kafka, lines_of_request
from pipeline.golden_stream import KAFKA_TOPIC, fill_stream
from services.http_endpoint import HttpEndpoint
from services.kafka_mock import MockCluster

Deliveries = dict[tuple[str, str, str], list[list[bytes]]]
"""The lines of all messages that came, by case, form and dialect."""


@pytest.fixture(scope="module")
def deliveries(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Deliveries:
    """All that the destinations get, from three runs of the pipeline."""
    found: Deliveries = defaultdict(list)
    for dialect in DIALECTS:
        with HttpEndpoint() as endpoint, MockCluster() as kafka:
            kafka_url = f"kafka://127.0.0.1:{kafka.port}"
            settings = fill_stream(tmp_path_factory.mktemp(dialect), dialect, endpoint.url, kafka_url)
            for case, form, lines in run(spark, settings, endpoint, kafka):
                found[case, form, dialect].append(lines)
    return found


def run(
    spark: SparkSession, settings: PipelineSettings, endpoint: HttpEndpoint, kafka: MockCluster
) -> Iterator[tuple[str, str, list[bytes]]]:
    """Run the pipeline until every topic has got its messages: (case, form, lines) of each."""
    queries = start_queries(spark, settings)
    count = len(CHANGES) * REPEATS
    try:
        for request in endpoint.wait_for(count * (len(FORMS) - 1), PATIENCE_SECONDS):
            _, case, form = request.path.removeprefix("/").split("/")
            yield case, form, lines_of_request(request)
        for place, lines in enumerate(lines_from_kafka(kafka.port, KAFKA_TOPIC, count)):
            yield list(CHANGES)[place // REPEATS], "cos", lines
    finally:
        stop_queries(queries, settings)


@pytest.mark.parametrize(("case", "form", "dialect"), EVERY)
def test_what_is_delivered_is_the_golden_message(
    case: str, form: str, dialect: str, deliveries: Deliveries
) -> None:
    assert deliveries[case, form, dialect] == [expected(case, form, dialect)] * REPEATS


def test_no_line_of_a_golden_file_is_left_out() -> None:
    assert compared() == written()
