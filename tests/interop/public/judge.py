"""Whether a run passes, from its trace: the conditions of the public runner beside identical files.

Each condition is a function of a Trace that raises Failure. Another condition comes before all: that the trace could be read.
"""

from aioquic.buffer import Buffer
from trace import HANDSHAKE, INITIAL, NEGOTIATION, ONE_RTT, RETRY, V1, V2, ZERO_RTT

CHALLENGE, RESPONSE = 0x1A, 0x1B
ACK_ECN = 0x03
PATH_ACKS = (0x3E, 0x3F)
ZERO_RTT_LIMIT = 5_000
ENCRYPTED_EXTENSIONS = 8
# Certificate and CompressedCertificate (RFC 8879).
CERTIFICATES = (11, 25)


class Failure(Exception):
    """What was expected and what was on the wire."""


def expect(condition, text):
    if not condition:
        raise Failure(text)


def opened(trace):
    """A judgement on packets that could not be read would be worth nothing."""
    share = trace.opened_share()
    expect(share >= 0.95, f"the trace could not be read: of {len(trace.packets)} packets {share:.0%} of the bytes")


def handshakes(count):
    """As the public runner counts: connection IDs that servers chose, in Initial packets."""

    def check(trace):
        seen = {packet.scid for packet in trace.of("server", INITIAL)}
        expect(len(seen) == count, f"{len(seen)} handshakes, not {count}")

    return check


def version_1(trace):
    versions = {packet.version for packet in trace.packets if packet.kind in (INITIAL, HANDSHAKE)}
    expect(versions == {V1}, f"versions {sorted(map(hex, versions))}, not 1 alone")
    expect(not trace.of("server", NEGOTIATION), "a Version Negotiation packet")


def no_retry(trace):
    expect(not trace.of("server", RETRY), "a Retry packet")


def two_hellos(trace):
    hellos = [
        packet for packet in trace.of("client", INITIAL)
        if any(frame.type == 0x06 and frame.offset == 0 for frame in packet.frames or ())
    ]
    expect(len(hellos) >= 2, f"{len(hellos)} ClientHello, not 2 or more")


def only_chacha20(trace):
    for connection in trace.connections:
        for kind, body in connection.messages("client", INITIAL):
            if kind == 1:
                at = 35 + body[34]
                length = int.from_bytes(body[at : at + 2], "big")
                suites = [body[n : n + 2] for n in range(at + 2, at + 2 + length, 2)]
                # 0x?a?a are there to be ignored (RFC 8701); 0x00ff is no suite (RFC 5746).
                suites = [suite for suite in suites if suite[0] & 15 != 10 and suite != b"\x00\xff"]
                expect(suites == [b"\x13\x03"], f"suites offered: {[suite.hex() for suite in suites]}")
                return
    raise Failure("no ClientHello could be read")


def extensions(block):
    at = 0
    while at + 4 <= len(block):
        kind, length = int.from_bytes(block[at : at + 2], "big"), int.from_bytes(block[at + 2 : at + 4], "big")
        yield kind, block[at + 4 : at + 4 + length]
        at += 4 + length


def few_streams(trace):
    """The server permits at most 1,000 streams at first."""
    for connection in trace.connections:
        for kind, body in connection.messages("server", HANDSHAKE):
            if kind != ENCRYPTED_EXTENSIONS:
                continue
            for extension, data in extensions(body[2:]):
                if extension == 0x39:
                    buffer = Buffer(data=data)
                    while not buffer.eof():
                        name, value = buffer.pull_uint_var(), buffer.pull_bytes(buffer.pull_uint_var())
                        if name == 0x08:
                            streams = Buffer(data=value).pull_uint_var()
                            expect(streams <= 1_000, f"the server permits {streams} streams at first")
                            return
    raise Failure("the server's initial_max_streams_bidi could not be read")


def retried(trace):
    """A Retry with a token, an Initial packet with that token, and packet numbers that go on."""
    tokens = [packet.token for packet in trace.of("server", RETRY) if packet.token]
    expect(tokens, "no Retry with a token")
    numbers = []
    for packet in trace.of("client", INITIAL):
        if packet.token in tokens:
            earlier = [number for token, number in numbers if token not in tokens and number is not None]
            expect(
                packet.number is None or not earlier or packet.number > max(earlier),
                f"packet number {packet.number} after Retry, {max(earlier, default=None)} before it",
            )
            return
        numbers.append((packet.token, packet.number))
    raise Failure("no Initial packet carries the token of a Retry")


def resumed(trace):
    expect(len(trace.connections) >= 2, f"{len(trace.connections)} connections, not 2")
    first, second = trace.connections[0], trace.connections[-1]
    has = lambda connection: any(kind in CERTIFICATES for kind, _ in connection.messages("server", HANDSHAKE))
    expect(has(first), "no Certificate in the first handshake")
    expect(second.messages("server", HANDSHAKE), "the second handshake could not be read")
    expect(not has(second), "a Certificate in the second handshake")


def early(trace):
    zero = sum(packet.payload_bytes or len(packet.datagram.payload) for packet in trace.of("client", ZERO_RTT))
    expect(zero > 0, "no 0-RTT packets")
    one = sum(packet.payload_bytes for packet in trace.of("client", ONE_RTT))
    expect(one <= ZERO_RTT_LIMIT, f"{one} bytes in the client's 1-RTT packets, beside {zero} in 0-RTT packets")


