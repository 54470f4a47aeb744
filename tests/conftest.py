"""Fixtures of the services that more than one folder of tests uses."""

from services.postgres import postgres_server

__all__ = ["postgres_server"]
