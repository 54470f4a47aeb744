"""The metabase: objects, rules, topics, changes and the queue, behind small contracts."""

from types import ModuleType
from urllib.parse import urlsplit

from bucketwire.errors import ConfigError
from bucketwire.metabase.base import Metabase


def open_metabase(url: str) -> Metabase:
    """Open the metabase at `url`, bringing its schema up to date."""
    match urlsplit(url).scheme:
        case "sqlite":
            from bucketwire.metabase.sqlite import open_sqlite

            return open_sqlite(url)
        case "postgresql" | "postgres":
            opened: Metabase = _postgres().open_postgres(url)
            return opened
        case scheme:
            raise _unknown(scheme)


def migrate_metabase(url: str) -> dict[str, tuple[int, int]]:
    """Bring the schema at `url` up to date: for each part of it, from which version to which."""
    match urlsplit(url).scheme:
        case "sqlite":
            from bucketwire.metabase.sqlite import migrate_sqlite

            return migrate_sqlite(url)
        case "postgresql" | "postgres":
            return {"metabase": _postgres().migrate(url)}
        case scheme:
            raise _unknown(scheme)


def _postgres() -> ModuleType:
    try:
        from bucketwire.metabase import postgres
    except ImportError as error:
        raise ConfigError(
            "a PostgreSQL metabase needs its driver: install Bucketwire with the extra postgres"
        ) from error
    return postgres


def _unknown(scheme: str) -> ConfigError:
    return ConfigError(
        f"no metabase for scheme {scheme!r}: use sqlite:///path/to/file or "
        "postgresql://user:password@host/database"
    )
