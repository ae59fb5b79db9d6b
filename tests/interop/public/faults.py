"""What is known of cells that fail, and why implementations do not offer a case: for docs/interop.md.

A fault needs evidence: what was on the wire, and the rule that it breaks. `No rule broken`: the condition is the public runner's, and no rule of the RFCs.
"""

import dataclasses


@dataclasses.dataclass
class Fault:
    """A finding about cells that fail: `server` and `client` are names, or * for any; `said` is a part of what the judge said, for a cell that
    fails in more than one way."""

    case: str
    server: str
    client: str
    whose: str
    evidence: str
    said: str = ""

    def concerns(self, case, server, client, reason):
        return self.case == case and self.server in ("*", server) and self.client in ("*", client) and self.said in reason

    def is_a_peers(self):
        """Whether it names one failure by its words, and an implementation other than tercel has caused it."""
        return bool(self.said) and self.whose in {f"{name}'s" for name in (self.server, self.client) if name not in ("tercel", "*")}


FAULTS = [
    Fault(
        "amplificationlimit", "tquic", "tercel", "tquic's",
        "three times what it has received is 7,200 bytes (RFC 9000 §8.1). It sends 7,151 behind a datagram of 1,200 with an acknowledgement of 49, and has "
        "not counted the zeros behind that packet.",
        said="the server has sent 835",
    ),
    Fault(
        "amplificationlimit", "quiche", "tercel", "quiche's",
        "three times what it has received is 7,200 bytes (RFC 9000 §8.1). It sends 7,144 behind a datagram of 1,200 with an acknowledgement of 56, and has "
        "not counted the zeros behind that packet.",
        said="the server has sent 8344 bytes after 2400 received",
    ),
    Fault(
        "amplificationlimit", "quic-go", "tercel", "quic-go's",
        "three times what it has received is 7,200 bytes (RFC 9000 §8.1). It has sent 6,448 and sends another full datagram. The exception of §8.1 for "
        "connection IDs of 64 random bits does not hold for its own of 32.",
        said="the server has sent 7728 bytes after 2400 received",
    ),
    Fault(
        "amplificationlimit", "picoquic", "tercel", "No rule broken",
        "the client's second datagram that arrives goes to a connection ID of 64 bits that picoquic has chosen, which RFC 9000 §8.1 permits it to take for the "
        "proof of the address; the condition waits for a Handshake packet.",
        said="the server has sent 7553 bytes after 2400 received",
    ),
    Fault(
        "amplificationlimit", "quinn", "tercel", "quinn's",
        "three times what it has received is 7,200 bytes (RFC 9000 §8.1). It has sent an acknowledgement of 51 or 52, and sends a train of six full "
        "datagrams though fewer than 7,150 are left.",
        said="the server has sent 725",
    ),
    Fault(
        "handshakeloss", "tquic", "tercel", "tquic's",
        "the ServerHello went four times in a minute, and each was lost: each timeout of its server sends one packet of one space and doubles the wait, in turns "
        "with a Handshake packet that cannot be read before (RFC 9002 §6.2.4: packets of the other spaces should go along).",
        said="the handshake timed out",
    ),
    Fault(
        "handshakecorruption", "tquic", "tercel", "No rule broken",
        "the server's flight went at 0, 1, 3, 7 and 15 s, and was damaged each time; the client gives the handshake up after 30 s. Its first wait is a second, "
        "since the acknowledgement of its ServerHello was damaged too.",
        said="the handshake timed out",
    ),
    Fault(
        "handshakeloss", "tquic", "tercel", "tquic's",
        "the request came, its end (an empty STREAM frame with FIN) was lost, and the end came again with the request. tquic acknowledges that and drops it, "
        "because all bytes are known, and never answers: 250 s.",
        said="not done within 300 s",
    ),
    Fault(
        "handshakeloss", "picoquic", "tercel", "picoquic's",
        "its packets with HANDSHAKE_DONE and the content were lost, and it never sent either again in 249 s (RFC 9002 §6.2), in which it answered tercel's "
        "probes by 140 acknowledgements.",
        said="not done within 300 s",
    ),
    Fault(
        "zerortt", "tercel", "tercel", "The machine's",
        "ten runs at a time on two busy cores: the server's flight was 60 ms at the client's interface before the client ran, so nothing more went as 0-RTT. "
        "Runs are discarded for less now.",
        said="5913 bytes in the client's 1-RTT packets",
    ),
    Fault(
        "handshakeloss", "kwik", "tercel", "kwik's",
        "kwik acknowledges an Initial packet twelve to 28 seconds after it came (RFC 9000 §13.2.1: at once), which is tercel's first sample of the round trip. Its "
        "timeouts are as long from then on, up to 94 s.",
        said="not done within 300 s",
    ),
    Fault(
        "handshakecorruption", "kwik", "tercel", "kwik's",
        "the ServerHello went three times in 1.7 s, and each was damaged. It never went again in 110 s (RFC 9000 §13.3), in which kwik acknowledged tercel's "
        "Initial packets and sent 79 Handshake packets, which cannot be read before. In an earlier series kwik kept nothing of a ClientHello in two datagrams "
        "whose beginning was damaged at first.",
        said="timed out",
    ),
    Fault(
        "handshakecorruption", "kwik", "tercel", "kwik's",
        "the content, 1,024 bytes in one packet, was damaged. kwik sent 756 bytes of it again, which were acknowledged, and never the rest in 252 s (RFC 9000 "
        "§13.3), in which it acknowledged tercel's probes.",
        said="not done within 300 s",
    ),
    Fault(
        "transferloss", "kwik", "tercel", "kwik's",
        "kwik sent 2,441 of 2,097,152 bytes in two packets, both acknowledged, and nothing more of the stream in 58 s, in which it answered tercel's PINGs. "
        "tercel's windows were 1,048,576 bytes and more, and no byte of the stream was in flight.",
        said="not done within 60 s",
    ),
    *(
        Fault(
            case, "quinn", "tercel", "quinn's",
            "the ServerHello went three times, and none came whole. From then on quinn sent Handshake packets alone, which cannot be read before, and "
            "acknowledged none of the 8 to 17 Initial packets that came in a minute and more (RFC 9000 §13.2.1). By its code it passes a space over, ACK frames "
            "and all, whose data waits for the congestion window, and its probes are of the Handshake space alone: that its packets fill the window is "
            "inferred.",
            said="the handshake timed out",
        )
        for case in ("handshakeloss", "handshakecorruption")
    ),
    Fault(
        "handshakecorruption", "quiche", "tercel", "quiche's",
        "the request came, its end (an empty STREAM frame with FIN) was damaged, and the end came again with the request. quiche acknowledges that and drops it "
        "(RFC 9000 §19.8), because all bytes are known, and never answers: 294 s.",
        said="not done within 300 s",
    ),
    Fault(
        "handshakecorruption", "tercel", "kwik", "No rule broken",
        "the version in the client's first packet was damaged, so tercel offers others (RFC 9000 §6.1), and of the three versions in its Version Negotiation packet "
        "the one that kwik had chosen was damaged too. kwik gives up, as §6.2 demands.",
        said="ationFailure at tech.kwik",
    ),
    Fault(
        "handshakecorruption", "kwik", "tercel", "kwik's",
        "kwik closes with 0x7 where it cannot read the Length of a long header (LongHeaderPacket.parse), before it has opened the packet; RFC 9000 §12.2 has "
        "packets dropped that are not authentic. That a byte of the Length was damaged in this run is inferred from the code.",
        said="code 0x7, FRAME_ENCODING_ERROR",
    ),
    Fault(
        "handshakecorruption", "tercel", "kwik", "kwik's",
        "kwik gives the handshake up where it cannot read the Length of a long header (LongHeaderPacket.parse), before it has opened the packet; RFC 9000 "
        "§12.2 has packets dropped that are not authentic. One such packet, made by hand, ends its client with these words; that a byte of the Length was "
        "damaged in this run is inferred.",
        said="shake error: at tech.kwik",
    ),
    Fault(
        "handshakecorruption", "quinn", "tercel", "quinn's",
        "one byte of the client's datagram was damaged, the first one of its Handshake packet, which then has the type of a Retry. quinn's server closes with "
        "0x0a for a packet that nothing protects, where RFC 9000 §5.2 has those dropped that do not fit the state.",
        said="client sent Retry",
    ),
    Fault(
        "handshakecorruption", "s2n-quic", "tercel", "No rule broken",
        "the client's hello came whole after 15 s only. s2n-quic had given the handshake up after ten, silently, and begins another one with another connection ID; "
        "the client has never read the first. All 50 files came.",
        said="51 handshakes, not 50",
    ),
    Fault(
        "handshakecorruption", "picoquic", "tercel", "picoquic's",
        "its packets with HANDSHAKE_DONE and the content were damaged, and it never sent either again in 296 s (RFC 9002 §6.2), in which it answered tercel's "
        "probes by 6,600 acknowledgements.",
        said="not done within 300 s",
    ),
    Fault(
        "amplificationlimit", "quiche", "tercel", "quiche's",
        "three times what it has received would be 10,800 bytes (RFC 9000 §8.1). The public runner lets up to four times pass.",
        said="the server has sent 12000 bytes after 3600 received",
    ),
    Fault(
        "rebind-port", "quiche", "tercel", "quiche's",
        "it follows to the new port, but of what it sent to the old one last, 16 packets, a timeout sends the oldest two again and nothing sends the others "
        "(RFC 9000 §13.3): losses of a path are found by later packets on that path alone. With that hole the client's window does not move, and quiche "
        "sends DATA_BLOCKED for the rest. It follows to none of the later ports.",
        said="not done within 60 s",
    ),
    Fault("rebind-addr", "quiche", "tercel", "quiche's", "the same with a new address.", said="not done within 60 s"),
    Fault(
        "rebind-port", "tquic", "tercel", "tquic's",
        "it challenges the new port, again and again although each challenge is answered, and goes on sending to the old one (RFC 9000 §9.3). To the fourth port "
        "it sends nothing.",
        said="not done within 60 s",
    ),
    Fault("rebind-addr", "tquic", "tercel", "tquic's", "the same with a new address.", said="not done within 60 s"),
    Fault(
        "rebind-port", "kwik", "tercel", "kwik's",
        "tercel's packets come from the new port, but kwik's server goes on sending to the old one until the end and challenges none (RFC 9000 §9.3).",
        said="not done within 60 s",
    ),
    Fault(
        "rebind-addr", "kwik", "tercel", "kwik's",
        "the same with a new address.",
        said="not done within 60 s",
    ),
    Fault(
        "ipv6", "tercel", "kwik", "kwik's",
        "its ClientHello has the server name [fd00:0:0:0:0:0:0:1], and RFC 6066 §3 permits no literal addresses there; TLS refuses it "
        "(illegal_parameter). With an IPv4 address, rustls takes the name for none.",
        said="shake failed",
    ),
    Fault(
        "connectionmigration", "tercel", "quiche", "quiche's",
        "tercel retires the client's first connection ID once the client has moved (RFC 9000 §9.5). A packet that tercel had sent before, to that ID, is read "
        "after the RETIRE_CONNECTION_ID, and quiche closes with 0x0a where RFC 9000 §5.2 has such a packet dropped.",
        said="error_code: 10",
    ),
    Fault(
        "ecn", "quic-go", "tercel", "No rule broken",
        "a part of quic-go's packets is not marked, as RFC 9000 §13.4.2 and §A.4 permit while a path is tested; the condition "
        "wants every packet marked.",
        said="are not marked ECT",
    ),
    Fault(
        "ecn", "tercel", "quic-go", "No rule broken",
        "its first three or four datagrams, which carry the handshake, are not marked, as RFC 9000 §13.4.2 permits; the condition wants every packet marked.",
        said="are not marked ECT",
    ),
    Fault(
        "ecn", "tercel", "s2n-quic", "No rule broken",
        "s2n-quic marks its first packets and then waits for their counts before it marks more, which RFC 9000 §A.4 permits; the condition wants "
        "every packet marked.",
        said="are not marked ECT",
    ),
    Fault(
        "ecn", "s2n-quic", "tercel", "No rule broken",
        "two to four of its datagrams in between are not marked, while it waits for the counts of its first ones (RFC 9000 §A.4); the condition wants every "
        "packet marked.",
        said="are not marked ECT",
    ),
    Fault(
        "handshakecorruption", "tercel", "s2n-quic", "s2n-quic's",
        "its client's probes are PINGs. A request was damaged on the way, its STREAM frame never goes again while the server's ACKs are damaged too, "
        "and after seven probes the client's idle timer ends the connection.",
        said="idle timer expired by the local endpoint",
    ),
    Fault(
        "connectionmigration", "tercel", "quinn", "quinn's",
        "quinn moves to its new socket at once. tercel challenges the new address and, by RFC 9000 §9.3.3, the one before; quinn receives both and "
        "answers the latter only, so a PATH_CHALLENGE that its capture shows has no PATH_RESPONSE (RFC 9000 §8.2.2 demands one for each). "
        "The transfer goes on after the next challenge, a second later.",
        said="not answered",
    ),
    Fault(
        "connectionmigration", "tquic", "tercel", "tquic's",
        "its server answers tercel's probe of the new path and challenges it. When tercel's answer and its first packets come from there, one of them with the "
        "retirement of the connection ID used before (RFC 9000 §9.5), the server closes with INTERNAL_ERROR.",
        said="code 0x1;",
    ),
    Fault(
        "connectionmigration", "quinn", "tercel", "No rule broken",
        "tercel probes its new path before it moves (RFC 9000 §9.1). quinn answers by a PATH_RESPONSE alone and challenges when the first packet "
        "that is no probe has come (§9.3), which the RFC permits; the condition wants the challenge in the first packet.",
        said="has no PATH_CHALLENGE",
    ),
    Fault(
        "handshakeloss", "tercel", "s2n-quic", "s2n-quic's",
        "its client's probes are PINGs. A request was lost, its STREAM frame never goes again while the server's ACKs are lost too, and after seven probes the "
        "client's idle timer ends the connection.",
        said="idle timer expired by the local endpoint",
    ),
    Fault(
        "handshakeloss", "tercel", "quiche", "quiche's",
        "the content came, its end (an empty STREAM frame with FIN) was lost, and the end came again with the content. quiche acknowledges that and drops it, "
        "because all bytes are known, and its program is never told that the stream has ended.",
        said="closed: None None",
    ),
    Fault(
        "handshakecorruption", "tercel", "quiche", "quiche's",
        "the content came, its end (an empty STREAM frame with FIN) was damaged, and the end came again with the content. quiche acknowledges that and drops it.",
        said="closed: None None",
    ),
    Fault(
        "connectionmigration", "tercel", "quic-go", "quic-go's",
        "tercel's packet with a PATH_RESPONSE and a PATH_CHALLENGE comes to the new address and is acknowledged; the challenge is never "
        "answered, on either path (RFC 9000 §8.2.2). tercel challenges again a second later, which is answered.",
        said="not answered",
    ),
    Fault(
        "v2", "tercel", "picoquic", "picoquic's",
        "its client acknowledges the packet number 0 when the first packet of version 2 comes, and drops what is in it. tercel's first Initial packet has the "
        "number 0, so the ServerHello in it counts as received and never goes again. With picoquic's own server, whose numbers begin at 116,806, the "
        "client acknowledges 0 all the same (RFC 9000 §13.1).",
        said="not done within 60 s",
    ),
    Fault(
        "v2", "kwik", "tercel", "kwik's",
        "the file arrives in version 2. The server's first packet, an acknowledgement, says version 1 and is sealed with the keys of version 2 (it opens with them, "
        "and tercel drops it); RFC 9369 §3.3.1 has them for version 2 alone. So the trace cannot be read whole.",
        said="the trace could not be read",
    ),
    Fault(
        "v2", "tercel", "aioquic", "aioquic's",
        "The file arrives in version 2. But the client's Initial packet of version 2, an acknowledgement, is sealed with the keys of version 1 (it "
        "opens with them, and tercel drops it); RFC 9369 §3.3.1 has other keys. So the trace cannot be read whole.",
        said="the trace could not be read",
    ),
]

