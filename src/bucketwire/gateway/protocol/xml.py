"""XML that came over the wire, as a small tree. Documents that declare types or entities are refused.

They are UTF-8, and nothing else: expat would read UTF-16 too, half a pair of surrogates as another character.
"""

import codecs
from dataclasses import dataclass, field
from xml.parsers import expat

from bucketwire.errors import InvalidRequest

_MAX_DEPTH = 32
_ENCODINGS = frozenset({"utf-8", "ascii"})
"""What a document may declare, by any of their names, if it does: ASCII is UTF-8."""
_MAX_ELEMENTS = 100_000
"""Twice as many as 10,000 parts have, each with a checksum."""
_BEYOND_XML = [code for code in (*range(0x20), 0xFFFE, 0xFFFF) if chr(code) not in "\t\n\r"]
"""Characters that XML 1.0 has no way to write."""
_MARKUP = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\r": "&#xd;"}
_ESCAPES = str.maketrans({**{chr(code): f"&#x{code:x};" for code in _BEYOND_XML}, **_MARKUP})
_LEGIBLE_ESCAPES = str.maketrans({**{chr(code): "\ufffd" for code in _BEYOND_XML}, **_MARKUP})


@dataclass(slots=True)
class Element:
    """An element without its namespace: either it has children, or its text matters."""

    name: str
    text: str = ""
    children: list["Element"] = field(default_factory=list)
    attributes: dict[str, str] = field(default_factory=dict)
    """By name, likewise without a namespace."""


class _TreeBuilder:
    """Takes expat's events. The first element is the root."""

    def __init__(self) -> None:
        self._root = Element("")
        self._open = [self._root]
        self._texts: list[list[str]] = [[]]
        self._elements = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self._elements += 1
        if len(self._open) > _MAX_DEPTH or self._elements > _MAX_ELEMENTS:
            raise malformed_xml()
        element = Element(_local(name), attributes={_local(each): attributes[each] for each in attributes})
        self._open[-1].children.append(element)
        self._open.append(element)
        self._texts.append([])

    def end(self, _name: str) -> None:
        self._open.pop().text = "".join(self._texts.pop())

    def text(self, text: str) -> None:
        self._texts[-1].append(text)

    def declaration(self, _version: str, encoding: str | None, _standalone: int) -> None:
        if encoding is not None and codecs.lookup(encoding).name not in _ENCODINGS:
            raise malformed_xml()

    def refuse(self, *_declaration: object) -> None:
        raise malformed_xml()

    def root(self) -> Element:
        return self._root.children[0]


def parse_xml(body: bytes) -> Element:
    """The root of the document; `InvalidRequest` with MalformedXML when it is none."""
    builder = _TreeBuilder()
    parser = expat.ParserCreate("utf-8", namespace_separator=" ")
    parser.buffer_text = True
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.text
    parser.XmlDeclHandler = builder.declaration
    parser.StartDoctypeDeclHandler = builder.refuse
    parser.EntityDeclHandler = builder.refuse
    try:
        _check_utf8(body)
        parser.Parse(body, True)
    except (expat.ExpatError, ValueError, LookupError) as problem:
        raise malformed_xml() from problem
    return builder.root()


def _check_utf8(body: bytes) -> None:
    """Raises unless the bytes are UTF-8. UTF-16 without a mark may look like it, but for its zeros."""
    if "\0" in body.decode():
        raise malformed_xml()


def _local(name: str) -> str:
    return name.rpartition(" ")[2]


def malformed_xml() -> InvalidRequest:
    """S3's answer to a document that is no XML, or not the XML of the operation."""
    return InvalidRequest(
        "The XML you provided was not well-formed or did not validate against our published schema",
        code="MalformedXML",
    )


def escape_xml(text: str) -> str:
    """The text as XML content; characters that XML 1.0 does not know become references, as in S3."""
    return text.translate(_ESCAPES)


def escape_legibly(text: str) -> str:
    """The text as content of a document that any reader can read; what XML 1.0 does not know is lost."""
    return text.translate(_LEGIBLE_ESCAPES)
