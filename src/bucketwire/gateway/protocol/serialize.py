"""The output of an operation, onto the wire: plans for rest-xml and for the query protocol."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from bucketwire.gateway.protocol.model import OperationModel, Shape, attributes, element_name, location
from bucketwire.gateway.protocol.values import writer
from bucketwire.gateway.protocol.xml import escape_xml


@dataclass(frozen=True, slots=True)
class Members:
    """An output whose members have an order of their own: elements of two lists may take turns."""

    pairs: list[tuple[str, Any]]

    def items(self) -> list[tuple[str, Any]]:
        """The members with their values, as a dict would give them."""
        return self.pairs


Output = dict[str, Any] | Members
Write = Callable[[Any, list[str]], None]
"""Writes a value's content, without the element around it."""

DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'
S3_NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"
_ROOTS = {
    "CompleteMultipartUpload": "CompleteMultipartUploadResult",
    "CreateMultipartUpload": "InitiateMultipartUploadResult",
    "DeleteObjects": "DeleteResult",
    "GetBucketAccelerateConfiguration": "AccelerateConfiguration",
    "GetBucketAcl": "AccessControlPolicy",
    "GetBucketLifecycleConfiguration": "LifecycleConfiguration",
    "GetBucketLogging": "BucketLoggingStatus",
    "GetBucketRequestPayment": "RequestPaymentConfiguration",
    "GetBucketTagging": "Tagging",
    "GetBucketVersioning": "VersioningConfiguration",
    "GetObjectAcl": "AccessControlPolicy",
    "GetObjectAttributes": "GetObjectAttributesResponse",
    "GetObjectTagging": "Tagging",
    "ListBuckets": "ListAllMyBucketsResult",
    "ListMultipartUploads": "ListMultipartUploadsResult",
    "ListObjectVersions": "ListVersionsResult",
    "ListObjects": "ListBucketResult",
    "ListObjectsV2": "ListBucketResult",
    "ListParts": "ListPartsResult",
}
"""Documents whose name is not in the model, since no client looks at it."""


@dataclass(slots=True)
class OutputPlan:
    """How the members of the output become headers and a document."""

    status: int
    headers: dict[str, tuple[str, Callable[[Any], str]]] = field(default_factory=dict)
    prefixes: dict[str, str] = field(default_factory=dict)
    document: Write | None = None
    root: str = ""

    def header_list(self, output: Output) -> list[tuple[str, str]]:
        """The members that travel as headers."""
        headers: list[tuple[str, str]] = []
        for member, value in output.items():
            if (slot := self.headers.get(member)) is not None and value is not None:
                headers.append((slot[0], slot[1](value)))
            elif (prefix := self.prefixes.get(member)) is not None:
                headers.extend((prefix + name, text) for name, text in value.items())
        return headers

    def body(self, output: Output) -> bytes:
        """The document, if the operation has one."""
        if self.document is None:
            return b""
        parts = [DECLARATION, f'<{self.root} xmlns="{S3_NAMESPACE}">']
        self.document(output, parts)
        parts.append(f"</{self.root}>")
        return "".join(parts).encode()


def rest_output_plan(operation: OperationModel) -> OutputPlan:
    """The plan of a rest-xml operation."""
    plan = OutputPlan(status=operation.http.get("responseCode", 200))
    shape = operation.output_shape
    if shape is None:
        return plan
    in_body = {}
    for member, member_shape in shape.members.items():
        match location(member_shape):
            case "header":
                wire = member_shape.serialization.get("name", member).lower()
                plan.headers[member] = (wire, writer(member_shape, in_header=True))
            case "headers":
                plan.prefixes[member] = member_shape.serialization.get("name", member).lower()
            case None if member_shape.type_name != "blob":
                in_body[member] = member_shape
    payload = shape.serialization.get("payload")
    if payload in in_body:
        plan.root = element_name(payload, in_body[payload])
        plan.document = _payload_writer(payload, in_body[payload])
    elif in_body:
        plan.root = _ROOTS.get(operation.name, shape.name.removesuffix("Output"))
        plan.document = _members_writer(in_body)
    return plan


def query_document(operation: OperationModel, namespace: str, output: Output, request_id: str) -> bytes:
    """The answer of an operation of the query protocol."""
    parts = [DECLARATION, f'<{operation.name}Response xmlns="{namespace}">']
    if operation.output_shape is not None:
        result = operation.output_shape.serialization.get("resultWrapper", f"{operation.name}Result")
        parts.append(f"<{result}>")
        _members_writer(operation.output_shape.members)(output, parts)
        parts.append(f"</{result}>")
    parts.append(f"<ResponseMetadata><RequestId>{request_id}</RequestId></ResponseMetadata>")
    parts.append(f"</{operation.name}Response>")
    return "".join(parts).encode()


def location_document(region: str) -> bytes:
    """The answer of GetBucketLocation, whose only member is the document itself."""
    root = "LocationConstraint"
    return f'{DECLARATION}<{root} xmlns="{S3_NAMESPACE}">{escape_xml(region)}</{root}>'.encode()


def _payload_writer(payload: str, shape: Shape) -> Write:
    """Writes the one member that is the document itself."""
    content = _content_writer(shape)
    return lambda values, parts: content(values[payload], parts)


def _members_writer(members: dict[str, Shape]) -> Write:
    slots = {member: _member_writer(member, shape) for member, shape in members.items()}

    def write(values: Any, parts: list[str]) -> None:
        for member, value in values.items():
            if value is not None and member in slots:
                slots[member](value, parts)

    return write


def _member_writer(member: str, shape: Shape) -> Write:
    name = element_name(member, shape)
    if shape.type_name == "list" and shape.serialization.get("flattened"):
        return _each(_element_writer(name, shape.member))
    return _element_writer(name, shape)


def _element_writer(name: str, shape: Shape) -> Write:
    opening, closing, content = f"<{name}>", f"</{name}>", _content_writer(shape)
    in_tag = attributes(shape)

    def write(value: Any, parts: list[str]) -> None:
        parts.append(f"<{name}{_attribute_text(shape, in_tag, value)}>" if in_tag else opening)
        content(value, parts)
        parts.append(closing)

    return write


def _attribute_text(shape: Shape, names: dict[str, str], value: dict[str, str]) -> str:
    namespace = shape.serialization.get("xmlNamespace", {})
    declared = f' xmlns:{namespace["prefix"]}="{namespace["uri"]}"' if "prefix" in namespace else ""
    return declared + "".join(f' {names[member]}="{escape_xml(value[member])}"' for member in names)


def _content_writer(shape: Shape) -> Write:
    match shape.type_name:
        case "structure":
            in_tag = attributes(shape)
            return _members_writer({name: each for name, each in shape.members.items() if name not in in_tag})
        case "list":
            return _each(_element_writer(element_name("member", shape.member), shape.member))
        case "map":
            return _map_writer(shape)
        case _:
            text = writer(shape, in_header=False)
            return lambda value, parts: parts.append(escape_xml(text(value)))


def _each(write: Write) -> Write:
    def write_all(values: Any, parts: list[str]) -> None:
        for value in values:
            write(value, parts)

    return write_all


def _map_writer(shape: Shape) -> Write:
    key = _element_writer(element_name("key", shape.key), shape.key)
    value = _element_writer(element_name("value", shape.value), shape.value)

    def write(values: Any, parts: list[str]) -> None:
        for name, text in values.items():
            parts.append("<entry>")
            key(name, parts)
            value(text, parts)
            parts.append("</entry>")

    return write
