"""The schedule of a run, from its seed: pure. The same arguments give the same schedule, on every machine.

Faults come about every five seconds. Those after which a process must start again are followed by a longer
pause, so that the time to recover can be seen; some come in pairs, so that one hits while another is at work.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from chaos.plan import (
    Action,
    Bucket,
    FaultStep,
    Kind,
    MoveStep,
    Rule,
    RulesStep,
    Schedule,
    Versioning,
    WriteStep,
)

LANES = 6
BUCKETS = 9
PLACES = 4
"""HTTP endpoints that topics can be at."""
WRITES_A_SECOND = 30.0
EDITS_A_SECOND = 0.25
MOVES = 0.2
"""The part of edits that gives a topic another endpoint."""
PAIRS = 0.1
"""The part of faults that come while the one before is at work."""
FIRST_FAULT_SECONDS = 25.0
"""Until then a pipeline that stands by, which starts when the rest is at work, has run itself warm."""
KEYS = 42
ODD_NAMES = (
    "white space",
    "plus+and%25percent",
    "quotes \"'`",
    "ümläut-日本-🪣",
    "amp&semi;colon=?#",
    "two//slashes",
    "x" * 200,
)
CREATED, REMOVED, TAGGED = "s3:ObjectCreated:*", "s3:ObjectRemoved:*", "s3:ObjectTagging:*"
ALL = (CREATED, REMOVED, TAGGED)

_ACTIONS = {
    Action.PUT: 46,
    Action.COPY: 10,
    Action.MULTIPART: 6,
    Action.POST: 6,
    Action.DELETE: 10,
    Action.DELETE_MANY: 5,
    Action.DELETE_VERSION: 5,
    Action.TAG: 8,
    Action.UNTAG: 4,
}
_SIZES = ((0, 0), (1, 2_000), (1, 2_000), (16_000, 17_000), (20_000, 200_000))
"""Empty; in the metabase; around the limit; in a blob."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How often a kind of fault comes, how long it lasts, and the pause after it."""

    weight: int
    seconds: tuple[float, float]
    pause: tuple[float, float] = (2.0, 4.5)


NEW_PROCESS = (12.0, 16.0)
"""The pause after which a new process, as of a broker, should be at work, on a slow day too."""
NEW_STANDBY = (30.0, 36.0)
"""The same for a new pipeline that stands by, as the one before has taken over."""
NEW_SYSTEM = (50.0, 58.0)
"""The same for the whole system, of which the standby starts when the rest is at work."""
SHAPES = {
    Kind.KILL_GATEWAY: Shape(3, (0.0, 0.0), (6.0, 9.0)),
    Kind.KILL_PIPELINE: Shape(2, (0.0, 0.0), NEW_STANDBY),
    Kind.KILL_JVM: Shape(2, (0.0, 0.0), NEW_STANDBY),
    Kind.KILL_SOURCE: Shape(2, (0.0, 0.0), (6.0, 9.0)),
    Kind.KILL_WORKER: Shape(6, (0.0, 0.0)),
    Kind.KILL_EVERYTHING: Shape(1, (0.2, 2.0), NEW_SYSTEM),
    Kind.STOP_GATEWAY: Shape(6, (0.5, 4.0)),
    Kind.STOP_PIPELINE: Shape(6, (0.5, 4.0)),
    Kind.STOP_WORKER: Shape(6, (0.5, 4.0)),
    Kind.ENDPOINT_HANGS: Shape(6, (0.5, 4.0)),
    Kind.ENDPOINT_REFUSES: Shape(6, (0.5, 4.0)),
    Kind.ENDPOINT_CLOSES: Shape(6, (0.5, 4.0)),
    Kind.ENDPOINT_SLOW: Shape(6, (0.5, 4.0)),
    Kind.ENDPOINT_DOWN: Shape(6, (0.5, 4.0)),
    Kind.WAY_CUT: Shape(6, (0.1, 0.5)),
    Kind.WAY_HANGS: Shape(5, (0.5, 4.0)),
    Kind.CLIENTS_CUT: Shape(8, (0.1, 0.5)),
    Kind.BROKER_AWAY: Shape(8, (0.5, 4.0)),
    Kind.BROKER_RESTART: Shape(1, (0.2, 2.0), NEW_PROCESS),
    Kind.DATABASE_RESTART: Shape(5, (0.0, 0.0), (3.0, 6.0)),
    Kind.SCRATCH_REMOVED: Shape(1, (0.0, 0.0), NEW_STANDBY),
}


