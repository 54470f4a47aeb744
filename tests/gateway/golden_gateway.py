"""A gateway of each dialect for the golden cases, with topics that push to an endpoint before it answers.

Topics and rules are made by requests, where the dialect serves topics and knows the events; in the storj
dialect they are put into the metabase.
"""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bucketwire.event.change import ObjectChange, decode_change, encode_change
from bucketwire.event.dialect import DIALECTS
from bucketwire.event.installation import Installation
from bucketwire.event.message import Message
from bucketwire.event.rule import Rule
from bucketwire.event.topic import Topic
from bucketwire.metabase.values import Offset
from bucketwire.metainfo.routing import Router
from factories import topic
from gateway.golden_acts import Place
from gateway.running import ROOT, RunningGateway, run_gateway
from golden.cases import CHANGES, FORMS, SYSTEM_UUID, asks_before_image
from golden.expected import EVENTS, RULE_ID, SYSTEM_NAMES, attributes
from services.http_endpoint import HttpEndpoint, Received

KEPT = Rule("kept", "arn:aws:sns:us-east-1:000000000000:kept", EVENTS)
"""Beside the rule of each bucket: what is only pushed is in no stream, and there its ids are looked for."""


@dataclass(frozen=True)
class Served:
    """A gateway of one dialect, with topics that push to the endpoint."""

    gateway: RunningGateway
    dialect: str
    s3: Any
    endpoint: HttpEndpoint
    topics: dict[tuple[str, bool], str]
    """Their ARNs, by form and by whether they ask for the state before a removal."""

    def new_place(self, case: str) -> Place:
        """A bucket of its own, with a rule for each form."""
        rules = [self.rule(case, form) for form in FORMS]
        bucket = f"golden-{uuid.uuid4().hex}"
        self.s3.create_bucket(Bucket=bucket)
        self._subscribe(bucket, rules)
        return Place(self.s3, self.gateway.url, self.gateway.metabase, bucket, CHANGES[case].key)

    def rule(self, case: str, form: str) -> Rule:
        """Names the topic of that form."""
        return Rule(RULE_ID, self.topics[form, asks_before_image(case)], EVENTS)

    def changes_since(self, start: Offset) -> list[ObjectChange]:
        """What was committed behind that offset."""
        stream = self.gateway.metabase.changes
        parts = stream.split(start, self.head(), 1)
        return [decode_change(each) for part in parts for each in stream.read(part)]

    def head(self) -> Offset:
        """Where the change stream ends."""
        stream = self.gateway.metabase.changes
        return stream.head(stream.start(), 1_000_000)

    def composed(self, change: ObjectChange) -> dict[str, Message]:
        """The messages of the change, as the gateway's parts make them, by the ARNs of their topics."""
        installation = Installation(DIALECTS[self.dialect], SYSTEM_UUID, SYSTEM_NAMES[self.dialect])
        router = Router(self.gateway.metabase, installation)
        routed = (*router.route_pushed(change), *router.route(encode_change(change)))
        return {message.topic_arn: message for _, message in routed}

    def pushed(self, case: str) -> dict[str, Received]:
        """The last that the endpoint has got from each topic of the case, by form."""
        last = {each.path: each for each in self.endpoint.events()}
        paths = {form: f"/hook/{topic_name(form, before_image=asks_before_image(case))}" for form in FORMS}
        return {form: last[path] for form, path in paths.items() if path in last}

    def _subscribe(self, bucket: str, rules: list[Rule]) -> None:
        """By a request, as far as the dialect knows rules: it may refuse more than one for an event."""
        first, *others = rules
        if DIALECTS[self.dialect].topics_served:
            told = {"Id": first.id, "TopicArn": first.topic_arn, "Events": list(first.events)}
            self.s3.put_bucket_notification_configuration(
                Bucket=bucket, NotificationConfiguration={"TopicConfigurations": [told]}
            )
        self.gateway.metabase.rules.edit(bucket, lambda there: [*(there or [first]), *others, KEPT])


@contextmanager
def serving(folder: Path, dialect: str) -> Iterator[Served]:
    """Run it in that folder until the end of the block."""
    names = {"system_uuid": SYSTEM_UUID, "system_name": SYSTEM_NAMES[dialect]}
    running = contextmanager(run_gateway)(folder, dialect, **names)
    with running as gateway, HttpEndpoint() as endpoint:
        s3 = gateway.client("s3")
        yield Served(gateway, dialect, s3, endpoint, make_topics(gateway, dialect, endpoint.url))
        s3.close()


def make_topics(gateway: RunningGateway, dialect: str, url: str) -> dict[tuple[str, bool], str]:
    """A topic for each form, with and without the state before a removal."""
    made = {}
    for form, before_image in [(form, asked) for form in FORMS for asked in (False, True)]:
        name = topic_name(form, before_image=before_image)
        asked = {
            "push-endpoint": f"{url}/{name}",
            "persistent": "false",
            **attributes(form, before_image=before_image),
        }
        made[form, before_image] = make_topic(gateway, dialect, name, asked)
    return made


def topic_name(form: str, *, before_image: bool) -> str:
    """Also the end of the URL that it pushes to."""
    return f"{form}-{before_image}"


def make_topic(gateway: RunningGateway, dialect: str, name: str, asked: dict[str, str]) -> str:
    """The ARN of a new topic."""
    if DIALECTS[dialect].topics_served:
        sns = gateway.client("sns")
        arn: str = sns.create_topic(Name=name, Attributes=asked)["TopicArn"]
        sns.close()
        return arn
    made = topic(name=name, **asked)
    gateway.metabase.topics.put(Topic(made.arn, name, ROOT.user_id, asked))
    return made.arn
