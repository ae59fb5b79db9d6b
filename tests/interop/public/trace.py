"""What was on the wire: a capture, decrypted by the key logs of both ends.

An independent reader: the packet protection is aioquic's and cryptography's, everything else is written here from RFC 9000, 9001 and 9369.
Of each direction the capture at the sender is read, so that neither loss nor corruption hides a packet. A packet that cannot be opened is
kept with `frames` None, and counted.
"""

import dataclasses
import struct

from aioquic._crypto import AEAD, CryptoError
from aioquic.buffer import Buffer
from aioquic.quic.crypto import (
    CIPHER_SUITES, CryptoContext, CryptoPair, apply_key_phase, derive_key_iv_hp, next_key_phase,
)
from aioquic.tls import CipherSuite

PORT = 4433
V1, V2 = 0x00000001, 0x6B3343CF
INITIAL, ZERO_RTT, HANDSHAKE, RETRY, ONE_RTT, NEGOTIATION = "initial", "0-rtt", "handshake", "retry", "1-rtt", "vn"
TYPES = {V1: (INITIAL, ZERO_RTT, HANDSHAKE, RETRY), V2: (RETRY, INITIAL, ZERO_RTT, HANDSHAKE)}
SECRETS = {
    ("client", ZERO_RTT): "CLIENT_EARLY_TRAFFIC_SECRET",
    ("client", HANDSHAKE): "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
    ("server", HANDSHAKE): "SERVER_HANDSHAKE_TRAFFIC_SECRET",
    ("client", ONE_RTT): "CLIENT_TRAFFIC_SECRET_0",
    ("server", ONE_RTT): "SERVER_TRAFFIC_SECRET_0",
}


@dataclasses.dataclass
class Datagram:
    """A UDP datagram as a capture has it."""

    time: float
    source: tuple
    destination: tuple
    ecn: int
    payload: bytes

    @property
    def sender(self):
        return "server" if self.source[1] == PORT else "client"


@dataclasses.dataclass
class Frame:
    """A frame; only what a judge asks about is kept of it."""

    type: int
    offset: int = 0
    length: int = 0
    data: bytes = b""


@dataclasses.dataclass
class Packet:
    """A QUIC packet, and its frames if it could be opened."""

    datagram: Datagram
    kind: str
    version: int | None
    dcid: bytes
    scid: bytes = b""
    token: bytes = b""
    number: int | None = None
    key_phase: int = 0
    frames: list | None = None
    payload_bytes: int = 0

    @property
    def sender(self):
        return self.datagram.sender

    def has(self, *types):
        return any(frame.type in types for frame in self.frames or ())


def read_capture(path):
    """The UDP datagrams to and from the server's port, in a capture of dumpcap -P."""
    content = open(path, "rb").read()
    scale = 1e-9 if content[:4] == b"\x4d\x3c\xb2\xa1" else 1e-6
    at = 24
    while at + 16 <= len(content):
        seconds, fraction, length, _ = struct.unpack_from("<IIII", content, at)
        frame = content[at + 16 : at + 16 + length]
        at += 16 + length
        datagram = udp(frame, seconds + fraction * scale)
        if datagram and PORT in (datagram.source[1], datagram.destination[1]):
            yield datagram


def udp(frame, time):
    """The datagram in an Ethernet frame, if there is one."""
    kind = frame[12:14]
    if kind == b"\x08\x00" and frame[23] == 17:
        transport, ecn = 14 + (frame[14] & 15) * 4, frame[15] & 3
        addresses = [".".join(map(str, frame[at : at + 4])) for at in (26, 30)]
    elif kind == b"\x86\xdd" and frame[20] == 17:
        transport, ecn = 54, frame[15] >> 4 & 3
        addresses = [frame[at : at + 16].hex() for at in (22, 38)]
    else:
        return None
    source, destination, length = struct.unpack_from(">HHH", frame, transport)
    payload = frame[transport + 8 : transport + length]
    return Datagram(time, (addresses[0], source), (addresses[1], destination), ecn, payload)


