"""picoquic, by the package aiopquic, as an end of the cases. Needs Python 3.12; see implementations.py.

Not offered, because the package has no call for it: migration or a second path on a client's order; a client of HTTP/3.
"""

import asyncio
import ctypes
import os
import pathlib
import sys

from aiopquic._binding import _transport
from aiopquic.asyncio import QuicConnectionProtocol, connect, serve
from aiopquic.quic.configuration import QUIC_V1, QUIC_V2, QuicConfiguration
from aiopquic.quic.events import ConnectionTerminated, StreamDataReceived, StreamReset
from contract import NOT_OFFERED, arguments, host_and_port, until_stopped

SERVER = {
    "handshake", "transfer", "chacha20", "retry", "resumption", "zerortt", "keyupdate", "ecn", "multiconnect", "v2", "multipath",
}
CLIENT = SERVER - {"multipath"}
CHACHA20 = 0x1303
# Packets after which keys are updated, in that case.
KEY_UPDATE = 300


# Where the package's object has the pointer to picoquic's context: behind its own head, a list of weak references and another pointer.
CONTEXT_AT = 40


class Server(QuicConnectionProtocol):
    """Answers `GET /path` by the file."""

    root = None

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.requests = {}
        self.answering = set()

    def quic_event_received(self, event):
        if isinstance(event, StreamDataReceived) and event.stream_id % 4 == 0:
            request = self.requests.setdefault(event.stream_id, bytearray())
            request += event.data
            if event.end_stream:
                path = self.root / bytes(request).decode().split()[1].lstrip("/")
                task = asyncio.ensure_future(self.answer(event.stream_id, path.read_bytes()))
                self.answering.add(task)
                task.add_done_callback(self.answering.discard)

    async def answer(self, stream, content):
        pieces = [content[at : at + 65_536] for at in range(0, len(content), 65_536)] or [b""]
        for number, piece in enumerate(pieces, 1):
            await self._quic.send_stream_data_drained(stream, piece, end_stream=number == len(pieces))


class Client(QuicConnectionProtocol):
    """Downloads files, each over a stream."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.contents, self.waiting = {}, {}

    async def get(self, path):
        stream = self._quic.get_next_available_stream_id()
        done = asyncio.get_running_loop().create_future()
        self.waiting[stream], self.contents[stream] = done, bytearray()
        await self._quic.send_stream_data_drained(stream, f"GET /{path}\r\n".encode(), end_stream=True)
        return stream, done

    def quic_event_received(self, event):
        if isinstance(event, StreamDataReceived) and event.stream_id in self.contents:
            self.contents[event.stream_id] += event.data
            if event.end_stream and not self.waiting[event.stream_id].done():
                self.waiting[event.stream_id].set_result(None)
        elif isinstance(event, ConnectionTerminated):
            for done in self.waiting.values():
                if not done.done():
                    done.set_exception(ConnectionError(f"closed: {event.error_code} {event.reason_phrase}"))
        elif isinstance(event, StreamReset) and event.stream_id in self.waiting:
            self.waiting[event.stream_id].set_exception(ConnectionError("stream reset"))


def configuration(options, is_client):
    made = QuicConfiguration(is_client=is_client, alpn_protocols=["hq-interop"], idle_timeout=60.0)
    made.secrets_log_file = os.environ.get("SSLKEYLOGFILE")
    if options.case == "chacha20":
        made.cipher_suite = CHACHA20
    if options.case == "keyupdate":
        made.key_update_interval = KEY_UPDATE
    if options.case == "v2":
        made.supported_versions = [QUIC_V2, QUIC_V1]
    return made


def permit_multipath(server):
    """picoquic has it, and the package hands through no option for it."""
    context = ctypes.c_void_p.from_address(id(server._engine._transport) + CONTEXT_AT)
    picoquic = ctypes.CDLL(_transport.__file__)
    picoquic.picoquic_set_default_multipath_option.argtypes = (ctypes.c_void_p, ctypes.c_int)
    picoquic.picoquic_set_default_multipath_option(context, 1)


async def run_server(options):
    made = configuration(options, False)
    made.load_cert_chain(options.cert, options.key)
    Server.root = pathlib.Path(options.root)
    host, port = host_and_port(options.listen)
    server = await serve(host, port, configuration=made, create_protocol=Server, retry=options.case == "retry")
    if options.case == "multipath":
        permit_multipath(server)
    await until_stopped(options)
    server.close()


async def fetch(options, paths, made, wait=True):
    host, port = host_and_port(options.connect)
    async with connect(host, port, configuration=made, create_protocol=Client, wait_connected=wait) as client:
        running = [(path, *await client.get(path)) for path in paths]
        for path, stream, done in running:
            await done
            (pathlib.Path(options.output) / path.rpartition("/")[2]).write_bytes(client.contents[stream])
        await asyncio.sleep(0.1)  # a ticket may come behind the content


async def run_client(options):
    made = configuration(options, True)
    made.server_name, made.cafile = options.name, options.cacert
    paths = options.paths
    if options.case == "multiconnect":
        for path in paths:
            await fetch(options, [path], made)
    elif options.case in ("resumption", "zerortt"):
        made.session_ticket_file = options.output + ".tickets"
        await fetch(options, paths[:1], made)
        await fetch(options, paths[1:], made, wait=options.case == "resumption")
    else:
        await fetch(options, paths, made)


def main():
    options = arguments().parse_args()
    if options.case not in (SERVER if options.end == "server" else CLIENT):
        return NOT_OFFERED
    try:
        asyncio.run(run_server(options) if options.end == "server" else run_client(options))
    except (ConnectionError, OSError, TimeoutError) as error:
        return f"aiopquic_peer: {error!r}"
    return 0


if __name__ == "__main__":
    sys.exit(main())