# (implementation, end or *, case): why.
NOT_OFFERED = [
    *((name, "*", "multipath", "the library has one path at a time") for name in ("quinn", "quic-go", "s2n-quic", "quiche", "aioquic", "kwik")),
    ("tquic", "*", "multipath", "it follows draft-ietf-quic-multipath-05, whose frames and transport parameter have other numbers and other forms"),
    ("picoquic", "client", "multipath", "the package has no call for it"),
    ("quinn", "*", "v2", "quinn has no QUIC version 2"),
    ("quic-go", "client", "chacha20", "Go's TLS gives no choice among the suites of TLS 1.3"),
    ("quic-go", "*", "v2", "quic-go has version 2, but no compatible negotiation"),
    ("aioquic", "*", "ecn", "aioquic's sockets do not mark packets"),
    ("quiche", "client", "chacha20", "the crate has no choice of suites"),
    ("quiche", "*", "ecn", "the crate neither reads nor sets marks"),
    ("quiche", "client", "keyupdate", "the crate has no call for it"),
    ("quiche", "client", "http3", "the program in peers/ downloads without HTTP/3"),
    ("quiche", "*", "v2", "the crate has version 1 only"),
    ("tquic", "client", "chacha20", "the crate has no choice of suites"),
    ("tquic", "*", "http3", "the program in peers/ speaks HTTP/0.9 only"),
    ("tquic", "*", "ecn", "the crate neither reads nor sets marks"),
    ("tquic", "client", "keyupdate", "the crate has no call for it"),
    ("tquic", "client", "connectionmigration", "the crate's client does not move"),
    ("tquic", "*", "v2", "the crate has version 1 only"),
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


def fault_of(case, server, client, reason):
    return next((fault for fault in FAULTS if fault.concerns(case, server, client, reason)), None)


def is_a_peers_fault(case, server, client, reason):
    fault = fault_of(case, server, client, reason)
    return fault is not None and fault.is_a_peers()


def lack_of(case, server, client, reason):
    """Why a cell is not offered, by the end that has said so."""
    if ": " in reason:
        words, why = reason.split(": ", 1)
        return words.split()[-1], words.split()[2], why
    name, end = (server, "server") if "server" in reason else (client, "client")
    for lacking, at, lacked, why in NOT_OFFERED:
        if lacking == name and at in ("*", end) and lacked == case:
            return name, end, why
    return name, end, "its program ends with 127"
