"""Downloads URLs of one server over one HTTP/3 connection with aioquic, and prints what came back as JSON.

aioquic is written in Python by other people: it shares no code and no author with tercel. Run with --help.
"""

import argparse
import asyncio
import hashlib
import json
import os
import sys
import time
from urllib.parse import urlsplit

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3_ALPN, ErrorCode, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, HandshakeCompleted, StreamReset
from aioquic.quic.packet import QuicProtocolVersion
from aioquic.tls import CipherSuite, Epoch

WINDOW = 8 << 20
V1, V2 = QuicProtocolVersion.VERSION_1, QuicProtocolVersion.VERSION_2
# first: the version of the first packet; then what the client offers, in order of preference
UNKNOWN = 0x1A2A3A4A  # one of those that exist so that servers answer with what they know. RFC 9000 §15
VERSIONS = {"1": (V1, [V1]), "2": (V2, [V2]), "1-or-2": (V1, [V2, V1]), "unknown": (UNKNOWN, [UNKNOWN, V1])}
CIPHERS = {
    "aes128": CipherSuite.AES_128_GCM_SHA256,
    "aes256": CipherSuite.AES_256_GCM_SHA384,
    "chacha20": CipherSuite.CHACHA20_POLY1305_SHA256,
}


class Download:
    """One request and what has come back of it."""

    def __init__(self, path, output):
        self.path = path
        self.headers = {}
        self.received = 0
        self.hash = hashlib.sha256()
        self.output = open(output, "wb") if output else None
        self.done = asyncio.get_running_loop().create_future()

    def on_data(self, data):
        self.received += len(data)
        self.hash.update(data)
        if self.output:
            self.output.write(data)

    def finish(self, error=None):
        if self.output:
            self.output.close()
        if not self.done.done():
            self.done.set_exception(ConnectionError(error)) if error else self.done.set_result(None)

    def report(self):
        length = self.headers.get("content-length")
        return {
            "path": self.path,
            "status": int(self.headers.get(":status", 0)),
            "bytes": self.received,
            "sha256": self.hash.hexdigest(),
            "content_length": int(length) if length is not None else None,
            "headers": self.headers,
        }


class Client(QuicConnectionProtocol):
    """HTTP/3 events of one connection, sorted to the downloads they belong to."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.http = H3Connection(self._quic)
        self.downloads = {}
        self.received = 0
        self.key_updates_wanted = []
        self.key_updates = {"local_update": 0, "remote_update": 0}

    def request(self, method, authority, path, headers, output):
        stream = self._quic.get_next_available_stream_id()
        head = [(":method", method), (":scheme", "https"), (":authority", authority), (":path", path), *headers]
        self.http.send_headers(stream, [(name.encode(), value.encode()) for name, value in head], end_stream=True)
        self.downloads[stream] = Download(path, output)
        self.transmit()
        return self.downloads[stream]

    def count_key_updates(self):
        """aioquic keeps no count of them, so we look over its shoulder."""
        keys = self._quic._cryptos[Epoch.ONE_RTT]
        update = keys._update_key

        def counted(trigger):
            self.key_updates[trigger] += 1
            update(trigger)

        keys._update_key = counted

    def quic_event_received(self, event):
        if isinstance(event, HandshakeCompleted):
            self.count_key_updates()
        elif isinstance(event, ConnectionTerminated):
            reason = f"connection closed: error {event.error_code} frame {event.frame_type} {event.reason_phrase}"
            for download in self.downloads.values():
                download.finish(reason)
        elif isinstance(event, StreamReset) and event.stream_id in self.downloads:
            self.downloads[event.stream_id].finish(f"stream reset: error {event.error_code}")
        for happened in self.http.handle_event(event):
            self.http_event_received(happened)

    def http_event_received(self, event):
        download = self.downloads.get(event.stream_id)
        if download is None:
            return
        if isinstance(event, HeadersReceived):
            download.headers |= {name.decode(): value.decode() for name, value in event.headers}
        elif isinstance(event, DataReceived):
            download.on_data(event.data)
            self.received += len(event.data)
            if self.key_updates_wanted and self.received >= self.key_updates_wanted[0]:
                self.key_updates_wanted.pop(0)
                self._quic.request_key_update()
        if event.stream_ended:
            download.finish()


def configuration(options):
    first, offered = VERSIONS[options.quic_version]
    made = QuicConfiguration(
        alpn_protocols=H3_ALPN,
        max_data=WINDOW,
        max_stream_data=WINDOW,
        original_version=first,
        supported_versions=offered,
    )
    made.load_verify_locations(options.cacert)
    if options.cipher:
        made.cipher_suites = [CIPHERS[options.cipher]]
    if keylog := os.environ.get("SSLKEYLOGFILE"):
        made.secrets_log_file = open(keylog, "a")
    return made


async def run(options):
    server = urlsplit(options.urls[0])
    headers = [("range", f"bytes={options.range}")] if options.range else []
    method = "HEAD" if options.head else "GET"
    began = time.monotonic()
    setup = configuration(options)
    async with connect(server.hostname, server.port, configuration=setup, create_protocol=Client) as client:
        client.key_updates_wanted = options.key_update_after
        downloads = []
        for index, url in enumerate(options.urls):
            output = os.path.join(options.output_dir, str(index)) if options.output_dir else None
            path = urlsplit(url).path
            downloads.append(client.request(method, server.netloc, path, headers, output))
        for download in downloads:
            await download.done
        keys = client._quic._cryptos[Epoch.ONE_RTT]
        report = {
            "downloads": [download.report() for download in downloads],
            "wall_s": time.monotonic() - began,
            "quic_version": {V1: 1, V2: 2}[client._quic._version],
            "cipher": keys.recv.cipher_suite.name,
            "version_negotiation": client._quic._version_negotiated_incompatible,
            "retries": client._quic._retry_count,
            "key_updates_by_client": client.key_updates["local_update"],
            "key_updates_by_server": client.key_updates["remote_update"],
        }
        client.close(error_code=ErrorCode.H3_NO_ERROR)
    return report


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("urls", nargs="+", metavar="URL", help="all of one server")
    parser.add_argument("--cacert", required=True, help="trust the certificates in this file")
    parser.add_argument("--output-dir", help="write the body of URL number N to DIR/N")
    parser.add_argument("--range", help="ask for a part, as in 0-99")
    parser.add_argument("--head", action="store_true", help="ask for the head only")
    parser.add_argument("--cipher", choices=CIPHERS)
    parser.add_argument("--quic-version", choices=VERSIONS, default="1")
    parser.add_argument("--key-update-after", type=int, action="append", default=[], metavar="BYTES")
    try:
        print(json.dumps(asyncio.run(run(parser.parse_args()))))
    except (ConnectionError, OSError) as error:
        sys.exit(f"aioquic_get: {error or 'no connection'}")


if __name__ == "__main__":
    main()
