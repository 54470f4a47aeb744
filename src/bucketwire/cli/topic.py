"""`bucketwire topic`: the topics of all users and their queues, beside a server that may be running."""

import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from bucketwire.cli.message_shown import described
from bucketwire.cli.options import data_option, json_option, metabase_option, opened_metabase
from bucketwire.cli.shown import printable, shown_age, shown_time
from bucketwire.errors import Conflict, InvalidRequest, NotFound
from bucketwire.event.arn import parse_topic_arn
from bucketwire.event.topic import Topic
from bucketwire.metabase.base import Metabase, Queue, Topics
from bucketwire.metabase.queued import breaker
from bucketwire.metabase.values import Parked, QueueStats
from bucketwire.metainfo.all_topics import all_topics
from bucketwire.metainfo.topic_view import shown_attributes

F = TypeVar("F", bound=Callable[..., Any])

_DUMP_PAGE = 200
tenant_option = click.option(
    "--tenant", default=None, help="Tenant, as in the ARNs of its topics.  [default: all]"
)


def _named_topic(command: F) -> F:
    """The topic, behind the command or as --topic."""
    with_option = click.option("--topic", "option", default=None, help="The same, as an option.")(command)
    return click.argument("topic", required=False, metavar="[NAME_OR_ARN]")(with_option)


@click.group()
def topic() -> None:
    """List, show and remove topics, and see what waits for them.

    A removal holds at once on a running server. Secrets are never shown.
    """


@topic.command("list")
@tenant_option
@json_option
@data_option
@metabase_option
def list_topics(tenant: str | None, data: Path, metabase: str | None, *, as_json: bool) -> None:
    """List the topics by ARN."""
    with opened_metabase(metabase, data) as opened:
        found = list(_topics(opened.topics, tenant))
    if as_json:
        click.echo(msgspec.json.encode([_shown(each) for each in found]))
        return
    for each in found:
        endpoint = shown_attributes(each).get("push-endpoint") or "no push-endpoint"
        click.echo(f"{each.arn}  {each.owner_id}  {endpoint}")


@topic.command()
@_named_topic
@tenant_option
@json_option
@data_option
@metabase_option
def get(
    topic: str | None,
    option: str | None,
    tenant: str | None,
    data: Path,
    metabase: str | None,
    *,
    as_json: bool,
) -> None:
    """Show a topic and its attributes."""
    with opened_metabase(metabase, data) as opened:
        found = _found(opened.topics, _one_of(topic, option), tenant)
    if as_json:
        click.echo(msgspec.json.encode(_shown(found)))
        return
    for name, value in shown_attributes(found).items():
        click.echo(f"{name}: {value}")


@topic.command("rm")
@_named_topic
@tenant_option
@json_option
@data_option
@metabase_option
def remove(
    topic: str | None,
    option: str | None,
    tenant: str | None,
    data: Path,
    metabase: str | None,
    *,
    as_json: bool,
) -> None:
    """Remove a topic. What was committed before still goes to it."""
    with opened_metabase(metabase, data) as opened:
        found = _found(opened.topics, _one_of(topic, option), tenant)
        opened.topics.delete(found.arn)
    click.echo(msgspec.json.encode({"removed": found.arn}) if as_json else f"removed topic {found.arn}")


@topic.command()
@_named_topic
@tenant_option
@json_option
@data_option
@metabase_option
def stats(
    topic: str | None,
    option: str | None,
    tenant: str | None,
    data: Path,
    metabase: str | None,
    *,
    as_json: bool,
) -> None:
    """Show what waits for a topic, or for all of them: entries, bytes, age, attempts, the last error.

    The breaker is closed (messages go out), open (the topic is left alone until the next attempt) or probing
    (one message goes out to see whether it works again).
    """
    with opened_metabase(metabase, data) as opened:
        named = topic if option is None else _one_of(topic, option)
        arns = _arns(opened, tenant) if named is None else [known_arn(opened, named, tenant)]
        found = list(_statistics(opened.queue, arns))
    if as_json:
        click.echo(msgspec.json.encode(found if named is None else found[0]))
        return
    for each in found:
        click.echo(_stats_row(each))


@topic.command()
@_named_topic
@tenant_option
@click.option(
    "--max-entries", type=click.IntRange(min=1), default=None, help="At most so many.  [default: all]"
)
@click.option("--json", is_flag=True, expose_value=False, help="The output is JSON with and without it.")
@data_option
@metabase_option
def dump(
    topic: str | None,
    option: str | None,
    tenant: str | None,
    max_entries: int | None,
    data: Path,
    metabase: str | None,
) -> None:
    """Print the messages that wait for a topic, due or not, as JSON lines. Takes nothing away."""
    with opened_metabase(metabase, data) as opened:
        arn = known_arn(opened, _one_of(topic, option), tenant)
        for parked in islice(_pending(opened.queue, arn), max_entries):
            click.echo(msgspec.json.encode(_entry(parked)))


