"""The input of an operation, out of a request: plans for rest-xml and for the query protocol.

A value that does not read as its type is `InvalidArgument`; a document that is not the operation's is
`MalformedXML`. Whether a list that XML cannot show to be empty may be so is for the operation to say.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from bucketwire.errors import InvalidRequest
from bucketwire.gateway.protocol.model import OperationModel, Shape, attributes, element_name, location
from bucketwire.gateway.protocol.values import Convert, reader
from bucketwire.gateway.protocol.xml import Element, malformed_xml, parse_xml

Input = dict[str, Any]
ReadElement = Callable[[Element], Any]
_MAX_FIELDS = 2000
_SHOWN_CHARACTERS = 100
_ENTRY = re.compile(r"(\d{1,6})(?:\.(.+))?")


@dataclass(slots=True)
class RestPlan:
    """How the parts of an HTTP request become members of the input."""

    headers: dict[str, tuple[str, Convert]] = field(default_factory=dict)
    parameters: dict[str, tuple[str, Convert]] = field(default_factory=dict)
    prefixes: list[tuple[str, str]] = field(default_factory=list)
    """(header prefix, member): `x-amz-meta-` and the like."""
    document: tuple[str, str, ReadElement] | None = None
    """(member, element name, how to read it)."""
    document_required: bool = False
    streaming: bool = False
    """Whether the body is the object's bytes, for the operation itself to receive."""

    def parse(self, headers: Mapping[str, str], parameters: Mapping[str, str]) -> Input:
        """The members that travel in the head."""
        found: Input = {}
        for name, text in headers.items():
            if (slot := self.headers.get(name)) is not None:
                found[slot[0]] = _converted(slot[1], name, text)
        for name, text in parameters.items():
            if (slot := self.parameters.get(name)) is not None:
                found[slot[0]] = _converted(slot[1], name, text)
        for prefix, member in self.prefixes:
            found[member] = {
                name[len(prefix) :]: text for name, text in headers.items() if name.startswith(prefix)
            }
        return found

    def wire_name(self, member: str) -> str:
        """What the client calls a member of the head."""
        slots = {**self.headers, **self.parameters}
        return next((wire for wire, slot in slots.items() if slot[0] == member), member)

    def parse_document(self, body: bytes) -> Input:
        """The member that travels in the body."""
        if self.document is None:
            return {}
        if not body:
            if self.document_required:
                raise InvalidRequest("Request Body is empty", code="MissingRequestBodyError")
            return {}
        member, name, read = self.document
        root = parse_xml(body)
        if root.name != name:
            raise malformed_xml()
        return {member: read(root)}


def rest_plan(operation: OperationModel) -> RestPlan:
    """The plan of a rest-xml operation."""
    plan = RestPlan()
    shape = operation.input_shape
    if shape is None:
        return plan
    for member, member_shape in shape.members.items():
        wire = member_shape.serialization.get("name", member)
        match location(member_shape):
            case "header":
                plan.headers[wire.lower()] = (member, reader(member_shape))
            case "headers":
                plan.prefixes.append((wire.lower(), member))
            case "querystring":
                plan.parameters[wire] = (member, reader(member_shape))
    _plan_body(plan, shape)
    return plan


def _plan_body(plan: RestPlan, shape: Shape) -> None:
    payload = shape.serialization.get("payload")
    if payload is None:
        return
    body = shape.members[payload]
    if body.type_name == "blob":
        plan.streaming = True
        return
    if body.type_name == "structure":
        plan.document = (payload, element_name(payload, body), _read_element(body))
        plan.document_required = payload in shape.required_members


def _converted(convert: Convert, name: str, text: str) -> Any:
    try:
        return convert(text)
    except ValueError as problem:
        raise InvalidRequest(
            f"Provided {name} is not valid",
            code="InvalidArgument",
            fields={"ArgumentName": name, "ArgumentValue": text},
        ) from problem


def _read_element(shape: Shape) -> ReadElement:
    match shape.type_name:
        case "structure":
            return _read_structure(shape)
        case "list":
            read = _read_element(shape.member)
            name = element_name("member", shape.member)
            return lambda element: [read(_named(child, name)) for child in element.children]
        case _:
            return _read_scalar(reader(shape))


def _read_scalar(convert: Convert) -> ReadElement:
    def read(element: Element) -> Any:
        if element.children:
            raise malformed_xml()
        try:
            return convert(element.text)
        except ValueError as problem:
            raise malformed_xml() from problem

    return read


