"""Spark's Python daemon, with all that a worker needs imported before the first worker is forked.

A new worker is ready at once, shares the memory of the modules, and has little to look at when Spark collects
garbage after each task: what is frozen here is skipped. That collection was most of a worker's CPU.
"""

import gc
import os
from importlib import import_module
from importlib.util import find_spec

from pyspark.daemon import manager

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
    "bucketwire.publish.http",
)
_WANTED = {"pika": "bucketwire.publish.amqp", "confluent_kafka": "bucketwire.publish.kafka"}
"""Likewise, where their libraries are installed. Not Pub/Sub's: gRPC does not like to be forked."""

if __name__ == "__main__":
    for name in (*_NEEDED, *(ours for theirs, ours in _WANTED.items() if find_spec(theirs))):
        import_module(name)
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)  # a slice makes many objects and no cycles, and Spark collects after it
    manager()
