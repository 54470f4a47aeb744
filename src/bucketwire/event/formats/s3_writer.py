"""Writes the usual S3 message and CloudEvent straight: a new object, in plain text.

The pieces come from a sample that the structs have composed (`layout`), and so does the whole message about a
change of another kind. Both ways give the same bytes.
"""

import msgspec

from bucketwire.event.change import ObjectChange
from bucketwire.event.dialect import Dialect
from bucketwire.event.formats import layout
from bucketwire.event.formats.cloudevents import STRUCTURED_TYPE, TYPE_PREFIX
from bucketwire.event.formats.layout import CREATED, Rendering, Writer, marked_change
from bucketwire.event.formats.s3 import Pair, url_encoded
from bucketwire.event.formats.stamp import MICROSECONDS, THREE_DIGITS, latest, turned
from bucketwire.event.message import Message
from bucketwire.event.rule import METADATA_PREFIX

_METADATA = msgspec.json.encode(Pair(METADATA_PREFIX + layout.NAME, layout.VALUE))
_TAG = msgspec.json.encode(Pair(layout.TAG_NAME, layout.TAG_VALUE))
_ENVELOPE = (layout.EVENT_ID, layout.EVENT_NAME, layout.TIME, layout.KEY)
_RECORD = (
    *(layout.TIME, layout.EVENT_NAME, layout.PRINCIPAL, layout.ADDRESS, layout.REQUEST, layout.HOST),
    *(layout.KEY, layout.SIZE, layout.ETAG, layout.VERSION, layout.SEQUENCER),
)
_EXTENSION = (_METADATA.decode(), _TAG.decode(), layout.EVENT_ID)


def s3_writer(rendering: Rendering, dialect: Dialect) -> Writer:
    """For new objects in the bucket; the structs compose messages about others."""
    sample = rendering.sample(marked_change(rendering.bucket))
    topic_arn, content_type, beside = sample.topic_arn, sample.content_type, sample.cloudevent
    enveloped, extended = content_type == STRUCTURED_TYPE, dialect.extended_record
    pieces = _pieces(sample.body, enveloped=enveloped, extended=extended)
    if pieces is None:
        return rendering.compose
    to_id, to_type, to_its_time, to_subject, to_time, to_name, to_principal, to_address, to_request = pieces[
        :9
    ]
    to_host, to_key, to_size, to_etag, to_version, to_sequencer = pieces[9:15]
    to_metadata, to_tags, to_event_id, end = pieces[15:]
    bucket_id, compose, write_other = rendering.bucket.id, rendering.compose, rendering.write_other
    rule_half, ordered = rendering.rule_half, rendering.ordered
    version_of_spec, source = beside.get("specversion", ""), beside.get("source", "")
    is_event, url_keys = enveloped or bool(beside), dialect.url_encoded_key
    event_name, to_microseconds = CREATED.get, dialect.time_digits == MICROSECONDS
    with_metadata = layout.listing(_METADATA, to_metadata, "", without=to_metadata)
    with_tags = layout.listing(_TAG, to_tags, "", without=to_tags)

    def write(change: ObjectChange) -> Message:
        if change.bucket.id != bucket_id:
            return write_other(change)
        state, origin, key, at_ns = change.new, change.origin, change.key, change.committed_at_ns
        name = event_name(change.operation)
        if name is None or state is None or (is_event and not key.isprintable()):
            return compose(change)
        version, extension, envelope = state.version_id or "", "", ""
        start, length, second, _, _ = latest[0]
        rest = at_ns - start
        if not 0 <= rest < length:
            rest, second, _, _ = turned(at_ns)
        finer = THREE_DIGITS[rest // 1000 % 1000] if to_microseconds else ""
        time = f"{second}{THREE_DIGITS[rest // 1_000_000]}{finer}Z"
        moment = at_ns.to_bytes(8).hex()
        event_id = moment + rule_half
        if extended:
            extension = f"{with_metadata(state.metadata)}{with_tags(state.tags)}{to_event_id}{event_id}"
        if enveloped:
            envelope = f"{to_id}{event_id}{to_type}{name}{to_its_time}{time}{to_subject}{key}"
        shown_key = url_encoded(key) if url_keys else key
        body = (
            f"{envelope}{to_time}{time}{to_name}{name}{to_principal}{origin.principal_id}"
            f"{to_address}{origin.source_ip}{to_request}{origin.request_id}{to_host}{origin.host_id}"
            f"{to_key}{shown_key}{to_size}{state.size_bytes}{to_etag}{state.etag}"
            f"{version and to_version}{version}{to_sequencer}{moment.upper()}{extension}{end}"
        ).encode()
        attributes = beside and {
            "specversion": version_of_spec,
            "id": event_id,
            "source": source,
            "type": TYPE_PREFIX + name,
            "time": time,
            "subject": key,
        }
        place = key.encode() if ordered else None
        return Message(topic_arn, event_id, key, body, content_type, at_ns, place, attributes)

    return write


def _pieces(body: bytes, *, enveloped: bool, extended: bool) -> list[str] | None:
    """Of the envelope, the record and its extension; empty ones for what the message does not have."""
    marks = (*(_ENVELOPE if enveloped else ()), *_RECORD, *(_EXTENSION if extended else ()))
    pieces = layout.cut(body, marks)
    if pieces is None:
        return None
    before = [] if enveloped else [""] * len(_ENVELOPE)
    missing = [] if extended else [""] * len(_EXTENSION)
    return [*before, *pieces[:-1], *missing, pieces[-1]]
