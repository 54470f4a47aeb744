"""`bucketwire notification`: the rules of a bucket, in the metabase of a server that may be running."""

from pathlib import Path

import click
import msgspec

from bucketwire.cli.options import data_option, json_option, metabase_option, opened_metabase, option
from bucketwire.errors import NotFound
from bucketwire.event.dialect import DIALECTS, Dialect, dialect_named
from bucketwire.event.rule import Part, Rule
from bucketwire.metainfo.filters import shown_name
from bucketwire.metainfo.notification import configuration_from_rules
from bucketwire.metainfo.rule_edits import without_rule

_bucket_option = click.option("--bucket", required=True, help="Name of the bucket.")
_dialect_option = option(
    "--dialect",
    "Dialect of the server: names of filters are shown as it shows them.",
    default="aws",
    type=click.Choice(list(DIALECTS)),
)


@click.group()
def notification() -> None:
    """List, show and remove the notification rules of a bucket.

    A removal holds for the next write, on every gateway.
    """


@notification.command("list")
@_bucket_option
@json_option
@_dialect_option
@data_option
@metabase_option
def list_rules(bucket: str, dialect: str, data: Path, metabase: str | None, *, as_json: bool) -> None:
    """List the rules; as JSON, the configuration as S3 would give it."""
    with opened_metabase(metabase, data) as opened:
        rules = opened.rules.current(bucket)
    if as_json:
        shown = {"TopicConfigurations": [], **configuration_from_rules(rules, dialect_named(dialect))}
        click.echo(msgspec.json.encode(shown))
        return
    for rule in rules:
        click.echo(f"{rule.id} -> {rule.topic_arn}  {_conditions(rule, dialect_named(dialect))}")


@notification.command()
@_bucket_option
@click.option("--id", "rule_id", required=True, help="Id of the rule.")
@json_option
@_dialect_option
@data_option
@metabase_option
def get(bucket: str, rule_id: str, dialect: str, data: Path, metabase: str | None, *, as_json: bool) -> None:
    """Show one rule."""
    with opened_metabase(metabase, data) as opened:
        rule = _found(opened.rules.current(bucket), rule_id, bucket)
    if as_json:
        shown = configuration_from_rules([rule], dialect_named(dialect))
        click.echo(msgspec.json.encode(shown["TopicConfigurations"][0]))
        return
    click.echo(f"id: {rule.id}\ntopic: {rule.topic_arn}\nevents: {', '.join(rule.events)}")
    for condition in rule.filters:
        name = shown_name(condition, dialect_named(dialect))
        click.echo(f"{condition.part} {name}: {condition.value}")


@notification.command("rm")
@_bucket_option
@click.option("--id", "rule_id", default=None, help="Id of the rule.  [default: all rules]")
@json_option
@data_option
@metabase_option
def remove(bucket: str, rule_id: str | None, data: Path, metabase: str | None, *, as_json: bool) -> None:
    """Remove one rule, or all rules of the bucket; as JSON, the Ids of those that were removed."""
    gone: list[str] = []

    def edit(current: list[Rule]) -> list[Rule]:
        if rule_id is not None:
            _found(current, rule_id, bucket)
        gone[:] = [rule.id for rule in current if rule_id in {None, rule.id}]
        return without_rule(current, rule_id)

    with opened_metabase(metabase, data) as opened:
        opened.rules.edit(bucket, edit)
    if as_json:
        click.echo(msgspec.json.encode({"bucket": bucket, "removed": gone}))
        return
    removed = "all rules" if rule_id is None else f"rule {rule_id}"
    click.echo(f"removed {removed} of bucket {bucket}")


def _found(rules: list[Rule], rule_id: str, bucket: str) -> Rule:
    for rule in rules:
        if rule.id == rule_id:
            return rule
    raise NotFound(f"there is no rule {rule_id} in bucket {bucket}")


def _conditions(rule: Rule, dialect: Dialect) -> str:
    parts = {Part.KEY: "", Part.METADATA: "metadata ", Part.TAGS: "tag "}
    filters = [f"{parts[each.part]}{shown_name(each, dialect)}={each.value}" for each in rule.filters]
    return " ".join([",".join(rule.events), *filters])
