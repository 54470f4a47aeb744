"""Where the pipeline is in the change stream, for whoever is not the pipeline itself."""

from bucketwire.config import CONSUMER
from bucketwire.errors import ChangesTrimmed
from bucketwire.metabase.base import Metabase
from bucketwire.metabase.values import Offset


def place(metabase: Metabase) -> tuple[Offset, bool]:
    """The pipeline's cursor, and whether changes behind it were trimmed before they were read.

    The pipeline trims what it has read, after it has saved its cursor. So when changes behind a cursor are
    gone, they are lost only if it is still the cursor; else the new one is looked at.
    """
    cursor = _cursor(metabase)
    while _is_trimmed(metabase, cursor):
        before, cursor = cursor, _cursor(metabase)
        if cursor == before:
            return cursor, True
    return cursor, False


def _cursor(metabase: Metabase) -> Offset:
    return metabase.cursors.load(CONSUMER) or metabase.changes.start()


def _is_trimmed(metabase: Metabase, cursor: Offset) -> bool:
    try:
        metabase.changes.head(cursor, 1)
    except ChangesTrimmed:
        return True
    return False