def key_updated(trace):
    for sender in ("client", "server"):
        phases = {packet.key_phase for packet in trace.of(sender, ONE_RTT) if packet.frames is not None}
        expect(1 in phases, f"the {sender} never sends with key phase 1")


def ecn_marked(trace):
    for sender, datagrams in (("client", trace.at_client), ("server", trace.at_server)):
        marks = [datagram.ecn for datagram in datagrams if datagram.sender == sender]
        wrong = sum(mark in (0, 3) for mark in marks)
        expect(any(mark in (1, 2) for mark in marks), f"the {sender} marks no packet ECT")
        expect(not wrong, f"{wrong} of {len(marks)} datagrams of the {sender} are not marked ECT")
        kinds = (INITIAL, HANDSHAKE, ONE_RTT)
        expect(any(packet.has(ACK_ECN) for packet in trace.of(sender, *kinds)), f"the {sender} sends no ACK with ECN counts")


def amplification(trace):
    """Of what comes to the server, at most three times as much goes back before the client's first Handshake packet."""
    offsets = [
        frame.offset + len(frame.data)
        for packet in trace.of("server", HANDSHAKE) for frame in packet.frames or () if frame.type == 0x06
    ]
    expect(max(offsets, default=0) >= 7_500, f"the server's flight has {max(offsets, default=0)} bytes: too few to test")
    arrived = sent = 0
    for datagram in trace.at_server:
        if datagram.sender == "client":
            if has_handshake(datagram.payload):
                return
            arrived += len(datagram.payload)
        else:
            sent += len(datagram.payload)
            expect(sent <= 3 * arrived, f"the server has sent {sent} bytes after {arrived} received")


def has_handshake(payload):
    """Whether a datagram has a Handshake packet: they may stand behind others."""
    while payload and payload[0] & 0x80 and len(payload) > 7:
        buffer = Buffer(data=payload)
        first, version = buffer.pull_uint8(), buffer.pull_uint32()
        buffer.pull_bytes(buffer.pull_uint8())
        buffer.pull_bytes(buffer.pull_uint8())
        kind = first >> 4 & 3
        if kind == (3 if version == V2 else 2):
            return True
        if kind == (1 if version == V2 else 0):
            buffer.pull_bytes(buffer.pull_uint_var())
        length = buffer.pull_uint_var()
        payload = payload[buffer.tell() + length :]
    return False


def ipv6_only(trace):
    datagrams = trace.at_client + trace.at_server
    expect(datagrams and all(len(datagram.source[0]) == 32 for datagram in datagrams), "packets over IPv4")


def version_2(trace):
    first = next(iter(trace.of("client", INITIAL)), None)
    expect(first and first.version == V1, "the client's first packet is not of version 1")
    for sender in ("client", "server"):
        versions = {packet.version for packet in trace.of(sender, HANDSHAKE)}
        expect(versions == {V2}, f"Handshake packets of the {sender}: versions {sorted(map(hex, versions))}, not 2 alone")


def server_paths(trace):
    """The addresses to which the server sends, in order, and its packets to each."""
    paths = {}
    for packet in trace.of("server", ONE_RTT, HANDSHAKE, INITIAL):
        paths.setdefault(packet.datagram.destination, []).append(packet)
    return paths


def paths_validated(trace):
    """The first packet of the server on each new path has a PATH_CHALLENGE; every one that reaches the client is answered."""
    paths = server_paths(trace)
    expect(len(paths) >= 2, "the client's address never changed")
    answers = {
        frame.data for packet in trace.of("client", ONE_RTT) for frame in packet.frames or () if frame.type == RESPONSE
    }
    received = {datagram.payload for datagram in trace.at_client if datagram.sender == "server"}
    for address, packets in list(paths.items())[1:]:
        expect(packets[0].has(CHALLENGE), f"the first packet to {address[0]}:{address[1]} has no PATH_CHALLENGE")
        arrived = [packet for packet in packets if packet.datagram.payload in received]
        challenges = {frame.data for packet in arrived for frame in packet.frames or () if frame.type == CHALLENGE}
        expect(challenges <= answers, f"{len(challenges - answers)} PATH_CHALLENGE to {address[0]}:{address[1]} not answered")


def addresses_changed(trace):
    addresses = {address for address, _ in server_paths(trace)}
    expect(len(addresses) > 1, "the client's IP address never changed")


def new_cid_on_new_path(trace):
    """A client that moves on purpose uses another connection ID there."""
    paths = {}
    for packet in trace.of("client", ONE_RTT):
        if packet.frames is not None:
            paths.setdefault(packet.datagram.source, set()).add(packet.dcid)
    expect(len(paths) >= 2, "the client did not move")
    sets = list(paths.values())
    for before, after in zip(sets, sets[1:]):
        expect(not after <= before, "the client uses no new connection ID on its new path")


def both_paths_used(trace):
    """The server sends at least a tenth of its bytes to each of the client's two addresses, and packets of both paths are acknowledged."""
    bytes_to = {}
    for packet in trace.of("server", ONE_RTT):
        address = packet.datagram.destination
        bytes_to[address] = bytes_to.get(address, 0) + len(packet.datagram.payload)
    expect(len(bytes_to) == 2, f"the server sends to {len(bytes_to)} addresses, not 2")
    total = sum(bytes_to.values())
    expect(min(bytes_to.values()) >= total / 10, f"of {total} bytes {min(bytes_to.values())} go to one of the two addresses")
    acknowledged = any(packet.has(*PATH_ACKS) for packet in trace.of("client", ONE_RTT))
    expect(acknowledged, "the client sends no PATH_ACK")
