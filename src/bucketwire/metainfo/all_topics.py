"""Every topic there is, of all owners, page by page."""

from collections.abc import Iterator

from bucketwire.event.topic import Topic
from bucketwire.metabase.base import Topics

_PAGE = 1_000


def all_topics(topics: Topics) -> Iterator[Topic]:
    """The topics that are not deleted, by ARN."""
    after = ""
    while page := topics.owned_by(None, after=after, limit=_PAGE):
        yield from page
        after = page[-1].arn