def read_keys(paths):
    """(label, client random) -> secret, of all key logs that exist."""
    secrets = {}
    for path in paths:
        if path.exists():
            for line in path.read_text(errors="replace").splitlines():
                parts = line.split()
                if len(parts) == 3 and not line.startswith("#"):
                    secrets[parts[0], bytes.fromhex(parts[1])] = bytes.fromhex(parts[2])
    return secrets


def read_frames(payload):
    """The frames of a packet; reading ends at a type that is not known."""
    buffer, frames = Buffer(data=payload), []
    pull = buffer.pull_uint_var
    while not buffer.eof():
        kind = pull()
        frame = Frame(kind)
        if kind == 0x00:
            # All padding is one frame: a byte each would be most of a judge's time.
            at = buffer.tell()
            rest = payload[at:]
            buffer.seek(at + len(rest) - len(rest.lstrip(b"\0")))
        elif kind in (0x01, 0x1E, 0x1F):
            pass
        elif kind in (0x02, 0x03):
            pull(), pull()
            ranges = pull()
            for _ in range(1 + 2 * ranges + (3 if kind == 0x03 else 0)):
                pull()
        elif kind in (0x04, 0x24):
            for _ in range(4 if kind == 0x24 else 3):
                pull()
        elif kind in (0x05, 0x11, 0x15):
            pull(), pull()
        elif kind == 0x06:
            frame.offset = pull()
            frame.data = buffer.pull_bytes(pull())
        elif kind == 0x07:
            frame.data = buffer.pull_bytes(pull())
        elif 0x08 <= kind <= 0x0F:
            frame.data = pull().to_bytes(8, "big")  # the stream
            frame.offset = pull() if kind & 4 else 0
            frame.length = pull() if kind & 2 else buffer.capacity - buffer.tell()
            buffer.pull_bytes(frame.length)
        elif kind in (0x10, 0x12, 0x13, 0x14, 0x16, 0x17, 0x19):
            pull()
        elif kind == 0x18:
            pull(), pull()
            frame.data = buffer.pull_bytes(buffer.pull_uint8())
            buffer.pull_bytes(16)
        elif kind in (0x1A, 0x1B):
            frame.data = buffer.pull_bytes(8)
        elif kind in (0x1C, 0x1D):
            frame.offset = pull()  # the error
            if kind == 0x1C:
                pull()
            frame.data = buffer.pull_bytes(pull())
        elif kind in (0x30, 0x31):
            buffer.pull_bytes(pull() if kind == 0x31 else buffer.capacity - buffer.tell())
        elif kind == 0xAF:
            for _ in range(4):
                pull()
        # draft-ietf-quic-multipath: PATH_ACK, PATH_NEW_CONNECTION_ID, and those with two numbers or one.
        elif kind in (0x3E, 0x3F):
            pull(), pull(), pull()
            ranges = pull()
            for _ in range(1 + 2 * ranges + (3 if kind == 0x3F else 0)):
                pull()
        elif kind == 0x3E78:
            frame.offset = pull()  # the path
            pull(), pull()
            frame.data = buffer.pull_bytes(buffer.pull_uint8())
            buffer.pull_bytes(16)
        elif kind in (0x3E75, 0x3E76, 0x3E77, 0x3E79, 0x3E7C):
            pull(), pull()
        elif kind in (0x3E7A, 0x3E7B):
            pull()
        else:
            frames.append(frame)
            break
        frames.append(frame)
    return frames


class Crypto:
    """The CRYPTO stream of one direction and level, put together."""

    def __init__(self):
        self.parts = {}

    def add(self, frame):
        self.parts.setdefault(frame.offset, frame.data)
        if len(frame.data) > len(self.parts[frame.offset]):
            self.parts[frame.offset] = frame.data

    def messages(self):
        """(type, body) of each complete TLS message."""
        whole = bytearray()
        for offset in sorted(self.parts):
            if offset > len(whole):
                break
            whole[offset : offset + len(self.parts[offset])] = self.parts[offset]
        at, found = 0, []
        while at + 4 <= len(whole):
            end = at + 4 + int.from_bytes(whole[at + 1 : at + 4], "big")
            if end > len(whole):
                break
            found.append((whole[at], bytes(whole[at + 4 : end])))
            at = end
        return found


