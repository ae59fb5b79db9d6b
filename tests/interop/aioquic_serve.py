"""Serves the files below a folder over HTTP/3 with aioquic, with single byte ranges. Run with --help.

The only independent server here that speaks QUIC version 2.
"""

import argparse
import asyncio
import json
import os
import pathlib
import re
import signal

from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.asyncio.server import serve
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.packet import QuicProtocolVersion
from aioquic.tls import CipherSuite

CIPHERS = {
    "aes128": CipherSuite.AES_128_GCM_SHA256,
    "aes256": CipherSuite.AES_256_GCM_SHA384,
    "chacha20": CipherSuite.CHACHA20_POLY1305_SHA256,
}
VERSIONS = {"1": QuicProtocolVersion.VERSION_1, "2": QuicProtocolVersion.VERSION_2}


class Server(QuicConnectionProtocol):
    """One connection: each request is answered at once and whole."""

    root: pathlib.Path
    key_update: bool

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.http = H3Connection(self._quic)

    def quic_event_received(self, event):
        for happened in self.http.handle_event(event):
            if isinstance(happened, HeadersReceived):
                self.answer(happened.stream_id, dict(happened.headers))

    def answer(self, stream, request):
        status, headers, body = response(self.root, request)
        head = [(":status", str(status)), ("content-length", str(len(body))), *headers]
        if request[b":method"] == b"HEAD":
            body = b""
        encoded = [(name.encode(), value.encode()) for name, value in head]
        self.http.send_headers(stream, encoded, end_stream=not body)
        if body:
            self.http.send_data(stream, body, end_stream=True)
        self.transmit()
        if self.key_update:
            # In the middle of the body, most of which has to wait for acknowledgements.
            self._loop.call_later(0.05, self._quic.request_key_update)


def response(root, request):
    """(status, more headers, body)"""
    path = root / request[b":path"].decode().lstrip("/")
    if ".." in path.parts or not path.is_file():
        return 404, [], b""
    body = path.read_bytes()
    wanted = re.fullmatch(r"bytes=(\d*)-(\d*)", request.get(b"range", b"").decode())
    if not wanted:
        return 200, [], body
    first, last = wanted.groups()
    begin = int(first) if first else max(0, len(body) - int(last))
    end = min(int(last) + 1, len(body)) if first and last else len(body)
    if begin >= end:
        return 416, [("content-range", f"bytes */{len(body)}")], b""
    return 206, [("content-range", f"bytes {begin}-{end - 1}/{len(body)}")], body[begin:end]


async def run(options):
    host, _, port = options.listen.rpartition(":")
    setup = QuicConfiguration(alpn_protocols=H3_ALPN, is_client=False, max_datagram_size=1_400)
    setup.load_cert_chain(options.cert, options.key)
    if options.cipher:
        setup.cipher_suites = [CIPHERS[options.cipher]]
    if options.quic_version:
        setup.supported_versions = [VERSIONS[options.quic_version]]
    if keylog := os.environ.get("SSLKEYLOGFILE"):
        setup.secrets_log_file = open(keylog, "a")
    Server.root, Server.key_update = pathlib.Path(options.root), options.key_update
    server = await serve(
        host.strip("[]"), int(port), configuration=setup, create_protocol=Server, retry=options.retry
    )
    ready = pathlib.Path(options.ready_file)
    unfinished = ready.with_suffix(".unfinished")
    unfinished.write_text(json.dumps({"port": server._transport.get_extra_info("sockname")[1]}))
    unfinished.rename(ready)
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    await stopped.wait()
    server.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root")
    parser.add_argument("--listen", default="127.0.0.1:0")
    parser.add_argument("--ready-file", required=True, help="write the port here as JSON once listening")
    parser.add_argument("--cert", required=True)
    parser.add_argument("--key", required=True)
    parser.add_argument("--retry", action="store_true", help="let every client prove its address first")
    parser.add_argument("--cipher", choices=CIPHERS)
    parser.add_argument("--quic-version", choices=VERSIONS, help="the only version to speak")
    parser.add_argument("--key-update", action="store_true", help="update the keys during each body")
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
