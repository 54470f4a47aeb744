"""Every error that Bucketwire raises on purpose.

    BucketwireError
     +- ConfigError      the operator must change a setting; says which
     +- InvalidRequest   the caller must change the request; carries the S3 code and fields
     +- NotFound         the thing named does not exist
     +- Conflict         the thing named is in a state that forbids the call
     +- Denied           the caller may not do this
     +- Unavailable      try again later, after `retry_after_seconds` if it is given
     +- ChangesTrimmed   the change stream no longer holds what was asked for
     +- ServerReplaced   the change stream is not the one that the offset is of

Driver errors become one of these at the seam where the driver is used, once, with `raise ... from`.
`code` is the S3 error code, so that the gateway can answer without a table of its own.
"""

from collections.abc import Mapping


class BucketwireError(Exception):
    """The root. Catch it at the edges only."""


class ConfigError(BucketwireError):
    """A setting is missing or wrong. The message names it and says what to do."""


class CallError(BucketwireError):
    """A call that was understood and refused: `code` and `fields` become the S3 error document.

    `headers` go with it: what a client without the document, as behind HEAD, must know.
    """

    default_code = "InternalError"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        fields: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.fields = dict(fields or {})
        self.headers = dict(headers or {})


class InvalidRequest(CallError):
    """The request is wrong in itself; sending it again gives the same answer."""

    default_code = "InvalidRequest"


class NotFound(CallError):
    """The bucket, object or topic named does not exist."""

    default_code = "NoSuchKey"


class Conflict(CallError):
    """The state of the thing named forbids the call: a bucket that is not empty, a name taken."""

    default_code = "OperationAborted"


class Denied(CallError):
    """The caller is not who it says, or may not do this."""

    default_code = "AccessDenied"


class Unavailable(CallError):
    """The metabase, the disk or a broker is away for now."""

    default_code = "ServiceUnavailable"

    def __init__(
        self, message: str, *, code: str | None = None, retry_after_seconds: float | None = None
    ) -> None:
        super().__init__(message, code=code)
        self.retry_after_seconds = retry_after_seconds


class ChangesTrimmed(BucketwireError):
    """Changes before `offset` are gone: the reader fell behind the retention and must be told."""

    def __init__(self, offset: str) -> None:
        super().__init__(
            f"changes up to {offset} were trimmed before they were read: see `bucketwire cursor`"
        )
        self.offset = offset


class ServerReplaced(BucketwireError):
    """The database server is not the one that the reader's offset is of: what it says of changes is not true.

    The reader must begin anew at the cursor that this server has.
    """

    def __init__(self) -> None:
        super().__init__(
            "the database server is not the one that the offset is of, as after a failover, or a restored"
            " dump: see docs/metabase-postgresql.md"
        )
