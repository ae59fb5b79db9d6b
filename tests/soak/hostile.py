"""Hostile clients of a soak, until SIGTERM; then what they did as JSON.

usage: hostile.py PORT FOLDER
"""

import asyncio
import collections
import json
import signal
import ssl
import sys

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection

HOARDERS = 8  # connections
REQUESTS = 100  # on each of them
FLOODERS = 8
PAUSE = 1.0  # seconds between PINGs


class Hoarder(QuicConnectionProtocol):
    """Asks for large files and takes one byte of each."""

    def hoard(self):
        http = H3Connection(self._quic)
        for _ in range(REQUESTS):
            stream = self._quic.get_next_available_stream_id()
            head = [(b":method", b"GET"), (b":scheme", b"https"), (b":authority", b"localhost"), (b":path", b"/10m")]
            http.send_headers(stream, head, end_stream=True)
        self.transmit()


class Hostile:
    """All of them."""

    def __init__(self, port):
        self.port = port
        self.counts = collections.Counter()

    def configuration(self, window):
        made = QuicConfiguration(alpn_protocols=H3_ALPN, max_data=8 << 20, max_stream_data=window, idle_timeout=30)
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
                quic = QuicConnection(configuration=self.configuration(1 << 20))
                quic.connect(("127.0.0.1", self.port), now=loop.time())
                for data, _ in quic.datagrams_to_send(now=loop.time()):
                    transport.sendto(data)
                    self.counts["first flights"] += 1
                await asyncio.sleep(0.005)
        finally:
            transport.close()

    async def lane(self, work, pause):
        while True:
            try:
                await asyncio.wait_for(work(), 60)
            except (ConnectionError, OSError, asyncio.TimeoutError) as error:
                self.counts[f"turned away: {type(error).__name__}"] += 1
            await asyncio.sleep(pause)

    async def run(self, stop):
        lanes = [self.lane(self.hoard, 0.5) for _ in range(HOARDERS)]
        lanes += [self.lane(self.flood, 0.0) for _ in range(FLOODERS)]
        lanes += [self.lane(self.first_flights, 0.1)]
        tasks = [asyncio.create_task(lane) for lane in lanes]
        await stop.wait()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def main():
    hostile = Hostile(int(sys.argv[1]))
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await hostile.run(stop)
    print(json.dumps(hostile.counts))


if __name__ == "__main__":
    asyncio.run(main())
