"""aioquic as an end of the cases: HTTP/0.9 over QUIC. Takes the arguments that all implementations take; see implementations.py."""

import asyncio
import os
import pathlib
import subprocess
import sys

from aioquic.asyncio import QuicConnectionProtocol, serve
from aioquic.asyncio.client import connect
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, StreamDataReceived, StreamReset
from aioquic.quic.packet import QuicProtocolVersion
from aioquic.tls import CipherSuite
from contract import CHANGE_AFTER, NOT_OFFERED, arguments, host_and_port, until_stopped

ALPN = ["hq-interop"]
SERVER = {"handshake", "transfer", "chacha20", "retry", "resumption", "zerortt", "multiconnect", "v2", "keyupdate"}
CLIENT = SERVER | {"connectionmigration"}
OTHERS = pathlib.Path(__file__).resolve().parents[1]
V1, V2 = QuicProtocolVersion.VERSION_1, QuicProtocolVersion.VERSION_2


class Server(QuicConnectionProtocol):
    """Answers `GET /path` by the file."""

    root = None

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.requests = {}

    def quic_event_received(self, event):
        if not isinstance(event, StreamDataReceived) or event.stream_id % 4:
            return
        request = self.requests.setdefault(event.stream_id, bytearray())
        request += event.data
        if event.end_stream:
            path = self.root / bytes(request).decode().split()[1].lstrip("/")
            self._quic.send_stream_data(event.stream_id, path.read_bytes(), end_stream=True)


class Client(QuicConnectionProtocol):
    """Downloads files, each over a stream."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.contents = {}
        self.waiting = {}
        self.received = 0
        self.on_change = None

    def get(self, path):
        stream = self._quic.get_next_available_stream_id()
        self.waiting[stream] = done = asyncio.get_running_loop().create_future()
        self.contents[stream] = bytearray()
        self._quic.send_stream_data(stream, f"GET /{path}\r\n".encode(), end_stream=True)
        self.transmit()
        return stream, done

    def quic_event_received(self, event):
        if isinstance(event, StreamDataReceived) and event.stream_id in self.contents:
            self.contents[event.stream_id] += event.data
            self.received += len(event.data)
            if self.on_change and self.received >= CHANGE_AFTER:
                change, self.on_change = self.on_change, None
                change(self)
            if event.end_stream and not self.waiting[event.stream_id].done():
                self.waiting[event.stream_id].set_result(None)
        elif isinstance(event, ConnectionTerminated):
            for done in self.waiting.values():
                if not done.done():
                    done.set_exception(ConnectionError(f"closed: {event.error_code} {event.reason_phrase}"))
        elif isinstance(event, StreamReset) and event.stream_id in self.waiting:
            self.waiting[event.stream_id].set_exception(ConnectionError("stream reset"))


def configuration(options, is_client):
    made = QuicConfiguration(is_client=is_client, alpn_protocols=ALPN)
    if log := os.environ.get("SSLKEYLOGFILE"):
        made.secrets_log_file = open(log, "a")
    if options.case == "chacha20":
        made.cipher_suites = [CipherSuite.CHACHA20_POLY1305_SHA256]
    if options.case == "v2":
        made.original_version, made.supported_versions = V1, [V2, V1]
    if options.case == "multiconnect":
        made.idle_timeout = 120.0
    return made


async def run_server(options):
    made = configuration(options, False)
    made.load_cert_chain(options.cert, options.key)
    Server.root = pathlib.Path(options.root)
    tickets = {}
    host, port = host_and_port(options.listen)
    await serve(
        host, port, configuration=made, create_protocol=Server, retry=options.case == "retry",
        session_ticket_fetcher=lambda label: tickets.pop(label, None),
        session_ticket_handler=lambda ticket: tickets.__setitem__(ticket.ticket, ticket),
    )
    await until_stopped(options)


def update_keys(client):
    client._quic.request_key_update()


def migrate(to):
    """Another socket, and another connection ID."""

    def change(client):
        async def move():
            loop = asyncio.get_running_loop()
            await loop.create_datagram_endpoint(lambda: client, local_addr=("::ffff:" + to, 0))
            client._quic.change_connection_id()
            client._quic.send_ping(1)
            client.transmit()

        client.moving = asyncio.ensure_future(move())

    return change


async def fetch(options, paths, made, tickets=None, wait=True):
    host, port = host_and_port(options.connect)
    keep = (lambda ticket: tickets.append(ticket)) if tickets is not None else None
    async with connect(
        host, port, configuration=made, create_protocol=Client, session_ticket_handler=keep,
        wait_connected=wait,
    ) as client:
        if options.case == "keyupdate":
            client.on_change = update_keys
        if options.case == "connectionmigration":
            client.on_change = migrate(options.migrate_to)
        running = [(path, *client.get(path)) for path in paths]
        for path, stream, done in running:
            await done
            (pathlib.Path(options.output) / path.rpartition("/")[2]).write_bytes(client.contents[stream])
        if tickets is not None and not made.session_ticket:
            async with asyncio.timeout(5):
                while not tickets:
                    await asyncio.sleep(0.01)


async def run_client(options):
    made = configuration(options, True)
    made.server_name = options.name
    made.load_verify_locations(options.cacert)
    paths = options.paths
    if options.case == "multiconnect":
        for path in paths:
            await fetch(options, [path], made)
    elif options.case in ("resumption", "zerortt"):
        tickets = []
        await fetch(options, paths[:1], made, tickets)
        made.session_ticket = tickets[0]
        await fetch(options, paths[1:], made, tickets, wait=options.case == "resumption")
    else:
        await fetch(options, paths, made)


def http3(options):
    """By the programs that the other cases have; bodies are written by number."""
    if options.end == "server":
        command = [sys.executable, OTHERS / "aioquic_serve.py", options.root, "--listen", options.listen]
        command += ["--ready-file", options.ready_file, "--cert", options.cert, "--key", options.key]
        os.execv(sys.executable, list(map(str, command)))
    command = [sys.executable, OTHERS / "aioquic_get.py", "--cacert", options.cacert, "--output-dir", options.output]
    command += [f"https://{options.connect}/{path}" for path in options.paths]
    code = subprocess.run(list(map(str, command)), stdout=subprocess.DEVNULL).returncode
    for number, path in enumerate(options.paths):
        os.rename(os.path.join(options.output, str(number)), os.path.join(options.output, path))
    return code


def main():
    options = arguments().parse_args()
    if options.case == "http3":
        return http3(options)
    if options.case not in (SERVER if options.end == "server" else CLIENT):
        return NOT_OFFERED
    try:
        asyncio.run(run_server(options) if options.end == "server" else run_client(options))
    except (ConnectionError, OSError, TimeoutError) as error:
        return f"aioquic_peer: {error!r}"
    return 0


if __name__ == "__main__":
    sys.exit(main())
