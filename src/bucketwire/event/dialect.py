"""A dialect: what differs between AWS, Ceph and Storj, as values.

The code asks a dialect for a value; it never asks which dialect it is.
"""

import dataclasses
from dataclasses import dataclass

from bucketwire.errors import ConfigError
from bucketwire.event.name import CEPH_EVENT_NAMES, EVENT_NAMES, STORJ_EVENT_NAMES


@dataclass(frozen=True, slots=True)
class Dialect:
    """One value for each difference."""

    name: str
    """What `--dialect` calls it."""
    event_version: str
    """`eventVersion` of a record."""
    event_source: str
    """`eventSource` of a record."""
    bucket_arn_prefix: str
    """What stands before the name in the ARN of a bucket."""
    time_digits: int
    """Digits behind the second in `eventTime`."""
    url_encoded_key: bool
    """Whether the record's key is URL-encoded, or stands as it is."""
    removed_carries_state: bool
    """Whether removals tell size and eTag of what was removed."""
    later_event_version: str
    """`eventVersion` of changes of tags and ACLs, and of the lifecycle."""
    tagging_tells_etag_alone: bool
    """Whether changes of tags and ACLs tell nothing but key and eTag."""
    expiry_named_by_kind: bool
    """Whether expiry is called `ObjectLifecycle:Expiration:Current`, or `LifecycleExpiration:Delete`."""
    extended_record: bool
    """Whether records have bucket.id, metadata, tags, eventId and opaqueData."""
    configuration_merges: bool
    """Whether PUT of a notification configuration adds to the rules by Id, or replaces them."""
    capitalized_filter_names: bool
    """Whether filter names come back as `Prefix` or as `prefix`."""
    no_events_means_all: bool
    """Whether a rule without events takes all creations and removals, or is refused."""
    creations_are_puts: bool
    """Whether form and multipart uploads, too, are called `ObjectCreated:Put`."""
    missing_delete_transmits: bool
    """Whether deleting a key that does not exist is an event."""
    rule_id_required: bool
    """Whether a rule without an Id is refused, or gets one."""
    overlaps_refused: bool
    """Whether two rules may not take the same event of the same key."""
    max_rules: int
    """Rules in one bucket's configuration, at most."""
    bad_filter_code: str
    """Error for a filter name that is unknown."""
    missing_topic_code: str
    """Error for a rule whose topic does not exist."""
    denied_topic_code: str
    """Error for a rule whose topic exists, and may not be published to."""
    topic_tenant: str
    """The account in the ARNs of topics whose owner has no tenant."""
    topics_as_in_ceph: bool
    """Whether topics are shown with User, Name and EndPoint, or with their attributes one by one."""
    unknown_topic_code: str
    """Error for a call that names a topic that does not exist."""
    topics_served: bool
    """Whether there are topics at all, or only destinations that rules name directly."""
    key_filters_only: bool
    """Whether rules filter by prefix and suffix alone, not by regex, metadata and tags."""
    test_event: bool
    """Whether a new destination must take s3:TestEvent before it is stored; a server setting may differ."""
    test_event_required: bool
    """Whether neither a header nor a setting can skip the test event."""
    test_event_service: str
    """`Service` in the test event."""
    test_event_tells_request: bool
    """Whether the test event has RequestId and HostId."""
    reason_in_message: bool
    """Whether the message of the error tells why a destination failed its test, or fields beside it do."""
    persistent_by_default: bool
    """Whether a topic that does not say so is persistent."""
    recreated_topic_updates: bool
    """Whether creating a topic anew sets its attributes, or is refused when they differ."""
    bad_topic_code: str
    """Error for a topic's name, ARN or attribute that is not valid."""
    full_queue_policy: str
    """What happens to writes for a topic whose queue is full; the topic or the server may say otherwise."""
    recreated_bucket_region: str
    """The region in which creating one's own bucket again succeeds."""
    event_names: frozenset[str]
    """The patterns that may be written in a rule."""


AWS = Dialect(
    name="aws",
    event_version="2.1",
    event_source="aws:s3",
    bucket_arn_prefix="arn:aws:s3:::",
    time_digits=3,
    url_encoded_key=True,
    removed_carries_state=False,
    later_event_version="2.3",
    tagging_tells_etag_alone=True,
    expiry_named_by_kind=False,
    extended_record=False,
    configuration_merges=False,
    capitalized_filter_names=True,
    no_events_means_all=False,
    creations_are_puts=False,
    missing_delete_transmits=True,
    rule_id_required=False,
    overlaps_refused=True,
    max_rules=100,
    bad_filter_code="InvalidArgument",
    missing_topic_code="InvalidArgument",
    denied_topic_code="InvalidArgument",
    topic_tenant="000000000000",
    recreated_topic_updates=False,
    bad_topic_code="InvalidParameter",
    recreated_bucket_region="us-east-1",
    event_names=EVENT_NAMES,
    topics_as_in_ceph=False,
    unknown_topic_code="NotFound",
    topics_served=True,
    key_filters_only=False,
    test_event=True,
    test_event_required=False,
    test_event_service="Amazon S3",
    test_event_tells_request=True,
    reason_in_message=False,
    persistent_by_default=True,
    full_queue_policy="dead-letter",
)
CEPH = dataclasses.replace(
    AWS,
    name="ceph",
    event_version="2.2",
    event_source="ceph:s3",
    time_digits=6,
    url_encoded_key=False,
    removed_carries_state=True,
    later_event_version="2.2",
    tagging_tells_etag_alone=False,
    expiry_named_by_kind=True,
    extended_record=True,
    configuration_merges=True,
    capitalized_filter_names=False,
    no_events_means_all=True,
    rule_id_required=True,
    overlaps_refused=False,
    bad_filter_code="MalformedXML",
    missing_topic_code="NoSuchKey",
    denied_topic_code="AccessDenied",
    topic_tenant="",
    recreated_topic_updates=True,
    bad_topic_code="InvalidInput",
    event_names=CEPH_EVENT_NAMES,
    topics_as_in_ceph=True,
    test_event=False,
    test_event_service="Ceph S3",
    reason_in_message=True,
    persistent_by_default=False,
    full_queue_policy="reject",
)
STORJ = dataclasses.replace(
    AWS,
    name="storj",
    event_source="storj:s3",
    bucket_arn_prefix="arn:storj:s3:::",
    url_encoded_key=False,
    later_event_version="2.1",
    creations_are_puts=True,
    missing_delete_transmits=False,
    max_rules=1,
    event_names=STORJ_EVENT_NAMES,
    topics_served=False,
    key_filters_only=True,
    test_event_required=True,
    test_event_service="Storj S3",
    test_event_tells_request=False,
    reason_in_message=True,
)

DIALECTS = {dialect.name: dialect for dialect in (AWS, CEPH, STORJ)}


def dialect_named(name: str) -> Dialect:
    """The dialect of that name, or `ConfigError` with the names there are."""
    try:
        return DIALECTS[name]
    except KeyError:
        raise ConfigError(f"unknown dialect {name!r}: use one of {', '.join(DIALECTS)}") from None