def make_schedule(
    seed: int, seconds: float, topics: Sequence[str], kinds: Sequence[Kind] = tuple(Kind)
) -> Schedule:
    """The schedule. Each part has randomness of its own: a longer run begins as the shorter one does."""
    rules = Random(f"{seed} rules")
    buckets = tuple(
        Bucket(f"chaos-{number}", list(Versioning)[number % 3], _rules(rules, topics))
        for number in range(BUCKETS)
    )
    return Schedule(
        seconds,
        tuple(topics),
        buckets,
        tuple(tuple(_writes(Random(f"{seed} lane {lane}"), seconds, buckets)) for lane in range(LANES)),
        tuple(_edits(Random(f"{seed} edits"), seconds, buckets, topics)),
        tuple(_faults(Random(f"{seed} faults"), seconds, kinds)),
    )


def _writes(random: Random, seconds: float, buckets: Sequence[Bucket]) -> Iterator[WriteStep]:
    at = random.expovariate(WRITES_A_SECOND / LANES)
    while at < seconds:
        action = random.choices(list(_ACTIONS), list(_ACTIONS.values()))[0]
        others = {Action.COPY: 1, Action.DELETE_MANY: random.randint(1, 6)}.get(action, 0)
        keys = random.sample(range(KEYS), 1 + others)
        yield WriteStep(
            at,
            action,
            random.choice(buckets),
            _key(keys[0]),
            random.randint(*random.choice(_SIZES)),
            tuple(map(_key, keys[1:])),
        )
        at += random.expovariate(WRITES_A_SECOND / LANES)


def _key(number: int) -> str:
    """Keys have one of three beginnings and one of two ends; some are odd in between."""
    name = ODD_NAMES[number // 6 % len(ODD_NAMES)] if number % 4 == 0 else f"key-{number}"
    return f"{'abc'[number % 3]}/{name}{('.jpg', '.txt')[number // 3 % 2]}"


def _edits(
    random: Random, seconds: float, buckets: Sequence[Bucket], topics: Sequence[str]
) -> Iterator[RulesStep | MoveStep]:
    movable = [topic for topic in topics if topic.startswith("http")]
    at = random.expovariate(EDITS_A_SECOND)
    while at < seconds:
        if random.random() < MOVES:
            yield MoveStep(at, random.choice(movable), random.randrange(PLACES))
        else:
            yield RulesStep(at, random.choice(buckets).name, _rules(random, topics))
        at += random.expovariate(EDITS_A_SECOND)


def _rules(random: Random, topics: Sequence[str]) -> tuple[Rule, ...]:
    """Rules that do not overlap: one of five ways to share the events of a bucket among topics."""
    first, second, third = (random.choice(topics) for _ in range(3))
    ways: tuple[tuple[Rule, ...], ...] = (
        (Rule("all", first, ALL),),
        (Rule("made", first, (CREATED,)), Rule("gone", second, (REMOVED,)), Rule("tagged", third, (TAGGED,))),
        (Rule("a", first, ALL, prefix="a/"), Rule("b", second, ALL, prefix="b/")),
        (
            Rule("pictures", first, ALL, suffix=".jpg"),
            Rule("texts", second, (CREATED, REMOVED), suffix=".txt"),
        ),
        (Rule("put", first, ("s3:ObjectCreated:Put",)), Rule("copy", second, ("s3:ObjectCreated:Copy",))),
        (),
    )
    return random.choices(ways, (3, 3, 3, 3, 2, 1))[0]


def _faults(random: Random, seconds: float, kinds: Sequence[Kind]) -> Iterator[FaultStep]:
    """Shuffled rounds, in which each kind comes as often as its weight says, so that none is left out."""
    at = calm_at = FIRST_FAULT_SECONDS
    while kinds:
        turns = [kind for kind in kinds for _ in range(SHAPES[kind].weight)]
        random.shuffle(turns)
        for kind in turns:
            shape = SHAPES[kind]
            fault = FaultStep(at, kind, random.uniform(*shape.seconds), random.randrange(1 << 16))
            if fault.ends_at_seconds > seconds:
                return
            yield fault
            calm_at = max(calm_at, fault.ends_at_seconds + random.uniform(*shape.pause))
            at = at + random.uniform(0.0, 1.0) if random.random() < PAIRS else calm_at
