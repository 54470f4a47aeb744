"""Whether a request came over TLS: here, or up to a proxy that is believed."""

from collections.abc import Container
from ipaddress import ip_address

from bucketwire.gateway.request import Request


def came_over_tls(request: Request, trusted_proxies: Container[str]) -> bool:
    """Whether nobody on the way could read it. Only proxies on this machine or named are believed."""
    if request.scheme == "https":
        return True
    told = {each.strip().lower() for each in request.headers.get("x-forwarded-proto", "").split(",")}
    return told == {"https"} and _is_believed(request.source_ip, trusted_proxies)


def _is_believed(address: str, trusted_proxies: Container[str]) -> bool:
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    plain = getattr(parsed, "ipv4_mapped", None) or parsed
    return plain.is_loopback or str(plain) in trusted_proxies
