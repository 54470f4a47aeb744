"""The cases behind the golden files: `make golden` writes them anew, a review reads the difference.

`put.aws.json` and `delete.aws.json` have the fields and the order of events captured from AWS
(spec, storj phase 1, appendix); `*.ceph.json` those recorded from radosgw.
"""

from pathlib import Path

from bucketwire.event.change import ObjectChange
from bucketwire.event.compose import compose
from bucketwire.event.dialect import DIALECTS
from bucketwire.event.name import Operation
from factories import change, rule, state, topic

FOLDER = Path(__file__).parent

CHANGES: dict[str, ObjectChange] = {
    "put": change("storj-logo-mark-color.jpg", size_bytes=64908),
    "put-empty": change("empty", size_bytes=0),
    "put-odd-key": change("folder name/ä+b@c%20.txt"),
    "delete": change("video.mp4", Operation.DELETE, old=state(7)),
    "delete-missing": change("nothing", Operation.DELETE),
}


def rendered(case: str, dialect: str) -> bytes:
    """The body of the case's message."""
    subscription = rule(id="ObjectEvents"), topic(OpaqueData="mine")
    (message,) = compose(CHANGES[case], [subscription], DIALECTS[dialect])
    return message.body


def path(case: str, dialect: str) -> Path:
    return FOLDER / f"{case}.{dialect}.json"


if __name__ == "__main__":
    for case in CHANGES:
        for dialect in DIALECTS:
            path(case, dialect).write_bytes(rendered(case, dialect) + b"\n")
