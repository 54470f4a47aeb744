"""Spark's Python daemon, with all that a worker needs imported before the first worker is forked.

A new worker is ready at once, shares the memory of the modules, and has little to look at when Spark collects
garbage after each task: what is frozen here is skipped. That collection was most of a worker's CPU.
"""

import gc
import os
from contextlib import suppress
from importlib import import_module

from pyspark.daemon import manager

from bucketwire.errors import ConfigError
from bucketwire.publish import SCHEMES, publisher_kind

# Arrow's allocator would run a thread of its own, and a process that forks must have none.
os.environ["JE_ARROW_MALLOC_CONF"] = "background_thread:false"

_NEEDED = (
    "pandas",
    "pyarrow.ipc",
    "pyspark.sql.pandas.serializers",
    "pyspark.sql.pandas.types",
    "pyspark.sql.streaming.datasource",
    "pyspark.worker",
    "bucketwire.metabase.sqlite",
    "bucketwire.pipeline.redeliver",
    "bucketwire.pipeline.source",
)


def prepare() -> None:
    """Import it all, once, and let it be."""
    for name in _NEEDED:
        import_module(name)
    for scheme in SCHEMES:
        with suppress(ConfigError):  # its library is not installed
            publisher_kind(scheme, name="")
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)  # a slice makes many objects and no cycles, and Spark collects after it


if __name__ == "__main__":
    prepare()
    manager()