class Connection:
    """A connection: its keys, and what its handshake said."""

    def __init__(self, secrets, first):
        self.secrets = secrets
        self.original_dcid = self.initial_dcid = first.dcid
        self.client_cids, self.server_cids = {first.scid}, {first.dcid}
        self.client_address = first.datagram.source
        self.crypto = {}
        self.contexts = {}
        # The path of each connection ID that is not of the first one.
        self.paths = {}
        self.largest = {}
        self.random = self.suite = None
        self.early_suite = CipherSuite.AES_128_GCM_SHA256
        self.version = first.version

    def context(self, packet):
        """What opens packets of this kind; None as long as that is not known."""
        version = packet.version or self.version
        path = self.paths.get(packet.dcid, 0)
        key = (packet.sender, packet.kind, version, self.initial_dcid if packet.kind == INITIAL else None, path)
        if key in self.contexts:
            return self.contexts[key]
        if packet.kind == INITIAL:
            pair = CryptoPair()
            pair.setup_initial(cid=self.initial_dcid, is_client=packet.sender == "server", version=version)
            # "is_client" sees the sender from the other end: what it receives is what the other end sends.
            self.contexts[key] = pair.recv
            return pair.recv
        secret = self.secrets.get((SECRETS[packet.sender, packet.kind], self.random))
        suite = self.early_suite if packet.kind == ZERO_RTT else self.suite
        if secret is None or suite is None:
            return None
        context = CryptoContext()
        context.setup(cipher_suite=suite, secret=secret, version=version)
        if path:
            # The path ID stands before the packet number in the nonce. Source: draft-ietf-quic-multipath §4.
            cipher_key, iv, _ = derive_key_iv_hp(cipher_suite=suite, secret=secret, version=version)
            first = int.from_bytes(iv[:4], "big") ^ path
            context.aead = AEAD(CIPHER_SUITES[suite][1], cipher_key, first.to_bytes(4, "big") + iv[4:])
        self.contexts[key] = context
        return context

    def open(self, packet, data, offset):
        """Decrypts a packet in place of its frames."""
        context = self.context(packet)
        if context is None:
            return False
        space = (packet.sender, ONE_RTT if packet.kind == ZERO_RTT else packet.kind, self.paths.get(packet.dcid, 0))
        expected = self.largest.get(space, -1) + 1
        try:
            header, payload, number, updated = context.decrypt_packet(data, offset, expected)
        except CryptoError:
            return False
        if updated:
            apply_key_phase(context, next_key_phase(context), trigger="capture")
        packet.key_phase = header[0] >> 2 & 1 if packet.kind == ONE_RTT else 0
        packet.number = number
        self.largest[space] = max(self.largest.get(space, -1), number)
        packet.payload_bytes = len(payload)
        try:
            packet.frames = read_frames(payload)
        except ValueError:
            return False
        self.learn(packet)
        return True

    def learn(self, packet):
        own = self.client_cids if packet.sender == "client" else self.server_cids
        if packet.scid:
            own.add(packet.scid)
        crypto = [frame for frame in packet.frames if frame.type == 0x06]
        own.update(frame.data for frame in packet.frames if frame.type in (0x18, 0x3E78))
        self.paths.update((frame.data, frame.offset) for frame in packet.frames if frame.type == 0x3E78)
        if not crypto:
            return
        stream = self.crypto.setdefault((packet.sender, packet.kind), Crypto())
        for frame in crypto:
            stream.add(frame)
        if packet.kind == INITIAL:
            hellos = stream.messages()
            if packet.sender == "client" and hellos:
                self.random = hellos[0][1][2:34]
            for kind, body in hellos:
                if kind == 2:
                    self.version = packet.version
                    at = 35 + body[34]
                    self.suite = CipherSuite(int.from_bytes(body[at : at + 2], "big"))

    def messages(self, sender, kind):
        stream = self.crypto.get((sender, kind))
        return stream.messages() if stream else []


