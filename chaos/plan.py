"""What a run is made of: plain values, made by `schedule`, done by `writer`, `edits` and `faults`.

Times are seconds from the start of the run.
"""

from dataclasses import dataclass
from enum import StrEnum


class Versioning(StrEnum):
    """What a bucket does with former versions."""

    NONE = "unversioned"
    ENABLED = "versioned"
    SUSPENDED = "suspended"


class Action(StrEnum):
    """What a client asks for."""

    PUT = "put"
    COPY = "copy"
    MULTIPART = "multipart"
    POST = "form post"
    DELETE = "delete"
    DELETE_MANY = "multi-delete"
    DELETE_VERSION = "delete version"
    TAG = "tag"
    UNTAG = "untag"


class Kind(StrEnum):
    """What is broken on purpose."""

    KILL_GATEWAY = "kill gateway"
    KILL_PIPELINE = "kill pipeline"
    KILL_JVM = "kill JVM"
    KILL_SOURCE = "kill source"
    """A Python process that tells Spark what there is to read."""
    KILL_WORKER = "kill worker"
    """A Python process that reads or delivers, or the one that such are forked from."""
    KILL_EVERYTHING = "kill everything"
    STOP_GATEWAY = "stop gateway"
    STOP_PIPELINE = "stop pipeline"
    STOP_WORKER = "stop worker"
    ENDPOINT_HANGS = "endpoint hangs"
    ENDPOINT_REFUSES = "endpoint answers 500"
    ENDPOINT_CLOSES = "endpoint closes early"
    ENDPOINT_SLOW = "endpoint is slow"
    ENDPOINT_DOWN = "endpoint is down"
    WAY_CUT = "connections to a destination cut"
    WAY_HANGS = "way to a destination hangs"
    CLIENTS_CUT = "connections of clients cut"
    BROKER_AWAY = "broker away"
    BROKER_RESTART = "broker restart"
    DATABASE_RESTART = "database restart"
    SCRATCH_REMOVED = "scratch folder removed"


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of a bucket, as the checker understands it."""

    id: str
    topic: str
    events: tuple[str, ...]
    """Patterns: `s3:ObjectCreated:*`."""
    prefix: str = ""
    suffix: str = ""

    def accepts(self, event_name: str, key: str) -> bool:
        """Whether a write with that event name is an event of this rule."""
        return (
            key.startswith(self.prefix)
            and key.endswith(self.suffix)
            and any(_covers(pattern, f"s3:{event_name}") for pattern in self.events)
        )


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket and the rules it starts with."""

    name: str
    versioning: Versioning
    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class WriteStep:
    """One request of one client."""

    at_seconds: float
    action: Action
    bucket: Bucket
    key: str
    size_bytes: int = 0
    others: tuple[str, ...] = ()
    """More keys: of a multi-delete; or the one that a copy is made of."""


@dataclass(frozen=True, slots=True)
class RulesStep:
    """A new set of rules for a bucket, in the place of all it has."""

    at_seconds: float
    bucket: str
    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class MoveStep:
    """Another endpoint for an HTTP topic."""

    at_seconds: float
    topic: str
    place: int


@dataclass(frozen=True, slots=True)
class FaultStep:
    """A fault, from its begin to its end."""

    at_seconds: float
    kind: Kind
    duration_seconds: float
    target: int
    """Which of those that could be hit: taken modulo how many there are."""

    @property
    def ends_at_seconds(self) -> float:
        """When it is over."""
        return self.at_seconds + self.duration_seconds


@dataclass(frozen=True, slots=True)
class Schedule:
    """Everything that a run will do."""

    seconds: float
    topics: tuple[str, ...]
    buckets: tuple[Bucket, ...]
    lanes: tuple[tuple[WriteStep, ...], ...]
    """One for each client; the writes of a lane are done one after the other."""
    edits: tuple[RulesStep | MoveStep, ...]
    faults: tuple[FaultStep, ...]


def _covers(pattern: str, name: str) -> bool:
    return pattern == name or (pattern.endswith("*") and name.startswith(pattern[:-1]))
