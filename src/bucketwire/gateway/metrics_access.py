"""Who may see /-/metrics: programs on this machine, and whoever sends the token."""

from bucketwire.gateway.caller import same
from bucketwire.gateway.request import Request
from bucketwire.gateway.transport import came_from_here

METRICS_REFUSED = (
    b"metrics are shown on the gateway's own machine, or for `Authorization: Bearer TOKEN` with the TOKEN of"
    b" its option --metrics-token (BUCKETWIRE_METRICS_TOKEN)\n"
)


def may_see_metrics(request: Request, token: str) -> bool:
    """Whether the request comes from this machine, or has the token; an empty one is none."""
    scheme, _, sent = request.headers.get("authorization", "").partition(" ")
    return came_from_here(request) or (
        bool(token) and scheme.lower() == "bearer" and same(token, sent.strip())
    )
