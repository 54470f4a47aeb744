"""A metabase whose change stream holds the golden changes as they are, each with topics of its own.

The files' changes share one bucket, one time and one event id: what tells the messages of two cases apart is
where they go. So each case has a topic a form, and a revision of the bucket's rules that names these topics.
Each change is there several times, as the first message of a kind is made in another way than those after it.
COS goes to Kafka, as its key does not travel over HTTP: to one topic, whose messages have one key and so stay
in the order of the cases.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec

from bucketwire.config import PipelineSettings
from bucketwire.event.change import encode_change
from bucketwire.event.topic import Topic
from bucketwire.metabase import open_metabase
from bucketwire.pipeline.session import fresh_scratch
from factories import rule, topic
from golden.cases import CHANGES, FORMS, REPEATS, SYSTEM_UUID, asks_before_image, change_of
from golden.expected import EVENTS, RULE_ID, SYSTEM_NAMES, attributes

KAFKA_TOPIC = "cos"
DEADLINE_SECONDS = 30.0
"""So long that nothing is parked, and sent twice, on a slow day."""


def fill_stream(folder: Path, dialect: str, http_url: str, kafka_url: str) -> PipelineSettings:
    """Make it in that folder; the settings of a pipeline that reads it."""
    file = folder / "metabase.db"
    settings = PipelineSettings(
        metabase=f"sqlite:///{file}",
        dialect=dialect,
        scratch=folder / "scratch",
        deadline_seconds=DEADLINE_SECONDS,
        retry_deadline_seconds=DEADLINE_SECONDS,
        system_uuid=SYSTEM_UUID,
        system_name=SYSTEM_NAMES[dialect],
    )
    fresh_scratch(settings)
    topics = {case: [_topic(case, form, http_url, kafka_url) for form in FORMS] for case in CHANGES}
    _append(file, dialect, _subscribe(settings.metabase, file, topics))
    return settings


def _topic(case: str, form: str, http_url: str, kafka_url: str) -> Topic:
    asked = attributes(form, before_image=asks_before_image(case))
    if form == "cos":
        return topic(kafka_url, KAFKA_TOPIC, **asked)
    return topic(f"{http_url}/{case}/{form}", f"{case}-{form}", **asked)


def _subscribe(metabase_url: str, file: Path, topics: dict[str, list[Topic]]) -> dict[str, int]:
    """The revisions of the bucket's rules, by case."""
    bucket = CHANGES["put"].bucket
    revisions = {}
    with closing(open_metabase(metabase_url)) as metabase:
        metabase.buckets.create(bucket.name, bucket.owner_id, bucket.region)
        _execute(file, "UPDATE buckets SET id = ?", [(bucket.id,)])
        for case, those in topics.items():
            for each in those:
                metabase.topics.put(each)
            rules = [rule(*EVENTS, id=RULE_ID, topic_arn=each.arn) for each in those]
            revisions[case] = metabase.rules.edit(bucket.name, lambda _, rules=rules: rules)
    return revisions


def _append(file: Path, dialect: str, revisions: dict[str, int]) -> None:
    changes = [
        msgspec.structs.replace(change_of(case, dialect), revision=at) for case, at in revisions.items()
    ]
    rows = [(each.committed_at_ns, encode_change(each)) for each in changes for _ in range(REPEATS)]
    _execute(file, "INSERT INTO changes (committed_at_ns, change) VALUES (?, ?)", rows)


def _execute(file: Path, statement: str, rows: list[tuple[object, ...]]) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.executemany(statement, rows)
