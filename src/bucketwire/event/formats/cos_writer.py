"""Writes the usual message in IBM's format straight: a new object, in text that needs no escapes.

Like `s3_writer`: the pieces come from samples that the structs have rendered, and so do the other messages.
"""

import msgspec

from bucketwire.event.change import ObjectChange
from bucketwire.event.formats import layout
from bucketwire.event.formats.cos import Header, with_hyphens
from bucketwire.event.formats.layout import CREATED, Rendering, Writer, dumped, is_escaped, marked_change
from bucketwire.event.formats.stamp import time_in_milliseconds
from bucketwire.event.message import Message
from bucketwire.event.rule import METADATA_PREFIX

_HEADER = msgspec.json.encode(Header(METADATA_PREFIX + layout.NAME, layout.VALUE))
_FULL = (
    *(layout.REQUEST, layout.TIME, layout.VERSION, layout.KEY, layout.SIZE, layout.ETAG),
    *(layout.CONTENT_TYPE, _HEADER.decode()),
)
_BARE = (layout.REQUEST, layout.TIME, layout.KEY, layout.SIZE, layout.ETAG)
_PLACE = (layout.REQUEST, with_hyphens(layout.EVENT_ID))


def cos_writer(rendering: Rendering) -> Writer:
    """For new objects in the bucket; others are rendered."""
    marked = marked_change(rendering.bucket)
    sample, bare = rendering.sample(marked), rendering.sample(_without_options(marked))
    pieces, bare_pieces = layout.cut(sample.body, _FULL), layout.cut(bare.body, _BARE)
    place_pieces = ["", "", ""] if rendering.ordered else layout.cut(sample.partition_key or b"", _PLACE)
    if pieces is None or bare_pieces is None or place_pieces is None:
        return rendering.render
    to_request, to_time, to_version, to_key, to_size, to_etag, to_type, to_headers, end = pieces
    _, _, to_key_at_once, *_, bare_end = bare_pieces
    topic_arn, content_type = sample.topic_arn, sample.content_type
    bucket, render, compose_other = rendering.bucket, rendering.render, rendering.compose_other
    rule_half, ordered = rendering.rule_half, rendering.ordered
    place_start, place_to_id, place_end = place_pieces
    place_end = with_hyphens(16 * "0" + rule_half)[18:] + place_end
    headers_written = layout.listing(_HEADER)

    def write(change: ObjectChange) -> Message:
        if change.bucket != bucket:
            return compose_other(change)
        state, request, key, at_ns = change.new, change.origin.request_id, change.key, change.committed_at_ns
        if state is None or change.operation not in CREATED:
            return render(change)
        etag, version, kind = state.etag, state.version_id, state.content_type or ""
        versioned = to_key_at_once if version is None else f"{to_version}{version}{to_key}"
        names, ending = "", bare_end
        if state.metadata:
            headers, names = headers_written(state.metadata)
            ending = f"{to_headers}{headers}{end}"
        text = f"{request}{key}{etag}{version}{kind}{names}"
        if len(dumped(text)) != len(text) + 2 and is_escaped(text):
            return render(change)
        body = (
            f"{to_request}{request}{to_time}{time_in_milliseconds(at_ns)}{versioned}{key}"
            f"{to_size}{state.size_bytes}{to_etag}{etag}{kind and to_type}{kind}{ending}"
        )
        at = at_ns.to_bytes(8, "big").hex()
        place = key
        if not ordered:
            place = f"{place_start}{request}{place_to_id}{at[:8]}-{at[8:12]}-{at[12:]}{place_end}"
        return Message(topic_arn, at + rule_half, key, body.encode(), content_type, at_ns, place.encode())

    return write


def _without_options(marked: ObjectChange) -> ObjectChange:
    """The marked change, without all that not every message tells."""
    new = marked.new and msgspec.structs.replace(marked.new, version_id=None, content_type=None, metadata={})
    return msgspec.structs.replace(marked, new=new)
