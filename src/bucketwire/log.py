"""Log lines: an event and its fields, on standard error.

No payloads and no secrets: whoever logs names the fields one by one.
"""

import sys
import traceback
from typing import Any

import msgspec
import structlog


def configure_logging(*, json: bool) -> None:
    """Write log lines as JSON, or as text for people. The last call counts."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *_rendering(json=json),
        ],
        wrapper_class=structlog.make_filtering_bound_logger("info"),
        logger_factory=_loggers(json=json),
        cache_logger_on_first_use=False,
    )


def logs_json() -> bool:
    """Whether `configure_logging` chose JSON: for handing the choice on to another process."""
    return isinstance(structlog.get_config()["processors"][-1], structlog.processors.JSONRenderer)


def get_logger(part: str) -> Any:
    """The logger of a part of the system, such as `pipeline`."""
    return structlog.get_logger(part=part)


def _loggers(*, json: bool) -> Any:
    if json:
        return structlog.BytesLoggerFactory(sys.stderr.buffer)
    return structlog.PrintLoggerFactory(sys.stderr)


def _rendering(*, json: bool) -> list[Any]:
    if json:
        tracebacks = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)  # secrets are in some
        return [
            structlog.processors.ExceptionRenderer(tracebacks),
            structlog.processors.JSONRenderer(_to_json),
        ]
    plain = structlog.dev.plain_traceback  # the default shows locals too
    return [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=plain)]


def _to_json(fields: dict[str, Any], **_: Any) -> bytes:
    return msgspec.json.encode(fields, enc_hook=repr)


def unforeseen(error: Exception) -> dict[str, str]:
    """The fields that tell of an error that nobody foresaw: its type, and where it was raised.

    Its text is shown nowhere: it may hold what a tenant wrote, secrets too.
    """
    where = "".join(traceback.format_tb(error.__traceback__))
    return {"reason": f"unexpected {type(error).__name__}", "traceback": where}
