"""A browser's form (multipart/form-data) as it streams in: small fields first, then the file.

Names of fields are in lower case; what comes behind the file is passed over.
"""

from collections.abc import AsyncIterator

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from bucketwire.errors import InvalidRequest
from bucketwire.gateway.body import arriving, soon
from bucketwire.gateway.request import Request

FILE = "file"
MAX_FIELDS_BYTES = 20 * 1024


class Form:
    """A form on its way in: `read_fields` first, then `pieces`."""

    def __init__(self, request: Request) -> None:
        self.fields: dict[str, str] = {}
        self.filename = ""
        self._arriving = arriving(request)
        self._events = _Events()
        self._parser = _parser(request, self._events)

    async def read_fields(self) -> None:
        """Receive the fields that stand before the file; raises when there is no file."""
        async with soon():
            while not self._events.in_file:
                await self._feed()
                if self._events.fields_bytes > MAX_FIELDS_BYTES:
                    raise InvalidRequest(
                        "Your POST request fields preceding the upload file were too large.",
                        code="MaxPostPreDataLengthExceededError",
                    )
        self.fields, self.filename = self._events.fields, self._events.filename

    async def pieces(self) -> AsyncIterator[bytes]:
        """The bytes of the file, as they arrive."""
        while True:
            if piece := self._events.take():
                yield piece
            if self._events.file_ended:
                break
            await self._feed()
        await self._pass_over_rest()

    async def _pass_over_rest(self) -> None:
        """Receive what comes behind the file, if it is little, so that the connection can be used again."""
        rest_bytes = 0
        async for piece in self._arriving:
            rest_bytes += len(piece)
            if rest_bytes > MAX_FIELDS_BYTES:
                return

    async def _feed(self) -> None:
        piece = await anext(self._arriving, None)
        if piece is None:
            raise malformed_form("The form ended before its file did.")
        try:
            self._parser.write(piece)
        except FormParserError as problem:
            raise malformed_form() from problem


class _Events:
    """Takes the parser's events."""

    def __init__(self) -> None:
        self.fields: dict[str, str] = {}
        self.fields_bytes = 0
        self.filename = ""
        self.in_file = False
        self.file_ended = False
        self._header_name = bytearray()
        self._header_value = bytearray()
        self._disposition = b""
        self._name = ""
        self._content = bytearray()

    def take(self) -> bytes:
        """The bytes of the file that have come since the last call."""
        taken = bytes(self._content)
        self._content.clear()
        return taken

    def on_part_begin(self) -> None:
        self._disposition = b""

    def on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._header_name += data[start:end]

    def on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._header_value += data[start:end]

    def on_header_end(self) -> None:
        if self._header_name.lower() == b"content-disposition":
            self._disposition = bytes(self._header_value)
        self._header_name.clear()
        self._header_value.clear()

    def on_headers_finished(self) -> None:
        _, options = parse_options_header(self._disposition)
        if self.in_file:
            return
        self._name = _text(options.get(b"name", b"")).lower()
        if self._name == FILE:
            self.in_file = True
            self.filename = _text(options.get(b"filename", b"")).replace("\\", "/").rpartition("/")[2]

    def on_part_data(self, data: bytes, start: int, end: int) -> None:
        if self.file_ended:
            return
        self._content += data[start:end]
        if not self.in_file:
            self.fields_bytes += end - start

    def on_part_end(self) -> None:
        if self.in_file:
            self.file_ended = True
        else:
            self.fields[self._name] = _text(bytes(self._content))
            self.fields_bytes += len(self._name)
            self._content.clear()


def malformed_form(message: str | None = None) -> InvalidRequest:
    """The body is no form."""
    return InvalidRequest(
        message or "The body of your POST request is not well-formed multipart/form-data.",
        code="MalformedPOSTRequest",
    )


def _parser(request: Request, events: _Events) -> MultipartParser:
    try:
        kind, options = parse_options_header(request.headers.get("content-type", ""))
    except UnicodeEncodeError as problem:
        raise malformed_form() from problem
    if kind != b"multipart/form-data":
        raise InvalidRequest(
            "Bucket POST must be of the enclosure-type multipart/form-data", code="PreconditionFailed"
        )
    if not options.get(b"boundary"):
        raise malformed_form()
    try:
        return MultipartParser(
            options[b"boundary"],
            {
                "on_part_begin": events.on_part_begin,
                "on_part_data": events.on_part_data,
                "on_part_end": events.on_part_end,
                "on_header_field": events.on_header_field,
                "on_header_value": events.on_header_value,
                "on_header_end": events.on_header_end,
                "on_headers_finished": events.on_headers_finished,
            },
        )
    except FormParserError as problem:
        raise malformed_form() from problem


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as problem:
        raise malformed_form() from problem
