"""Which lines of the golden files the destination of a topic must get, from a server of each dialect.

    s3            the S3 message in this dialect
    headers       the attributes in binary mode, and the S3 message
    cos           the key, and the payload of a system with a name or without
    cloudevents   the event of structured mode in this dialect
    binary        the attributes and the body in this dialect

The messages of the gateway and of Spark are both held against these. `EVERY` is what has to be compared, and
`compared() == written()` says that no line of any file is left out.

No server of the storj dialect has topics with attributes, and so none sends more than its S3 messages without
a before-image; the other lines hold that the dialect changes nothing in how a format is written.
"""

from itertools import product

from bucketwire.event.dialect import DIALECTS
from golden.cases import CHANGES, FOLDER, FORMS, SYSTEM_NAME, first_line, golden, path

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


def expected(case: str, form: str, dialect: str) -> list[bytes]:
    """What travels beside the body, if anything, and the body."""
    return [golden(case, part)[number] for part, number in _lines(form, dialect)]


def compared() -> set[tuple[str, int]]:
    """The lines that `expected` takes from the golden files, by file and number."""
    return {
        (path(case).name, first_line(part) + number)
        for case, form, dialect in EVERY
        for part, number in _lines(form, dialect)
    }


def written() -> set[tuple[str, int]]:
    """The lines that the golden files have."""
    files = FOLDER.glob("*.jsonl")
    return {(file.name, number) for file in files for number in range(file.read_bytes().count(b"\n"))}


def _lines(form: str, dialect: str) -> list[tuple[str, int]]:
    """Parts of a golden file, and lines in them."""
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
