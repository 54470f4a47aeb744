"""For all tests: how Hypothesis judges them, and the fixtures that more than one folder uses."""

from hypothesis import HealthCheck, settings

from services.postgres import postgres_server

__all__ = ["postgres_server"]

settings.register_profile(
    "bucketwire",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
"""A slow machine is no fault of the code, and servers are shared by examples on purpose."""
settings.load_profile("bucketwire")
