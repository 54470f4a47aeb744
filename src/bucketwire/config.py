"""The settings of the system: frozen values, with units in their names. Only `cli` reads the environment."""

from dataclasses import dataclass, field
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
    queue_limit_bytes: int = 128 * 1024 * 1024
    """How many bytes may wait for one topic, for topics that do not say; 0 is no limit."""
    queue_policy: str = ""
    """What happens then: `reject` or `dead-letter`; empty leaves it to the dialect."""
    retention_hours: int = 168
    """How long changes are kept that the pipeline has not read."""
    push_deadline_seconds: float = 5.0
    """How long an operation waits for topics that are not persistent."""
    secrets_in_cleartext: bool = False
    """Whether topics with passwords may be created over HTTP without TLS."""
    tls_certificate: Path | None = None
    """The server's certificate, with those that vouch for it; None serves HTTP without TLS."""
    tls_key: Path | None = None
    """The key of the certificate."""
    trusted_proxies: frozenset[str] = frozenset()
    """Addresses, beside this machine's own, of proxies that may say that a request came over TLS."""
    forbid_private_endpoints: bool = False
    """Whether endpoints in private networks are refused: HTTP, AMQP, and the brokers of Kafka."""
    system_uuid: str = ""
    """Names this installation in messages of the COS format; empty takes the metabase's own."""
    system_name: str = ""
    """Likewise, for people; empty leaves it out."""
    metrics_token: str = field(default="", repr=False)
    """Opens /-/metrics to those who send it; empty leaves it to programs on this machine."""


@dataclass(frozen=True, slots=True)
class PipelineSettings:
    """What the pipeline needs to run; it is pickled into Spark's workers."""

    metabase: str
    dialect: str
    scratch: Path
    """Spark's files, and the receipts. May be removed while nothing runs; must be, before a restore."""
    receipts: str = ""
    """A folder for notes that make repetitions rare, shared by all pipelines of the machine. The pipeline
    sets it, beside its scratch folders."""
    master: str = "local[4,8]"
    """Four tasks at once, each tried eight times."""
    slice_rows: int = 4_000
    """Changes in one slice, about."""
    batch_rows: int = 40_000
    """Changes in one micro-batch, at most."""
    deadline_seconds: float = 0.25
    """How long a micro-batch waits for one topic before it parks what is unanswered."""
    retry_deadline_seconds: float = 5.0
    """How long a retry waits for an answer."""
    longest_deadline_seconds: float = 30.0
    """How long it waits for an HTTP endpoint, at the most, that did not answer three attempts in a row."""
    time_to_live_seconds: int = 0
    """How long a message is retried, for topics that do not say; 0 is for ever."""
    max_retries: int = 0
    """How often, likewise."""
    retry_sleep_seconds: float | None = None
    """From one retry to the next, likewise; None climbs the ladder 1, 2, 4, 8 s."""
    queue_limit_bytes: int = 128 * 1024 * 1024
    """How many bytes may wait for one topic, for topics that do not say; 0 is no limit."""
    queue_policy: str = ""
    """What happens then: `reject` or `dead-letter`; empty leaves it to the dialect."""
    alert_url: str = ""
    """Where to post when a topic has failed to the end of the ladder."""
    holder: str = ""
    """This pipeline's name on the lease; empty takes a new one."""
    forbid_private_endpoints: bool = False
    """Whether endpoints in private networks are refused: HTTP, AMQP, and the brokers of Kafka."""
    system_uuid: str = ""
    """Names this installation in messages of the COS format; empty takes the metabase's own."""
    system_name: str = ""
    """Likewise, for people; empty leaves it out."""
