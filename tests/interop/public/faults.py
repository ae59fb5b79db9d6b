"""What is known of cells that fail, and why implementations do not offer a case: for docs/interop.md.

A fault needs evidence: what was on the wire, and the rule that it breaks. `Nobody's` is a condition of the public runner that is no rule of the RFCs.
"""

import dataclasses


@dataclasses.dataclass
class Fault:
    """A finding about cells that fail: `server` and `client` are names, or * for any."""

    case: str
    server: str
    client: str
    whose: str
    evidence: str

    def concerns(self, case, server, client):
        return self.case == case and self.server in ("*", server) and self.client in ("*", client)


FAULTS = []

# (implementation, end or *, case): why.
NOT_OFFERED = [
    ("tercel", "*", "v2", "a server stays with the version of the first packet, a client offers that version alone"),
    ("quinn", "*", "v2", "quinn has no QUIC version 2"),
    ("quic-go", "client", "chacha20", "Go's TLS gives no choice among the suites of TLS 1.3"),
    ("quic-go", "*", "v2", "quic-go has version 2, but no compatible negotiation"),
    ("aioquic", "*", "ecn", "aioquic's sockets do not mark packets"),
    ("quiche", "client", "chacha20", "the crate has no choice of suites"),
    ("quiche", "*", "ecn", "the crate neither reads nor sets marks"),
    ("quiche", "client", "keyupdate", "the crate has no call for it"),
    ("quiche", "client", "http3", "the program in peers/ downloads without HTTP/3"),
    ("quiche", "*", "v2", "the crate has version 1 only"),
    ("kwik", "*", "http3", "HTTP/3 is another library"),
    ("kwik", "*", "ecn", "Java's sockets do not mark packets"),
    ("kwik", "client", "keyupdate", "the library has no call for it"),
    ("kwik", "client", "connectionmigration", "the library has no call for it"),
    ("picoquic", "*", "http3", "the package serves HTTP/3 for WebTransport only"),
    ("picoquic", "client", "connectionmigration", "the package has no call for it"),
    ("s2n-quic", "*", "resumption", "behind an unstable feature"),
    ("s2n-quic", "*", "zerortt", "not implemented"),
    ("s2n-quic", "client", "chacha20", "s2n-tls gives no choice of one suite by the stable interface"),
    ("s2n-quic", "client", "keyupdate", "the crate has no call for it"),
    ("s2n-quic", "client", "connectionmigration", "its client does not move"),
    ("s2n-quic", "client", "http3", "the program in peers/ downloads without HTTP/3"),
    ("s2n-quic", "*", "v2", "the crate has version 1 only"),
]


def fault_of(case, server, client):
    return next((fault for fault in FAULTS if fault.concerns(case, server, client)), None)


def lack_of(case, server, client, reason):
    """Why a cell is not offered, by the end that has said so."""
    name, end = (server, "server") if "server" in reason else (client, "client")
    for lacking, at, lacked, why in NOT_OFFERED:
        if lacking == name and at in ("*", end) and lacked == case:
            return name, end, why
    return name, end, "its program ends with 127"
