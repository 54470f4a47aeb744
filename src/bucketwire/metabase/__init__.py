"""The metabase: objects, rules, topics, changes and the queue, behind small contracts."""

from urllib.parse import urlsplit

from bucketwire.errors import ConfigError
from bucketwire.metabase.base import Metabase


def open_metabase(url: str) -> Metabase:
    """Open the metabase at `url`, bringing its schema up to date."""
    match urlsplit(url).scheme:
        case "sqlite":
            from bucketwire.metabase.sqlite import open_sqlite

            return open_sqlite(url)
        case scheme:
            raise ConfigError(f"no metabase for scheme {scheme!r}: use sqlite:///path/to/file")
