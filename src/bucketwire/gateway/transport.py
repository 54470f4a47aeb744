"""How a request came: whether over TLS, here or up to a proxy that is believed; from where; to which URL."""

from collections.abc import Container
from ipaddress import IPv4Address, IPv6Address, ip_address

from bucketwire.gateway.request import Request

_PROXY_MARKS = frozenset({"forwarded", "via", "x-real-ip"})
"""Headers that proxies add, beside X-Forwarded-*."""


def came_over_tls(request: Request, trusted_proxies: Container[str]) -> bool:
    """Whether nobody on the way could read it. Only proxies on this machine or named are believed."""
    if request.scheme == "https":
        return True
    told = {each.strip().lower() for each in request.headers.get("x-forwarded-proto", "").split(",")}
    return told == {"https"} and _is_believed(request.source_ip, trusted_proxies)


def url_of(request: Request, trusted_proxies: Container[str]) -> str:
    """Where the client sent it, without the query."""
    scheme = "https" if came_over_tls(request, trusted_proxies) else "http"
    return f"{scheme}://{request.headers.get('host', '')}{request.raw_path}"


def came_from_here(request: Request) -> bool:
    """Whether a program on this machine sent it, and not for somebody else: no proxy left its mark."""
    if any(name in _PROXY_MARKS or name.startswith("x-forwarded-") for name in request.headers):
        return False
    peer = _address(request.source_ip)
    return peer is not None and peer.is_loopback


def _is_believed(address: str, trusted_proxies: Container[str]) -> bool:
    peer = _address(address)
    return peer is not None and (peer.is_loopback or str(peer) in trusted_proxies)


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        parsed = ip_address(text)
    except ValueError:
        return None
    return getattr(parsed, "ipv4_mapped", None) or parsed
