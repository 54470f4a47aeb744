"""The settings of the system: frozen values, with units in their names. Only `cli` reads the environment."""

from dataclasses import dataclass
from pathlib import Path

CONSUMER = "pipeline"
"""The name under which the pipeline keeps its cursor."""


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """What the gateway needs to serve."""

    host: str
    port: int
    data: Path
    metabase: str
    dialect: str
    region: str
    inline_limit_bytes: int = 16 * 1024
    """Objects up to this size live in the metabase; larger ones are blobs."""
    domain: str | None = None
    """Buckets may be addressed as `<bucket>.<domain>`; below `localhost` they always may."""
    housekeeping_seconds: int = 3600
    """Time between two runs of the lifecycle and of the sweep."""
    test_events: bool | None = None
    """Whether a new destination must take s3:TestEvent before it is stored; None leaves it to the dialect."""
    secrets_in_cleartext: bool = False
    """Whether topics with passwords may be created over HTTP without TLS."""
    system_uuid: str = ""
    """Names this installation in messages of the COS format; empty takes the metabase's own."""
    system_name: str = ""
    """Likewise, for people; empty leaves it out."""


@dataclass(frozen=True, slots=True)
class PipelineSettings:
    """What the pipeline needs to run; it is pickled into Spark's workers."""

    metabase: str
    dialect: str
    scratch: Path
    """Spark's working files. Nothing in it matters after a stop: the cursor is in the metabase."""
    master: str = "local[4]"
    slice_rows: int = 2_000
    """Changes in one slice, about."""
    batch_rows: int = 20_000
    """Changes in one micro-batch, at most."""
    deadline_seconds: float = 0.25
    """How long a micro-batch waits for one topic before it parks what is unanswered."""
    retry_deadline_seconds: float = 5.0
    """How long a retry waits for an answer."""
    system_uuid: str = ""
    """Names this installation in messages of the COS format; empty takes the metabase's own."""
    system_name: str = ""
    """Likewise, for people; empty leaves it out."""
