"""Opens a WebSocket over HTTP/3 with aioquic (RFC 9220), has messages echoed, closes it, and prints what came as JSON. Run with --help."""

import argparse
import asyncio
import json
import os
import ssl
import urllib.parse

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3_ALPN, H3Connection, Setting
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration

from websocket import BINARY, CLOSE, frame, parse

PATIENCE = 30  # seconds
SIZES = [0, 1, 125, 126, 65_535, 65_536, 300_000] + [1_000] * 13


class Client(QuicConnectionProtocol):
    """One connection with one stream."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.http = H3Connection(self._quic)
        self.status, self.buffer, self.ended = None, b"", False
        self.changed = asyncio.Event()

    def quic_event_received(self, event):
        for happened in self.http.handle_event(event):
            if isinstance(happened, HeadersReceived):
                self.status = int(dict(happened.headers)[b":status"])
            if isinstance(happened, DataReceived):
                self.buffer += happened.data
            if isinstance(happened, (HeadersReceived, DataReceived)):
                self.ended = self.ended or happened.stream_ended
        self.changed.set()

    async def until(self, is_so):
        while not is_so():
            self.changed.clear()
            await asyncio.wait_for(self.changed.wait(), PATIENCE)

    async def message(self):
        """The opcode and the payload of the next frame."""
        await self.until(lambda: parse(self.buffer))
        opcode, payload, self.buffer = parse(self.buffer)
        return opcode, payload


async def talk(url):
    parts = urllib.parse.urlsplit(url)
    configuration = QuicConfiguration(is_client=True, alpn_protocols=H3_ALPN, verify_mode=ssl.CERT_NONE, server_name=parts.hostname)
    async with connect("127.0.0.1", parts.port, configuration=configuration, create_protocol=Client) as client:
        await client.until(lambda: client.http.received_settings is not None)
        told = {"announced": client.http.received_settings.get(Setting.ENABLE_CONNECT_PROTOCOL) == 1}
        stream = client._quic.get_next_available_stream_id()
        head = [
            (":method", "CONNECT"), (":protocol", "websocket"), (":scheme", "https"),
            (":authority", parts.netloc), (":path", parts.path), ("sec-websocket-version", "13"),
        ]
        client.http.send_headers(stream, [(name.encode(), value.encode()) for name, value in head])
        client.transmit()
        await client.until(lambda: client.status is not None)
        told["status"] = client.status
        told["first"] = (await client.message())[1].decode()
        told["echoed"] = 0
        for size in SIZES:
            payload = os.urandom(size)
            client.http.send_data(stream, frame(BINARY, payload), end_stream=False)
            client.transmit()
            told["echoed"] += await client.message() == (BINARY, payload)
        client.http.send_data(stream, frame(CLOSE, b"\x03\xe8"), end_stream=False)
        client.transmit()
        opcode, _ = await client.message()
        client.http.send_data(stream, b"", end_stream=True)
        client.transmit()
        await client.until(lambda: client.ended)
        told["ended"] = opcode == CLOSE
        return told


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", help="wss://HOST:PORT/PATH; the connection goes to 127.0.0.1")
    print(json.dumps(asyncio.run(talk(parser.parse_args().url))))


if __name__ == "__main__":
    main()
