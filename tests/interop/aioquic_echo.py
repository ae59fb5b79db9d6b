"""Loads a server's echo with aioquic over one HTTP/3 connection, and prints as JSON what came back.

Three things are done: many small requests, uploads side by side, and a conversation, in which each piece of the request's content is
sent when the piece before it has come back. Only a server that streams in both directions at the same time completes the last one.
"""

import argparse
import asyncio
import hashlib
import json
import sys
from urllib.parse import urlsplit

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3_ALPN, ErrorCode, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, StreamReset

AT_A_TIME = 20


class Exchange:
    """One request, and what has come back of it."""

    def __init__(self):
        self.status = 0
        self.received = bytearray()
        self.changed = asyncio.Event()
        self.ended = False
        self.error = None

    def update(self, *, ended=False, error=None):
        self.ended |= ended
        self.error = self.error or error
        self.changed.set()

    async def wait(self, is_done):
        while not is_done():
            if self.error:
                raise ConnectionError(self.error)
            self.changed.clear()
            await self.changed.wait()

    async def wait_for_end(self):
        await self.wait(lambda: self.ended)


class Client(QuicConnectionProtocol):
    """One connection, and its exchanges by the number of their stream."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.http = H3Connection(self._quic)
        self.exchanges = {}

    def begin(self, method, url, content=None):
        """Sends a head, and content if there is any. Content that is b"" is to follow by send."""
        stream = self._quic.get_next_available_stream_id()
        head = [(":method", method), (":scheme", "https"), (":authority", url.netloc), (":path", url.path)]
        fields = [(name.encode(), value.encode()) for name, value in head]
        self.exchanges[stream] = exchange = Exchange()
        self.http.send_headers(stream, fields, end_stream=content is None)
        if content:
            self.http.send_data(stream, content, end_stream=True)
        self.transmit()
        return stream, exchange

    def send(self, stream, piece, *, end):
        self.http.send_data(stream, piece, end_stream=end)
        self.transmit()

    def quic_event_received(self, event):
        if isinstance(event, ConnectionTerminated):
            for exchange in self.exchanges.values():
                exchange.update(error=f"connection closed: error {event.error_code} {event.reason_phrase}")
        elif isinstance(event, StreamReset) and event.stream_id in self.exchanges:
            self.exchanges[event.stream_id].update(error=f"stream reset: error {event.error_code}")
        for happened in self.http.handle_event(event):
            exchange = self.exchanges.get(happened.stream_id)
            if exchange is None:
                continue
            if isinstance(happened, HeadersReceived):
                exchange.status = int(dict(happened.headers).get(b":status", 0)) or exchange.status
            elif isinstance(happened, DataReceived):
                exchange.received += happened.data
            exchange.update(ended=happened.stream_ended)


def content(size, seed):
    """Bytes that differ from place to place and from one upload to the next."""
    return hashlib.shake_128(seed.to_bytes(4, "big")).digest(size)


async def small_requests(client, url, count):
    """How many of `count` requests were answered with 200."""
    answered = 0
    for first in range(0, count, AT_A_TIME):
        batch = [client.begin("GET", url)[1] for _ in range(first, min(first + AT_A_TIME, count))]
        for exchange in batch:
            await exchange.wait_for_end()
            answered += exchange.status == 200
    return answered


async def uploads(client, url, count, size):
    """How many of `count` uploads, side by side, came back as they were sent."""
    sent = [content(size, seed) for seed in range(count)]
    running = [client.begin("POST", url, body)[1] for body in sent]
    for exchange in running:
        await exchange.wait_for_end()
    return sum(exchange.received == body for exchange, body in zip(running, sent))


async def conversation(client, url, pieces, size):
    """How many pieces came back before the next one was sent."""
    stream, exchange = client.begin("POST", url, b"")
    said = b""
    for number in range(pieces):
        piece = content(size, number)
        said += piece
        client.send(stream, piece, end=False)
        await exchange.wait(lambda: len(exchange.received) >= len(said))
        if exchange.received != said or exchange.ended:
            return number
    client.send(stream, b"", end=True)
    await exchange.wait_for_end()
    return pieces


async def run(options):
    server = urlsplit(options.server)
    hello, echo = server._replace(path="/"), server._replace(path="/echo")
    setup = QuicConfiguration(alpn_protocols=H3_ALPN)
    setup.load_verify_locations(options.cacert)
    async with connect(server.hostname, server.port, configuration=setup, create_protocol=Client) as client:
        async with asyncio.timeout(options.timeout):
            report = {
                "answered": await small_requests(client, hello, options.requests),
                "echoed": await uploads(client, echo, options.uploads, options.size),
                "returned": await conversation(client, echo, options.pieces, options.piece_size),
            }
        client.close(error_code=ErrorCode.H3_NO_ERROR)
    return report


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("server", metavar="URL", help="a server that answers / and returns what is posted to /echo")
    parser.add_argument("--cacert", required=True, help="trust the certificates in this file")
    parser.add_argument("--requests", type=int, default=500, help="small requests")
    parser.add_argument("--uploads", type=int, default=4, help="uploads at the same time")
    parser.add_argument("--size", type=int, default=1_000_000, help="bytes of each upload")
    parser.add_argument("--pieces", type=int, default=50, help="pieces of the conversation")
    parser.add_argument("--piece-size", type=int, default=10_000, help="bytes of each piece")
    parser.add_argument("--timeout", type=float, default=60, help="seconds for all of it")
    try:
        print(json.dumps(asyncio.run(run(parser.parse_args()))))
    except (ConnectionError, OSError, TimeoutError) as error:
        sys.exit(f"aioquic_echo: {error or 'no answer in time'}")


if __name__ == "__main__":
    main()
