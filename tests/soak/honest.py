"""Honest clients of a soak: they check every byte of what they ask for, until SIGTERM, then report as JSON.

usage: honest.py PORT FOLDER SEED transfers|prompt

The prompt ones ask for a small file again and again, in a process of their own, so that no other client delays them.
"""

import asyncio
import collections
import hashlib
import json
import pathlib
import random
import signal
import statistics
import sys
import time

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3_ALPN, H3Connection, Setting
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, StreamReset

PATIENCE = 60  # seconds for one answer
IDLE = 10  # seconds; aioquic does not look at stateless resets, so that this is how a killed server is noticed
UPLOAD = 70_000_000
FILES = ["small", "20k", "20k", "1m", "10m"]
SLOW = "disk/slow"
RETRY = 0b1111  # the high bits of the first byte, in version 1


class Answer:
    """What came back for one request."""

    def __init__(self):
        self.status = None
        self.informational = []
        self.hash = hashlib.sha256()
        self.size = 0
        self.changed = asyncio.Event()
        self.is_over = False
        self.error = None

    def end(self, error=None):
        if not self.is_over:
            self.is_over, self.error = True, error
        self.changed.set()


class Client(QuicConnectionProtocol):
    """HTTP/3 on one connection."""

    max_field_section = None

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        limit = self.max_field_section

        class Http(H3Connection):
            def _get_local_settings(self):
                settings = super()._get_local_settings()
                return settings if limit is None else settings | {Setting.MAX_FIELD_SECTION_SIZE: limit}

        self.http = Http(self._quic)
        self.answers = {}

    def ask(self, method, path, headers=(), end=True):
        if self._closed.is_set():
            # aioquic would take the request, and no event would ever tell of its end.
            raise ConnectionError("the connection was closed before the request")
        stream = self._quic.get_next_available_stream_id()
        head = [(b":method", method), (b":scheme", b"https"), (b":authority", b"localhost"), (b":path", path), *headers]
        answer = self.answers[stream] = Answer()
        answer.stream = stream
        self.http.send_headers(stream, head, end_stream=end)
        self.transmit()
        return answer

    def quic_event_received(self, event):
        if isinstance(event, ConnectionTerminated):
            for answer in self.answers.values():
                answer.end(f"connection closed with {event.error_code:#x} {event.reason_phrase}")
        elif isinstance(event, StreamReset) and event.stream_id in self.answers:
            self.answers[event.stream_id].end(f"stream reset with {event.error_code:#x}")
        for happened in self.http.handle_event(event):
            self.on_http(happened)

    def on_http(self, event):
        answer = self.answers.get(event.stream_id)
        if answer is None:
            return
        if isinstance(event, HeadersReceived):
            status = int(dict(event.headers).get(b":status", b"0"))
            if 100 <= status < 200:
                answer.informational.append(status)
            elif status:
                answer.status = status
        elif isinstance(event, DataReceived):
            answer.hash.update(event.data)
            answer.size += len(event.data)
        if event.stream_ended:
            answer.end()
        answer.changed.set()


async def until(answer, condition, seconds=PATIENCE):
    """Waits until the condition holds, or the answer is over."""

    async def wait():
        while not answer.is_over and not condition():
            answer.changed.clear()
            await answer.changed.wait()

    try:
        await asyncio.wait_for(wait(), seconds)
    except asyncio.TimeoutError:
        raise ConnectionError(f"nothing more came for {seconds} s") from None
    if answer.error:
        raise ConnectionError(answer.error)


