"""The messages of one call to an AMQP publisher: which are on their way, and what became of the others.

Pure: the connection's thread tells it what the broker says, and asks it what to send next. Where order
matters, a message is sent when the one before it about the same key is answered, and not if that one failed.
"""

from collections import defaultdict, deque
from collections.abc import Sequence
from itertools import takewhile

from bucketwire.event.message import Message
from bucketwire.publish.base import Delivered, Outcome, Rejected, Retry

WINDOW_MESSAGES = 1000
WINDOW_BYTES = 8 * 1024 * 1024
"""At most so much is unanswered at a time; one message may be longer."""

_DELIVERED = Delivered()
_REFUSED = Retry("the broker did not accept the message")
_BEHIND = Retry("an earlier message about the same key was not taken")


class Batch:
    """Outcomes stand in the order of the messages; None where there is none yet."""

    def __init__(self, messages: Sequence[Message], routing_key: str, *, ordered: bool = False) -> None:
        self.messages = messages
        self.outcomes: list[Outcome | None] = [None] * len(messages)
        self._unroutable = Retry(f"no queue is bound for the routing key {routing_key}")
        self._unsent = deque(range(len(messages)))
        self._places: dict[int, int] = {}
        """By delivery tag, in the order of sending."""
        self._by_id: defaultdict[str, deque[int]] = defaultdict(deque)
        self._bytes = 0
        self._ordered = ordered
        self._keys: set[str] = set()
        """Of what is on its way, where order matters."""
        self._held_up: set[str] = set()
        """Keys of messages that are to be tried again."""

    @property
    def in_flight(self) -> bool:
        """Whether any message is unanswered."""
        return bool(self._places)

    @property
    def is_answered(self) -> bool:
        """Whether each message has its outcome."""
        return not self._unsent and not self._places

    def next_place(self) -> int | None:
        """The place of the next message to send, if there is one, and room for it, and it is its turn."""
        if self._ordered:
            self._pass_over_held_up()
        if not self._unsent or len(self._places) >= WINDOW_MESSAGES:
            return None
        message = self.messages[self._unsent[0]]
        if self._places and self._bytes + len(message.body) > WINDOW_BYTES:
            return None
        return None if message.key in self._keys else self._unsent.popleft()

    def sent(self, place: int, tag: int) -> None:
        """It is on its way."""
        self._places[tag] = place
        self._by_id[self.messages[place].event_id].append(place)
        self._bytes += len(self.messages[place].body)
        if self._ordered:
            self._keys.add(self.messages[place].key)

    def unfit(self, place: int) -> None:
        """It cannot be written down in AMQP, and was not sent."""
        self.outcomes[place] = Rejected("content type or event id is not fit for AMQP")

    def wants_more(self) -> bool:
        """Whether all is answered, or half of the window while more is to be sent."""
        if not self._unsent:
            return not self._places
        return len(self._places) <= WINDOW_MESSAGES // 2 and self._bytes <= WINDOW_BYTES // 2

    def all_read(self) -> None:
        """What is on its way has reached the broker."""
        if self._places:
            self.confirmed(next(reversed(self._places)), multiple=True, accepted=True)

    def confirmed(self, tag: int, *, multiple: bool, accepted: bool) -> bool:
        """The broker has answered for one message, or for all up to it; whether to send more."""
        tags = list(takewhile(lambda each: each <= tag, self._places)) if multiple else [tag]
        for place in [self._places.pop(each) for each in tags if each in self._places]:
            self._bytes -= len(self.messages[place].body)
            self._by_id[self.messages[place].event_id].remove(place)
            self._keys.discard(self.messages[place].key)
            if accepted:
                self.outcomes[place] = self.outcomes[place] or _DELIVERED
            else:
                self._fail(place, _REFUSED)
        return self.wants_more()

    def returned(self, message_id: str) -> None:
        """The broker found no queue for it; among equal ids, returns come in the order of sending."""
        place = next((place for place in self._by_id[message_id] if self.outcomes[place] is None), None)
        if place is not None:
            self._fail(place, self._unroutable)

    def reject_larger(self, limit_bytes: int) -> bool:
        """Reject what is too large, and make ready to send anew what has no answer; whether any was."""
        rejected = Rejected(f"larger than the {limit_bytes} bytes that the broker takes")
        waiting = [place for place, outcome in enumerate(self.outcomes) if outcome is None]
        large = {place for place in waiting if len(self.messages[place].body) > limit_bytes}
        for place in large:
            self.outcomes[place] = rejected
        self._places.clear()
        self._by_id.clear()
        self._keys.clear()
        self._bytes = 0
        self._unsent = deque(place for place in waiting if place not in large)
        return bool(large)

    def _fail(self, place: int, why: Retry) -> None:
        self.outcomes[place] = self.outcomes[place] or why
        self._held_up.add(self.messages[place].key)

    def _pass_over_held_up(self) -> None:
        """What stands next behind a message that is to be tried again is tried again after it."""
        while self._unsent and self.messages[self._unsent[0]].key in self._held_up:
            self.outcomes[self._unsent.popleft()] = _BEHIND
