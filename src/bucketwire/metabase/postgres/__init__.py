"""The metabase on PostgreSQL: several gateways on one database, on as many machines as need be.

Concurrent transactions share the server's flushes, so there is no writer of our own. What SQLite's one
writer gives for nothing is made of three things here:

    advisory locks     mutations of a key wait for each other; edits of a bucket wait for its writes
    stamp_ns()         one clock for all gateways, read together with the transaction's id
    the xid horizon    the stream is read only as far as no transaction is still under way
"""

from bucketwire.metabase.postgres.migrate import migrate
from bucketwire.metabase.postgres.open import PostgresMetabase, open_postgres

__all__ = ["PostgresMetabase", "migrate", "open_postgres"]