class Trace:
    """All packets of both ends in the order in which they were sent, and the connections that they belong to."""

    def __init__(self, client_capture, server_capture, key_logs):
        self.at_client = list(read_capture(client_capture))
        self.at_server = list(read_capture(server_capture))
        secrets = read_keys(key_logs)
        sent = [datagram for datagram in self.at_client if datagram.sender == "client"]
        sent += [datagram for datagram in self.at_server if datagram.sender == "server"]
        sent.sort(key=lambda datagram: datagram.time)
        self.connections = []
        self.packets = []
        self.secrets = secrets
        for datagram in sent:
            self.packets += self.split(datagram)

    def split(self, datagram):
        """The packets of a datagram."""
        packets, data = [], datagram.payload
        # Without the fixed bit it is padding behind the last packet.
        while data and data[0] & 0x40:
            found = self.long(datagram, data) if data[0] & 0x80 else self.short(datagram, data)
            if found is None:
                break
            packet, length = found
            packets.append(packet)
            data = data[length:]
        return packets

    def long(self, datagram, data):
        if len(data) < 7:
            return None
        buffer = Buffer(data=data)
        try:
            first, version = buffer.pull_uint8(), buffer.pull_uint32()
            dcid = buffer.pull_bytes(buffer.pull_uint8())
            scid = buffer.pull_bytes(buffer.pull_uint8())
            if version == 0:
                return Packet(datagram, NEGOTIATION, 0, dcid, scid), len(data)
            kind = TYPES.get(version, TYPES[V1])[first >> 4 & 3]
            packet = Packet(datagram, kind, version, dcid, scid)
            if kind == RETRY:
                packet.token = data[buffer.tell() : -16]
                connection = self.find(packet)
                if connection and connection.initial_dcid == connection.original_dcid:
                    connection.initial_dcid = scid
                    # Some clients answer with another ClientHello.
                    connection.crypto.pop(("client", INITIAL), None)
                    connection.server_cids.add(scid)
                return packet, len(data)
            if kind == INITIAL:
                packet.token = buffer.pull_bytes(buffer.pull_uint_var())
            length = buffer.pull_uint_var()
        except ValueError:
            return None
        offset = buffer.tell()
        connection = self.find(packet)
        if connection is None and kind in (INITIAL, ZERO_RTT) and packet.sender == "client" and version in TYPES:
            connection = Connection(self.secrets, packet)
            if self.connections and self.connections[-1].suite:
                # What the ticket of the connection before was made with.
                connection.early_suite = self.connections[-1].suite
            self.connections.append(connection)
        if connection and offset + length <= len(data):
            connection.open(packet, data[: offset + length], offset)
        return packet, offset + length

    def short(self, datagram, data):
        packet = Packet(datagram, ONE_RTT, None, b"")
        for connection in reversed(self.connections):
            cids = connection.server_cids if packet.sender == "client" else connection.client_cids
            for cid in cids:
                if data[1 : 1 + len(cid)] == cid and (cid or self.is_of(connection, datagram)):
                    packet.dcid = cid
                    if connection.open(packet, data, 1 + len(cid)):
                        return packet, len(data)
        return packet, len(data)

    def find(self, packet):
        for connection in reversed(self.connections):
            ours, theirs = connection.client_cids, connection.server_cids
            to, by = (theirs, ours) if packet.sender == "client" else (ours, theirs)
            if packet.dcid in to and (packet.dcid or self.is_of(connection, packet.datagram)):
                return connection
            if packet.sender == "client" and packet.scid and packet.scid in by:
                return connection
        return None

    def is_of(self, connection, datagram):
        """Of a client without connection IDs: whether it is the only one, or has this port."""
        port = (datagram.source if datagram.sender == "client" else datagram.destination)[1]
        return len(self.connections) == 1 or connection.client_address[1] == port

    def of(self, sender, *kinds):
        return [packet for packet in self.packets if packet.sender == sender and packet.kind in kinds]

    def opened_share(self):
        """Of the bytes of datagrams with protected packets, the share that could be opened. Stateless resets never can."""
        protected = [packet for packet in self.packets if packet.kind not in (RETRY, NEGOTIATION)]
        size = lambda packets: sum(len(packet.datagram.payload) for packet in packets)
        return size(packet for packet in protected if packet.frames is not None) / max(1, size(protected))
