"""Hostile clients of a soak, until SIGTERM; then what they did as JSON.

usage: hostile.py PORT FOLDER
"""

import asyncio
import collections
import json
import os
import random
import signal
import ssl
import struct
import sys
import time

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import StopSendingReceived, StreamReset

HOARDERS = 8  # connections
REQUESTS = 100  # on each of them
FLOODERS = 8
SLOW = 4  # clients of each kind
PAUSE = 1.0  # seconds between PINGs, and between the bytes of slow clients


def frame(kind, flags, stream, payload):
    """A frame of HTTP/2 (RFC 9113 section 4.1)."""
    return struct.pack(">BHBBI", 0, len(payload), kind, flags, stream) + payload


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, struct.pack(">HI", 4, 1))  # windows of one byte
GET_LARGE = b"\x82\x87\x04\x04/10m\x41\x09localhost"
HEADERS_WITHOUT_END = frame(1, 1, 1, GET_LARGE)
HOARD = b"".join(frame(1, 5, 1 + 2 * number, GET_LARGE) for number in range(REQUESTS))
PING = frame(6, 0, 0, bytes(8))
# What slow clients of TCP send first, and then again and again; None: no TLS.
DRIBBLES = {
    "TLS": (None, b"\x16\x03\x01\x02\x00", b"\x01"),
    "HTTP/1.1": ("http/1.1", b"GET /small HTTP/1.1\r\nHost: localhost\r\nX: ", b"x"),
    "HTTP/2": ("h2", PREFACE + HEADERS_WITHOUT_END, b""),
    "HTTP/2 PING": ("h2", PREFACE, PING),
    "HTTP/2 hoard": ("h2", PREFACE + HOARD, PING),
}


class Hoarder(QuicConnectionProtocol):
    """Asks for large files and takes one byte of each."""

    def hoard(self):
        http = H3Connection(self._quic)
        for _ in range(REQUESTS):
            stream = self._quic.get_next_available_stream_id()
            head = [(b":method", b"GET"), (b":scheme", b"https"), (b":authority", b"localhost"), (b":path", b"/10m")]
            http.send_headers(stream, head, end_stream=True)
        self.transmit()


class Dribbler(QuicConnectionProtocol):
    """Sends a request's head byte by byte."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.is_ended = False
        self.heard = 0.0  # when the last datagram came

    def datagram_received(self, data, addr):
        self.heard = time.monotonic()
        super().datagram_received(data, addr)

    def quic_event_received(self, event):
        if isinstance(event, (StopSendingReceived, StreamReset)):
            self.is_ended = True

    def is_over(self):
        return self.is_ended or self._closed.is_set()

    def send(self, data):
        self._quic.send_stream_data(0, data)
        self.transmit()


class Hostile:
    """All of them."""

    def __init__(self, port):
        self.port = port
        self.counts = collections.Counter()
        self.held = collections.defaultdict(float)  # seconds that slow clients were borne at most, by kind

    def configuration(self, window):
        made = QuicConfiguration(alpn_protocols=H3_ALPN, max_data=8 << 20, max_stream_data=window, idle_timeout=10)
        made.verify_mode = ssl.CERT_NONE
        return made

    async def hoard(self):
        async with connect("127.0.0.1", self.port, configuration=self.configuration(1), create_protocol=Hoarder) as client:
            # No more credit than what the connection began with.
            client._quic._write_stream_limits = lambda *_, **__: None
            client.hoard()
            self.counts["hoards"] += 1
            while not client._closed.is_set():
                await asyncio.sleep(PAUSE)
                await asyncio.wait_for(client.ping(), 10)

    async def flood(self):
        """A handshake, and nothing after it."""
        async with connect("127.0.0.1", self.port, configuration=self.configuration(1 << 20)) as client:
            self.counts["handshakes"] += 1
            client.close()

    async def first_flights(self):
        """Handshakes that are begun and left."""
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(
            asyncio.DatagramProtocol, remote_addr=("127.0.0.1", self.port)
        )
        try:
            for _ in range(50):
                transport.sendto(random.randbytes(random.randrange(1, 1400)))
                quic = QuicConnection(configuration=self.configuration(1 << 20))
                quic.connect(("127.0.0.1", self.port), now=loop.time())
                for data, _ in quic.datagrams_to_send(now=loop.time()):
                    transport.sendto(data)
                    self.counts["first flights"] += 1
                await asyncio.sleep(0.005)
        finally:
            transport.close()

    def note(self, kind, began, ended=None):
        self.held[kind] = max(self.held[kind], round((ended or time.monotonic()) - began, 1))

    async def dribble_over_tcp(self, kind):
        protocol, first, next_bytes = DRIBBLES[kind]
        context = None
        if protocol:
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            context.set_alpn_protocols([protocol])
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=context)
        began = time.monotonic()
        until_end = asyncio.ensure_future(reader.read(-1))
        try:
            writer.write(first)
            while not until_end.done():
                await asyncio.sleep(PAUSE)
                writer.write(next_bytes)
            await until_end
        finally:
            self.note(kind, began)
            writer.transport.abort()

    async def dribble_over_quic(self):
        configuration = self.configuration(1 << 20)
        async with connect("127.0.0.1", self.port, configuration=configuration, create_protocol=Dribbler) as client:
            began = time.monotonic()
            client.send(b"\x01\x40\x64")  # A HEADERS frame of a hundred bytes.
            while not client.is_over():
                client.send(b"\x00")
                await asyncio.sleep(PAUSE)
            # A killed server tells nothing: the time until its last datagram counts, not the client's idle timeout.
            self.note("HTTP/3", began, client.heard)

    async def read_nothing(self):
        """A request over HTTP/1.1 whose response is never read."""
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        _, writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=context, limit=1)
        began = time.monotonic()
        try:
            writer.write(b"GET /10m HTTP/1.1\r\nHost: localhost\r\n\r\n")
            while not writer.is_closing():
                await asyncio.sleep(PAUSE)
                writer.write(b" ")  # Tells whether the server has closed.
        finally:
            self.note("reads nothing", began)
            writer.transport.abort()

    async def lane(self, work, pause):
        while True:
            try:
                await asyncio.wait_for(work(), 120)
            except (ConnectionError, OSError, asyncio.TimeoutError) as error:
                self.counts[f"turned away: {type(error).__name__}"] += 1
            await asyncio.sleep(pause)

    async def run(self, stop):
        lanes = [self.lane(self.hoard, 0.5) for _ in range(HOARDERS)]
        lanes += [self.lane(self.flood, 0.0) for _ in range(FLOODERS)]
        lanes += [self.lane(self.first_flights, 0.1)]
        for _ in range(SLOW):
            lanes += [self.lane(lambda kind=kind: self.dribble_over_tcp(kind), 0.5) for kind in DRIBBLES]
            lanes += [self.lane(self.dribble_over_quic, 0.5), self.lane(self.read_nothing, 0.5)]
        self.tasks = [asyncio.create_task(lane) for lane in lanes]
        await stop.wait()


async def main():
    hostile = Hostile(int(sys.argv[1]))
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await hostile.run(stop)
    print(json.dumps({"counts": hostile.counts, "held_seconds": hostile.held}), flush=True)
    # Ends the clients at once: before Python 3.12 wait_for may swallow a cancellation.
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(main())
