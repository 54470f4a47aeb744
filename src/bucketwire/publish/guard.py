"""Which addresses publishers may not reach when private networks are forbidden. Pure.

A customer chooses a topic's endpoint, and the server that calls it may stand where the customer cannot reach:
beside a database, or a cloud's metadata service. So an operator can forbid private networks
(`Connections.private_allowed`). A name is no use for the decision, as it may resolve to something else the
next moment: a publisher asks about the very address that it is about to connect to.
"""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

PRIVATE_NETWORK = "the endpoint is in a private network"
"""The reason of the outcome. It is `Retry`: tomorrow the name may lead elsewhere."""

_NAT64 = IPv6Network("64:ff9b::/96")
"""Where a translator reaches the IPv4 address in the last 32 bits (RFC 6052)."""
_ALSO_SPECIAL = (
    IPv4Network("192.0.0.0/24"),  # RFC 6890; older Pythons know but a part of it
    IPv4Network("168.63.129.16/32"),  # looks public, and is the host of a virtual machine on Azure
)


def forbidden(address: str) -> bool:
    """Whether the address, which is no name, is outside the public internet, or no address at all."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return True
    if isinstance(parsed, IPv4Address):
        return _is_special(parsed)
    embedded = _embedded(parsed)
    return _is_special(parsed if embedded is None else embedded) or parsed.is_site_local


def _embedded(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that packets to this one are sent on to, if so."""
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour


def _is_special(address: IPv4Address | IPv6Address) -> bool:
    """Loopback, private, shared, link-local, multicast, unspecified and reserved."""
    if not address.is_global or address.is_multicast or address.is_reserved:
        return True
    return any(address in network for network in _ALSO_SPECIAL)
