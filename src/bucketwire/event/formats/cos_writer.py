"""Writes the usual message in IBM's format straight: a new object, in plain text.

The pieces come from samples that the structs have composed (`layout`). The payload is so small that all else
counts: time and UUID are put together here, from the second that `stamp` keeps.
"""

import msgspec

from bucketwire.event.change import ObjectChange, Versioning
from bucketwire.event.formats import layout
from bucketwire.event.formats.cos import CosKey, Header, with_hyphens
from bucketwire.event.formats.layout import CREATED, Rendering, Writer, marked_change
from bucketwire.event.formats.stamp import THREE_DIGITS, latest, turned
from bucketwire.event.message import Message
from bucketwire.event.rule import METADATA_PREFIX

_CREATED = tuple(CREATED)
_HEADER = msgspec.json.encode(Header(METADATA_PREFIX + layout.NAME, layout.VALUE))
_MARKS = (
    *(layout.REQUEST, layout.TIME, layout.VERSION, layout.KEY, layout.SIZE, layout.ETAG),
    *(layout.CONTENT_TYPE, _HEADER.decode()),
)
_BARE_MARKS = (layout.REQUEST, layout.TIME, layout.KEY, layout.SIZE, layout.ETAG)
_KEY = msgspec.json.encode(CosKey("2.0", layout.REQUEST, layout.EVENT_ID)).decode()
_TO_REQUEST, _, _REST_OF_KEY = _KEY.partition(layout.REQUEST)
_TO_ID, _, _END_OF_KEY = _REST_OF_KEY.partition(layout.EVENT_ID)


def cos_writer(rendering: Rendering) -> Writer:
    """For new objects in the bucket; the structs compose messages about others."""
    bucket, compose, write_other = rendering.bucket, rendering.compose, rendering.write_other
    bucket_id, versioning = bucket.id, bucket.versioning
    sample = rendering.sample(marked_change(bucket))
    bare_sample = rendering.sample(marked_change(bucket, bare=True))
    pieces, bare = layout.cut(sample.body, _MARKS), layout.cut(bare_sample.body, _BARE_MARKS)
    if pieces is None or bare is None:
        return compose
    to_request, to_time, to_version, to_key, to_size, to_etag, to_type, to_headers, end = pieces
    null_version, unversioned = "null", versioning is Versioning.UNVERSIONED
    if unversioned:
        null_version, to_version, to_key = "", "", bare[2]
    to_version = f"Z{to_version}"  # the last letter of the time
    rule_half, ordered = rendering.rule_half, rendering.ordered
    end_of_key = with_hyphens(16 * "0" + rule_half)[18:] + _END_OF_KEY
    topic_arn, content_type, beside = sample.topic_arn, sample.content_type, sample.cloudevent
    left, to_value, right = layout.pieces_of(_HEADER)
    to_name, end_of_header, bare_end = to_headers + left, right + end, bare[-1]
    several_headers = layout.listing(_HEADER, to_headers, end, without=bare_end)

    def write(change: ObjectChange) -> Message:
        its = change.bucket
        if its.id != bucket_id or its.versioning is not versioning:
            return write_other(change)
        state, request, key, at_ns = change.new, change.origin.request_id, change.key, change.committed_at_ns
        if (
            state is None
            or change.operation not in _CREATED
            or (unversioned and state.version_id is not None)
        ):
            return compose(change)
        start, length, second, base, high = latest[0]
        rest = at_ns - start
        if not 0 <= rest < length:
            rest, second, base, high = turned(at_ns)
        version, object_type, metadata = state.version_id, state.content_type or "", state.metadata
        if len(metadata) == 1:  # a call would take 50 ns
            (name,) = metadata
            headers = f"{to_name}{name}{to_value}{metadata[name]}{end_of_header}"
        else:
            headers = several_headers(metadata) if metadata else bare_end
        body = (
            f"{to_request}{request}{to_time}{second}{THREE_DIGITS[rest // 1_000_000]}"
            f"{to_version}{null_version if version is None else version}{to_key}{key}"
            f"{to_size}{state.size_bytes}{to_etag}{state.etag}{object_type and to_type}{object_type}{headers}"
        )
        low = (at_ns - base).to_bytes(6).hex("-", 2)
        place = key if ordered else f"{_TO_REQUEST}{request}{_TO_ID}{high}{low}{end_of_key}"
        event_id = at_ns.to_bytes(8).hex() + rule_half
        return Message(topic_arn, event_id, key, body.encode(), content_type, at_ns, place.encode(), beside)

    return write