class Honest:
    """All honest clients and what became of them."""

    def __init__(self, port, folder, seed):
        self.port, self.folder = port, folder
        sources = {name: folder / "one" / name for name in FILES} | {SLOW: folder / "slow"}
        self.expected = {name: hashlib.sha256(source.read_bytes()).hexdigest() for name, source in sources.items()}
        self.times = collections.defaultdict(list)  # seconds of the whole answers, by kind
        self.bytes = 0
        self.failures = []
        self.chance = random.Random(seed)

    def configuration(self):
        made = QuicConfiguration(alpn_protocols=H3_ALPN, max_data=8 << 20, max_stream_data=8 << 20, idle_timeout=IDLE)
        made.load_verify_locations(str(self.folder / "ca.pem"))
        return made

    def connection(self, protocol=Client, port=None):
        # IPv6 and another address than the hostile clients have.
        return connect("::1", port or self.port, configuration=self.named(), create_protocol=protocol)

    def named(self):
        made = self.configuration()
        made.server_name = "localhost"
        return made

    def check(self, name, answer):
        if answer.status != 200:
            raise ConnectionError(f"/{name}: status {answer.status}")
        if answer.hash.hexdigest() != self.expected[name]:
            raise ConnectionError(f"/{name}: {answer.size} bytes, and not the right ones")
        self.bytes += answer.size

    async def attempt(self, what, work):
        """Runs one piece of work; what fails is written down with its times."""
        began = time.monotonic()
        told = {"what": what, "had_head": False}
        try:
            await asyncio.wait_for(work(told), 2 * PATIENCE)
        except (ConnectionError, OSError, asyncio.TimeoutError) as error:
            failure = {"why": str(error) or type(error).__name__, "from": began, "to": time.monotonic()}
            self.failures.append(told | failure)
            await asyncio.sleep(0.2)

    async def get(self, client, name, told):
        told["had_head"] = False
        began = time.monotonic()
        answer = client.ask(b"GET", f"/{name}".encode())
        await until(answer, lambda: answer.status is not None)
        told["had_head"] = answer.status is not None
        await until(answer, lambda: False)
        self.check(name, answer)
        self.times[told["what"]].append(time.monotonic() - began)
        told["had_head"] = False

    async def many_on_one(self, told):
        """A connection that lives for a while, so that restarts and kills meet it."""
        async with self.connection() as client:
            for _ in range(12):
                await self.get(client, self.chance.choice(FILES), told)
                await asyncio.sleep(self.chance.uniform(0, 0.5))

    async def at_once(self, told):
        async with self.connection() as client:
            names = [self.chance.choice(FILES[:4]) for _ in range(16)]
            parts = [dict(told) for _ in names]
            try:
                await asyncio.gather(*(self.get(client, name, part) for name, part in zip(names, parts)))
            finally:
                told["had_head"] = any(part["had_head"] for part in parts)

    async def slow(self, told):
        """A file that no cache has, on a disk that takes 300 ms for each read."""
        async with self.connection() as client:
            await self.get(client, SLOW, told)

    async def prompt(self, told):
        """A small file in memory: it waits for no disk."""
        async with self.connection() as client:
            for _ in range(200):
                await self.get(client, "small", told)
                await asyncio.sleep(0.05)

    async def small_head(self, told):
        """A client that takes no response head: the request must end all the same."""
        small = type("Small", (Client,), {"max_field_section": 40})
        async with self.connection(small) as client:
            began = time.monotonic()
            answer = client.ask(b"GET", b"/small")
            try:
                await until(answer, lambda: False, 10)
            except ConnectionError as error:
                if "stream reset" not in str(error):
                    raise
            self.times[told["what"]].append(time.monotonic() - began)

    async def upload(self, told):
        """More than the server takes: the answer must come, and the connection serve on."""
        async with self.connection() as client:
            answer = client.ask(b"POST", b"/small", [(b"content-length", str(UPLOAD).encode())], end=False)
            block = bytes(1 << 16)
            for _ in range(64):
                if answer.is_over:
                    break
                client._quic.send_stream_data(answer.stream, b"\x00\x80\x01\x00\x00" + block)
                client.transmit()
                await asyncio.sleep(0.01)
            await until(answer, lambda: answer.status is not None)
            if answer.status != 413:
                raise ConnectionError(f"status {answer.status}, not 413")
            await self.get(client, "small", told)

    async def expectation(self, told):
        async with self.connection() as client:
            headers = [(b"content-length", b"10"), (b"expect", b"100-continue")]
            answer = client.ask(b"POST", b"/bytes/10", headers, end=False)
            began = time.monotonic()
            await until(answer, lambda: answer.informational or answer.status is not None, 10)
            self.times[told["what"]].append(time.monotonic() - began)

    async def over_tcp(self, version, told):
        """curl, which shares no code with the server."""
        name = self.chance.choice(FILES)
        url = f"https://localhost:{self.port}/{name}"
        began = time.monotonic()
        command = ["curl", "--ipv6", "--silent", "--show-error", "--fail", version, "--max-time", str(PATIENCE)]
        command += ["--cacert", str(self.folder / "ca.pem"), url]
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe)
        out, complaint = await process.communicate()
        # 18: a partial file; 92: a stream was not closed cleanly.
        told["had_head"] = bool(out) or process.returncode in (18, 92)
        if process.returncode != 0:
            raise ConnectionError(complaint.decode().strip())
        if hashlib.sha256(out).hexdigest() != self.expected[name]:
            raise ConnectionError(f"/{name}: {len(out)} bytes, and not the right ones")
        self.bytes += len(out)
        self.times[told["what"]].append(time.monotonic() - began)

    async def rebound(self, told):
        """The client's port changes within the handshake, or within a download."""
        relay = Relay(self.port, self.chance.choice([1, 2, 3, 12]))
        await relay.open()
        try:
            async with self.connection(port=relay.port) as client:
                await self.get(client, "1m", told)
        finally:
            relay.close()

    def lanes(self, which):
        if which == "prompt":
            return {f"prompt {number}": self.prompt for number in range(4)}
        lanes = {
            "many on one": self.many_on_one, "many on one, too": self.many_on_one, "at once": self.at_once,
            "small head": self.small_head, "upload": self.upload, "expectation": self.expectation,
            "rebound": self.rebound,
        }
        lanes["HTTP/1.1"] = lambda told: self.over_tcp("--http1.1", told)
        lanes["HTTP/2"] = lambda told: self.over_tcp("--http2", told)
        if (self.folder / "one/disk").is_dir():
            lanes |= {f"slow disk {number}": self.slow for number in range(4)}
        return lanes

    async def run(self, which, stop):
        async def lane(what, work):
            while not stop.is_set():
                await self.attempt(what, work)
                await asyncio.sleep(0.05)

        await asyncio.gather(*(lane(what, work) for what, work in self.lanes(which).items()))

    def report(self):
        kinds = {}
        for kind, times in sorted(self.times.items()):
            times.sort()
            kinds[kind] = {
                "answers": len(times), "median_seconds": round(statistics.median(times), 4),
                "p99_seconds": round(times[len(times) * 99 // 100], 4), "slowest_seconds": round(times[-1], 4),
            }
        return {"bytes": self.bytes, "kinds": kinds, "failures": self.failures}


class Relay:
    """Passes datagrams on, and takes another port after so many of the client's."""

    def __init__(self, server, after):
        self.server, self.after = server, after

    async def open(self):
        loop = asyncio.get_running_loop()
        self.seen = 0
        self.client = None
        self.backs = []
        relay = self

        class Front(asyncio.DatagramProtocol):
            def datagram_received(self, data, address):
                relay.client = address
                relay.seen += 1
                back = relay.backs[0] if relay.seen <= relay.after else relay.backs[1]
                back.sendto(data)

        class Back(asyncio.DatagramProtocol):
            def datagram_received(self, data, _):
                if data[0] >> 4 == RETRY:
                    relay.seen = 0  # A Retry token is for one port (RFC 9000 section 8.1.4): what follows counts.
                # Only what comes to the newest port reaches the client, as behind a router that forgot the old one.
                if relay.client and (relay.seen <= relay.after or self.number == 1):
                    relay.front.sendto(data, relay.client)

            def error_received(self, _):
                pass

        self.front, _ = await loop.create_datagram_endpoint(Front, local_addr=("::1", 0))
        for number in range(2):
            transport, back = await loop.create_datagram_endpoint(Back, remote_addr=("::1", self.server))
            back.number = number
            self.backs.append(transport)
        self.port = self.front.get_extra_info("sockname")[1]

    def close(self):
        for transport in (self.front, *self.backs):
            transport.close()


async def main():
    port, folder, seed, which = sys.argv[1:]
    honest = Honest(int(port), pathlib.Path(folder), int(seed))
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await honest.run(which, stop)
    print(json.dumps(honest.report()))


if __name__ == "__main__":
    asyncio.run(main())
