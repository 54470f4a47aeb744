"""Which process is which: the parts of the system, and those of the pipeline that is at work.

A pipeline that stands by is left alone: a fault that hits it is missed by nobody.
"""

from pathlib import Path

from bucketwire.config import CONSUMER
from bucketwire.errors import BucketwireError
from bucketwire.metabase import open_metabase
from chaos.world import World
from wire import children, command_line, descendants

JVM, SOURCE, WORKER = "PythonGatewayServer", "python_streaming_source_runner", "daemon pyspark"
"""How the commands of a pipeline's processes are told apart."""
_DELETED = " (deleted)"
"""What the system adds to the name of an open file that was removed."""


def gateway(world: World) -> list[int]:
    """The gateway's process, unless it is just being started."""
    return _parts(world, "bucketwire gateway ")


def pipeline(world: World) -> list[int]:
    """The main process of the pipeline that has the lease, if any has it and runs."""
    name = _holder(world)
    return _parts(world, f" --holder {name} ") if name else []


def whole_pipeline(world: World) -> list[int]:
    """The main process, and all below it."""
    mains = pipeline(world)
    return [*mains, *(pid for main in mains for pid in descendants(main))]


def pipeline_processes(world: World, *words: str) -> list[int]:
    """Of that pipeline, those with one of the words in their command."""
    below = [pid for main in pipeline(world) for pid in descendants(main)]
    return [pid for word in words for pid in below if word in command_line(pid)]


def scratch_folders(world: World) -> list[Path]:
    """The folder for Spark's files that the pipeline at work has: it holds a lock there."""
    return [folder for main in pipeline(world) for folder in _locked_folders(main, world.data / "spark")]


def _parts(world: World, words: str) -> list[int]:
    if not world.running:
        return []
    return [pid for pid in children(world.system.supervisor) if words in command_line(pid)]


def _holder(world: World) -> str | None:
    """Who has the lease; None also when the metabase is away."""
    try:
        metabase = open_metabase(world.metabase_url)
    except BucketwireError:
        return None
    try:
        return metabase.cursors.holder(CONSUMER)
    except BucketwireError:
        return None
    finally:
        metabase.close()


def _locked_folders(pid: int, base: Path) -> list[Path]:
    try:
        files = [
            Path(str(link.readlink()).removesuffix(_DELETED)) for link in Path(f"/proc/{pid}/fd").iterdir()
        ]
    except OSError:  # it has ended, or closes files
        return []
    return [file.parent for file in files if file.name == "lock" and file.parent.parent == base]