def _read_structure(shape: Shape) -> ReadElement:
    single: dict[str, tuple[str, ReadElement]] = {}
    repeated: dict[str, tuple[str, ReadElement]] = {}
    in_tag = {member: name.rpartition(":")[2] for member, name in attributes(shape).items()}
    for member in shape.members.keys() - in_tag.keys():
        member_shape = shape.members[member]
        name = element_name(member, member_shape)
        if member_shape.serialization.get("flattened"):
            repeated[name] = (member, _read_element(member_shape.member))
        else:
            single[name] = (member, _read_element(member_shape))
    required = set(shape.required_members) - {member for member, _ in repeated.values()}

    def read(element: Element) -> Input:
        found = _read_attributes(element, in_tag)
        for child in element.children:
            if child.name in repeated:
                member, read_child = repeated[child.name]
                found.setdefault(member, []).append(read_child(child))
            elif child.name in single and single[child.name][0] not in found:
                member, read_child = single[child.name]
                found[member] = read_child(child)
            else:
                raise malformed_xml()
        if not required <= found.keys() or (element.text.strip() and shape.members):
            raise malformed_xml()
        return found

    return read


def _read_attributes(element: Element, names: dict[str, str]) -> Input:
    return {member: element.attributes[name] for member, name in names.items() if name in element.attributes}


def _named(element: Element, name: str) -> Element:
    if element.name != name:
        raise malformed_xml()
    return element


def parse_form(body: str) -> dict[str, str]:
    """The fields of a form-encoded body; of a repeated one, the first."""
    try:
        pairs = parse_qsl(body, keep_blank_values=True, errors="strict", max_num_fields=_MAX_FIELDS)
    except ValueError as problem:
        raise InvalidRequest("The query string is not well-formed", code="MalformedQueryString") from problem
    return dict(reversed(pairs))


def parse_query_input(operation: OperationModel, form: Mapping[str, str]) -> Input:
    """The input of an operation of the query protocol.

    A field that has the name of a member and says nothing of it is an error: nothing is lost in silence.
    Other fields are none of the operation's business, those of the signature for one.
    """
    if operation.input_shape is None:
        return {}
    left = dict(form)
    found: Input = _query_structure(operation.input_shape, left, "")
    for name in sorted(left):
        if name.partition(".")[0] in operation.input_shape.members:
            raise _bad_field(name, "there is no such field")
    for member in operation.input_shape.required_members:
        if member not in found:
            raise InvalidRequest(f"Invalid parameter: {member} is missing", code="InvalidParameter")
    return found


def _query_value(shape: Shape, left: dict[str, str], path: str) -> Any:
    """The value whose fields start with `path`, which are taken; None when there is no such field."""
    match shape.type_name:
        case "structure":
            return _query_structure(shape, left, path + ".") or None
        case "list":
            _take_nothing(left, path)
            entries = _query_entries(left, f"{path}.member.")
            return [_query_value(shape.member, left, entry) for entry in entries] or None
        case "map":
            _take_nothing(left, path)
            return _query_map(left, f"{path}.entry.") or None
        case _:
            return None if path not in left else _converted(reader(shape), path, left.pop(path))


def _take_nothing(left: dict[str, str], path: str) -> None:
    """Takes the field with which clients say that a list or map is empty."""
    if left.get(path) == "":
        del left[path]


def _query_map(left: dict[str, str], prefix: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for entry in _query_entries(left, prefix):
        name, value = (left.pop(f"{entry}.{part}", None) for part in ("key", "value"))
        if name is None or value is None:
            raise _bad_field(entry, "an entry has a key and a value")
        if name in found:
            raise _bad_field(f"{entry}.key", "the key comes twice")
        found[name] = value
    return found


def _query_structure(shape: Shape, left: dict[str, str], prefix: str) -> Input:
    values = {
        member: _query_value(member_shape, left, prefix + element_name(member, member_shape))
        for member, member_shape in shape.members.items()
    }
    return {member: value for member, value in values.items() if value is not None}


def _query_entries(form: Mapping[str, str], prefix: str) -> list[str]:
    """The distinct numbered entries below a prefix, in the order of their numbers."""
    numbers = {
        match[1]
        for name in form
        if name.startswith(prefix) and (match := _ENTRY.fullmatch(name[len(prefix) :]))
    }
    return [prefix + number for number in sorted(numbers, key=int)]


def _bad_field(name: str, reason: str) -> InvalidRequest:
    shown = name[:_SHOWN_CHARACTERS]
    return InvalidRequest(f"Invalid parameter: {shown} Reason: {reason}", code="InvalidParameter")
