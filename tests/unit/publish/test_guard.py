"""Which addresses are outside the public internet."""

from ipaddress import IPv6Address

import pytest

from bucketwire.publish.guard import forbidden


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.8.9.10", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255",
        "192.168.1.1", "100.64.0.1", "100.127.255.254", "169.254.169.254", "169.254.0.1", "192.0.0.8",
        "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.1.2.3", "240.0.0.1",
        "255.255.255.255",
        "::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1",
        "2001:db8::1", "192.0.0.192", "168.63.129.16", "64:ff9b::a83f:8110",
        "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:168.63.129.16",
        "::127.0.0.1",
        "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "2002:7f00:1::1", "2002:a00:1::",
        "", "localhost", "127.1", "0x7f000001", "8.8.8.8:80",
    ],
)  # fmt: skip
def test_what_is_not_public_is_forbidden(address: str) -> None:
    assert forbidden(address)


@pytest.mark.parametrize(
    "address",
    ["8.8.8.8", "1.1.1.1", "100.63.255.255", "172.32.0.1", "2606:4700::1111", "2001:4860:4860::8888",
     "64:ff9b::808:808", "2002:808:808::1", "::ffff:8.8.8.8"],
)  # fmt: skip
def test_what_is_public_is_not(address: str) -> None:
    assert not forbidden(address)


@pytest.mark.parametrize(
    "address", ["::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:168.63.129.16"]
)
def test_a_mapped_address_is_looked_at_as_what_it_stands_for(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Newer Pythons say of a mapped address what holds for the other."""
    for name in ("is_global", "is_reserved", "is_multicast"):
        monkeypatch.setattr(IPv6Address, name, following(name))
    assert forbidden(address)


def following(name: str) -> property:
    known = getattr(IPv6Address, name)
    return property(
        lambda found: getattr(found.ipv4_mapped, name) if found.ipv4_mapped else known.fget(found)
    )
