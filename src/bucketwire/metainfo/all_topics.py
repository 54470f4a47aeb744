"""Every topic there is, of all owners: page by page, or only what has changed since the last look."""

from collections.abc import Callable, Iterator, Mapping

from bucketwire.event.topic import Topic, topic_named_by
from bucketwire.metabase.base import Topics

_PAGE = 1_000


def all_topics(topics: Topics) -> Iterator[Topic]:
    """The topics that are not deleted, by ARN."""
    after = ""
    while page := topics.owned_by(None, after=after, limit=_PAGE):
        yield from page
        after = page[-1].arn


def find_topic(topics: Topics, arn: str) -> Topic | None:
    """The topic, by the ARN alone or as it is stored; a deleted one too."""
    return topic_named_by(arn) or topics.get(arn)


class ChosenTopics:
    """The topics that a condition chooses, among the deleted ones too. For one thread at a time.

    Each look reads what has changed since the one before: a change of one topic costs the same however many
    there are.
    """

    def __init__(self, topics: Topics, condition: Callable[[Topic], bool]) -> None:
        self._topics = topics
        self._condition = condition
        self._version = 0
        self._chosen: dict[str, Topic] = {}

    def look(self) -> Mapping[str, Topic]:
        """As they are now, by ARN. Blocks."""
        while changed := self._topics.changed(after=self._version, limit=_PAGE):
            for _, topic in changed:
                self._chosen.pop(topic.arn, None)
                if self._condition(topic):
                    self._chosen[topic.arn] = topic
            self._version, _ = changed[-1]
        return self._chosen
