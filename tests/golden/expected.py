"""Which lines of the golden files the destination of a topic must get, from a server of each dialect.

    s3            <case>.<dialect>.json       the body
    headers       both                        the attributes in binary mode, and the body of s3
    cos           <case>.cos.jsonl            the key, and the body of a system with a name or without
    cloudevents   <case>.cloudevents.jsonl    the body in this dialect
    binary        <case>.binary.jsonl         the attributes and the body in this dialect

The messages of the gateway and of Spark are both held against these. `EVERY` is what has to be compared, and
`compared() == written()` says that no line of any file is left out.
"""

from itertools import product

from bucketwire.event.dialect import DIALECTS
from golden.cases import CHANGES, FOLDER, SYSTEM_NAME, path

FORMS: dict[str, dict[str, str]] = {
    "s3": {},
    "headers": {"cloudevents": "true"},
    "cos": {"format": "cos"},
    "cloudevents": {"format": "cloudevents"},
    "binary": {"format": "cloudevents", "cloudevents-mode": "binary"},
}
"""Attributes of topics, by what is told of them here."""
SYSTEM_NAMES = {"aws": "", "ceph": "", "storj": SYSTEM_NAME}
"""COS does not differ between dialects, but by whether the system has a name: so one of the servers has."""
RULE_ID = "ObjectEvents"
EVENTS = (
    "s3:ObjectCreated:*",
    "s3:ObjectRemoved:*",
    "s3:ObjectTagging:*",
    "s3:ObjectAcl:Put",
    "s3:LifecycleExpiration:*",
)
EVERY = list(product(CHANGES, FORMS, DIALECTS))


def attributes(form: str, *, before_image: bool) -> dict[str, str]:
    """The attributes of a topic whose messages are the golden ones."""
    return {"OpaqueData": "mine", "before-image": str(before_image).lower(), **FORMS[form]}


def asks_before_image(case: str) -> bool:
    """Whether the topics of this case ask for the state before a removal."""
    return case.endswith("-before-image")


def expected(case: str, form: str, dialect: str) -> list[bytes]:
    """What travels beside the body, if anything, and the body."""
    return [path(case, file).read_bytes().splitlines()[number] for file, number in _lines(form, dialect)]


def compared() -> set[tuple[str, int]]:
    """The lines that `expected` takes from the golden files, by file and number."""
    return {
        (path(case, file).name, number)
        for case, form, dialect in EVERY
        for file, number in _lines(form, dialect)
    }


def written() -> set[tuple[str, int]]:
    """The lines that the golden files have."""
    files = FOLDER.glob("*.json*")
    return {(file.name, number) for file in files for number in range(file.read_bytes().count(b"\n"))}


def _lines(form: str, dialect: str) -> list[tuple[str, int]]:
    """Files, by what they are of, and lines in them."""
    place = list(DIALECTS).index(dialect)
    match form:
        case "headers":
            return [("binary", 2 * place), (dialect, 0)]
        case "cos":
            return [("cos", 0), ("cos", 2 if SYSTEM_NAMES[dialect] else 1)]
        case "cloudevents":
            return [("cloudevents", place)]
        case "binary":
            return [("binary", 2 * place), ("binary", 2 * place + 1)]
        case _:
            return [(dialect, 0)]
