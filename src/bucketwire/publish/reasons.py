"""Why there is no connection, in our words: those of the system and of libraries may show an address."""

import errno

CONNECTION = {
    errno.ECONNREFUSED: "connection refused",
    errno.EHOSTUNREACH: "no route to the host",
    errno.ENETUNREACH: "no route to the host",
    errno.ETIMEDOUT: "connection timed out",
}
"""By the system's error number."""
CERTIFICATE = {
    9: "the certificate is not valid yet",
    10: "the certificate has expired",
    18: "the certificate is self-signed",
    19: "the certificate is of an unknown authority",
    20: "the certificate is of an unknown authority",
    21: "the certificate is of an unknown authority",
    62: "the certificate is for another host name",
    64: "the certificate is for another host name",
}
"""By OpenSSL's X509_V_ERR code."""