def known_arn(opened: Metabase, wanted: str, tenant: str | None) -> str:
    """The ARN of a topic by name or ARN; by ARN also one that is deleted, or of which messages are left."""
    if wanted.startswith("arn:") and (tenant is None or tenant_of(wanted) == tenant):
        seen = {each.topic_arn for each in opened.queue.stats()} | {arn for _, arn in opened.queue.counts()}
        if wanted in seen or opened.topics.get(wanted) is not None:
            return wanted
    return _found(opened.topics, wanted, tenant).arn


def tenant_of(arn: str) -> str | None:
    """The tenant in the ARN of a topic; None in an ARN of another kind."""
    try:
        return parse_topic_arn(arn).tenant
    except InvalidRequest:
        return None


def _one_of(topic: str | None, option: str | None) -> str:
    if (topic is None) == (option is None):
        raise click.UsageError("Name one topic: NAME_OR_ARN or --topic.")
    return topic or option or ""


def _topics(topics: Topics, tenant: str | None) -> Iterator[Topic]:
    return (each for each in all_topics(topics) if tenant is None or tenant_of(each.arn) == tenant)


def _found(topics: Topics, wanted: str, tenant: str | None) -> Topic:
    """The topic of that ARN or name; `NotFound`, or `Conflict` when a name is that of several."""
    found = [each for each in _topics(topics, tenant) if wanted in {each.arn, each.name}]
    if not found:
        within = "" if tenant is None else f" in tenant {tenant!r}"
        raise NotFound(f"there is no topic {wanted}{within}", code="NotFound")
    if len(found) > 1:
        raise Conflict(f"{wanted} names several topics, use an ARN: {', '.join(each.arn for each in found)}")
    return found[0]


def _shown(found: Topic) -> dict[str, Any]:
    named = {"arn": found.arn, "name": found.name, "tenant": tenant_of(found.arn), "owner_id": found.owner_id}
    attributes = {name: text for name, text in shown_attributes(found).items() if name in found.attributes}
    return {**named, "attributes": attributes, "tags": found.tags}


def _arns(opened: Metabase, tenant: str | None) -> list[str]:
    """The topics that are, and those of which messages are left."""
    left = {line.topic_arn for line in opened.queue.stats()} | {arn for _, arn in opened.queue.counts()}
    arns = {each.arn for each in _topics(opened.topics, tenant)}
    return sorted(arns | {arn for arn in left if tenant is None or tenant_of(arn) == tenant})


def _statistics(queue: Queue, arns: list[str]) -> Iterator[dict[str, Any]]:
    now_ns, counts = time.time_ns(), queue.counts()
    lines = {line.topic_arn: line for line in queue.stats()}
    for arn in arns:
        line = lines.get(arn) or QueueStats(arn, 0, 0, 0, 0)
        gone = counts.get(("redriven", arn), 0) + counts.get(("purged", arn), 0)
        yield {**_queue_stats(line, now_ns), "dead_letters": counts.get(("buried", arn), 0) - gone}


def _queue_stats(line: QueueStats, now_ns: int) -> dict[str, Any]:
    return {
        "topic": line.topic_arn,
        "entries": line.entries,
        "bytes": line.size_bytes,
        "oldest_age_seconds": max(0.0, (now_ns - line.oldest_at_ns) / 1e9) if line.entries else None,
        "attempts": line.attempts,
        "failures": line.failures,
        "last_error": line.reason or None,
        "next_attempt_at": shown_time(line.retry_at_ns) if line.retry_at_ns > now_ns else None,
        "breaker": breaker(line, now_ns),
    }


def _stats_row(each: dict[str, Any]) -> str:
    oldest = each["oldest_age_seconds"]
    lines = [
        each["topic"],
        f"  waiting:      {each['entries']} messages, {each['bytes']} bytes"
        + ("" if oldest is None else f", the oldest for {shown_age(oldest)}"),
        f"  attempts:     {each['attempts']} at most, {each['failures']} failures in a row",
        f"  breaker:      {each['breaker']}"
        + (f", next attempt at {each['next_attempt_at']}" if each["next_attempt_at"] else ""),
        f"  last error:   {printable(each['last_error'] or 'none')}",
        f"  dead letters: {each['dead_letters']}",
    ]
    return "\n".join(lines)


def _pending(queue: Queue, arn: str) -> Iterator[Parked]:
    after = 0
    while page := queue.pending(arn, after=after, limit=_DUMP_PAGE):
        yield from page
        after = page[-1].id


def _entry(parked: Parked) -> dict[str, Any]:
    waits = {
        "attempts": parked.attempts,
        "parked_at": shown_time(parked.parked_at_ns),
        "due_at": shown_time(parked.due_at_ns),
        "reason": parked.reason,
    }
    return {"id": parked.id, **described(parked.message), **waits}
