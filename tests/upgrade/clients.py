"""Clients that load a server until they are told to stop, and what they found."""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import chromium

ROOT = pathlib.Path(__file__).resolve().parents[2]
TERCEL = os.environ.get("TERCEL", str(ROOT / "target/release/tercel"))
SMALL = 100_000
PACED = 4_000_000  # bytes a second of a paced download at most
PERIOD = 65_521  # of generated bodies: crates/protocol/base/src/pattern.rs
LONGEST = 120  # seconds that a client may take beyond what it is asked for
NAMES = {"1": "HTTP/1.1", "2": "HTTP/2", "3": "HTTP/3"}
CURL_CONNECT, CURL_STATUS = 7, 22  # exit codes of curl: no connection, and a status that is no success


def pattern():
    """One period of the bytes of generated bodies: SplitMix64 from zero."""
    mask = (1 << 64) - 1
    out = bytearray()
    for index in range(1, PERIOD // 8 + 2):
        mixed = index * 0x9E3779B97F4A7C15 & mask
        mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9 & mask
        mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB & mask
        out += (mixed ^ (mixed >> 31)).to_bytes(8, "little")
    return bytes(out[:PERIOD])


BLOCK = pattern()
TWICE = BLOCK + BLOCK


class Tally:
    """What clients of one kind found. Of the requests that failed some were broken off with their connection, or had wrong bytes."""

    def __init__(self):
        self.lock = threading.Lock()
        self.requests = self.bytes = self.failed = self.broken = self.wrong = self.not_repeated = 0
        self.failures = []

    def add(self, requests, count, failure=None, failed=1, kind="failed"):
        """`kind` of a failure: failed, broken, wrong."""
        with self.lock:
            self.requests += requests
            self.bytes += count
            if failure:
                self.failed += failed
                self.broken += failed if kind == "broken" else 0
                self.wrong += failed if kind == "wrong" else 0
                self.failures.append(failure)

    def told(self):
        return {name: value for name, value in vars(self).items() if name != "lock"}


def kind_of(complaint):
    """By what `tercel get` says."""
    if "differ" in complaint or "pattern" in complaint:
        return "wrong"
    return "failed" if "status" in complaint or "refused" in complaint else "broken"


def run(command, patience):
    """The command, done; killed if it takes longer."""
    command = list(map(str, command))
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=patience + LONGEST)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, -9, b"", b"it did not end")


def text(output):
    return output.decode(errors="replace").strip()


class Clients:
    """All that load the server until they are told to stop."""

    def __init__(self, server, seconds, changes):
        self.server, self.seconds, self.changes = server, seconds, changes
        self.url = f"https://{server.address}:{server.port}"
        self.stop = threading.Event()
        self.tallies = {}
        self.threads = []

    def start(self):
        for http in self.server.versions:
            name = NAMES[http]
            self.start_client(f"{name}, paced download", self.paced, http)
            self.start_client(f"{name}, new connections", self.short, http)
            self.start_client(f"{name}, kept connections", self.kept, http)
        if shutil.which("curl"):
            self.start_client("curl, HTTP/1.1", self.curl, "--http1.1")
            self.start_client("curl, HTTP/2", self.curl, "--http2")
            self.start_client("curl, HTTP/2, kept connections", self.curl_kept, "--http2")
        if shutil.which("h2load"):
            self.start_client("h2load, HTTP/1.1", self.h2load, "--h1")
            self.start_client("h2load, HTTP/2", self.h2load, None)
        if "3" in self.server.versions:
            self.start_aioquic()
        if chromium.find():
            for http in set(self.server.versions) & set("23"):
                self.start_client(f"Chromium, {NAMES[http]}", self.chromium, http)
        else:
            print("upgrade: without Chromium (Debian: apt-get install chromium-headless-shell)", file=sys.stderr)

    def start_aioquic(self):
        try:
            import aioquic  # noqa: F401

            self.start_client("aioquic, HTTP/3", self.aioquic, None)
        except ImportError:
            print("upgrade: without aioquic; tests/setup installs it", file=sys.stderr)

    def start_client(self, name, work, option):
        tally = self.tallies[name] = Tally()

        def work_on():
            while not self.stop.is_set():
                before = tally.failed
                try:
                    work(tally, option)
                except Exception as error:  # A client that ends would be a load that nobody misses.
                    tally.add(1, 0, f"{type(error).__name__}: {error}")
                if tally.failed > before:
                    self.stop.wait(0.2)

        thread = threading.Thread(target=work_on, name=name)
        thread.start()
        self.threads.append(thread)

    def end(self):
        self.stop.set()
        for thread in self.threads:
            thread.join()

    def paced_size(self):
        return paced_size(self.seconds)

    def paced(self, tally, http):
        """One that is read slowly, for a fifth of the time of the run, or until the end of it."""
        size = self.paced_size()
        command = [TERCEL, "get", "-k", "-q", "--http", http, "-o", "-", f"{self.url}/bytes/{size}"]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        killer = threading.Timer(size / PACED + LONGEST, process.kill)
        killer.start()
        received, began, wrong = 0, time.monotonic(), None
        while data := process.stdout.read1(1 << 16):
            phase = received % PERIOD
            if wrong is None and data != (TWICE[phase:] + BLOCK)[: len(data)]:
                wrong = f"a byte near {received} is wrong"
            received += len(data)
            if not self.stop.is_set():
                time.sleep(max(0, began + received / PACED - time.monotonic()))
        complaint = text(process.stderr.read())
        failure, kind = wrong, "wrong"
        if process.wait() != 0:
            failure, kind = failure or complaint or f"exit code {process.returncode}", kind if wrong else kind_of(complaint)
        elif received != size:
            failure = failure or f"{received} bytes instead of {size}"
        killer.cancel()
        tally.add(1, received, failure, kind=kind)

    def short(self, tally, http):
        command = [TERCEL, "get", "-k", "-q", "--http", http, "--verify-pattern", f"{self.url}/bytes/{SMALL}"]
        done = run(command, 0)
        complaint = text(done.stderr) or "failed"
        tally.add(1, SMALL, complaint if done.returncode else None, kind=kind_of(complaint))
        time.sleep(0.05)

    def kept(self, tally, http):
        command = [TERCEL, "load", "-k", "-q", "--json", "-c", "4", "-m", "1" if http == "1" else "4", "--http", http]
        span = max(5, self.seconds / 6)
        done = run([*command, "--rate", "200", "-D", span, f"{self.url}/file"], span)
        try:
            told = json.loads(done.stdout)
        except ValueError:
            return tally.add(1, 0, text(done.stderr) or "no result")
        failed = told["failed"] + told.get("not_begun", 0)
        broken = sum(told["connection_failures"].values())
        why = f"{failed} of {told['succeeded'] + failed}: {told.get('failures')} {told.get('connection_failures')}"
        tally.add(told["succeeded"] + failed, told["succeeded"] * SMALL)
        # A connection that breaks may carry no request, or several.
        if broken:
            tally.add(0, 0, why, broken, "broken")
        if failed > broken:
            tally.add(0, 0, why, failed - broken)

    def curl(self, tally, version):
        done = run(["curl", "--silent", "--show-error", "--fail", "-k", version, f"{self.url}/file"], 0)
        self.add_curl(tally, done.returncode, done.stdout, text(done.stderr))
        time.sleep(0.05)

    def add_curl(self, tally, code, content, complaint):
        failure, kind = None, "failed" if code in (CURL_CONNECT, CURL_STATUS) else "broken"
        if code:
            failure = complaint or f"exit code {code}"
        elif content != TWICE[:SMALL]:
            failure, kind = "wrong bytes", "wrong"
        tally.add(1, len(content), failure, kind=kind)

    def curl_kept(self, tally, version):
        """Forty requests, four at a time, on as few connections as may be. curl sends again what a GOAWAY has left to another connection."""
        with tempfile.TemporaryDirectory(prefix="tercel-curl-") as folder:
            command = ["curl", "--silent", "--fail", "-k", version, "--parallel", "--parallel-max", "4", "--limit-rate", "4M"]
            command += ["--write-out", "%{exitcode} %{filename_effective}\n", "-o", f"{folder}/#1"]
            done = run([*command, f"{self.url}/file?[1-40]"], 0)
            told = dict(line.split(" ", 1)[::-1] for line in text(done.stdout).splitlines())
            for number in range(1, 41):
                path = pathlib.Path(folder) / str(number)
                code = int(told.get(str(path), done.returncode or -1))
                self.add_curl(tally, code, path.read_bytes() if path.exists() else b"", f"exit code {code}")

    def h2load(self, tally, option):
        """Bursts on a few connections.

        It counts: `done` less `succeeded`, streams that were closed without an answer; `started` less `done`, streams that were open when
        their connection ended; `total` less `started`, what it had no connection for any more, as it makes a new one for HTTP/1.1 only
        where a server says `Connection: close`. Over HTTP/2 it does not repeat what a GOAWAY has left to another connection, and closes such
        a stream like any other: where a process was replaced during the burst, those are told apart as `not repeated`.
        """
        command = ["h2load", "-n", "40", "-c", "4", "-m", "1" if option else "4", f"{self.url}/file"]
        command += [option] if option else []
        began = time.monotonic()
        done = run(command, 0)
        ended = time.monotonic()
        line = next((line for line in text(done.stdout).splitlines() if line.startswith("requests: ")), "")
        numbers = {words.split()[1]: int(words.split()[0]) for words in line[10:].split(", ") if words}
        if not numbers:
            return tally.add(1, 0, text(done.stderr) or "no result")
        closed, cut = numbers["done"] - numbers["succeeded"], numbers["started"] - numbers["done"]
        never = numbers["total"] - numbers["started"]
        tally.add(numbers["started"], numbers["succeeded"] * SMALL)
        if cut:
            tally.add(0, 0, line, cut, "broken")
        if self.was_replaced(began, ended):
            tally.not_repeated += never + (closed if not option else 0)
            closed = closed if option else 0
        elif never:
            tally.add(never, 0, f"no connection: {line}", never)
        if closed:
            tally.add(0, 0, line, closed)
        time.sleep(0.2)

    def was_replaced(self, began, ended):
        """Whether a change was under way, or had just been, between two times."""
        return any(start <= ended and began <= end + 1 for start, end in self.changes())

    def aioquic(self, tally, _):
        script = ROOT / "tests/interop/aioquic_get.py"
        done = run([sys.executable, script, "--cacert", self.server.certificate, f"{self.url}/bytes/{SMALL}"], 0)
        failure, kind = None, "broken"
        if done.returncode:
            failure = text(done.stderr)[-300:] or "failed"
        elif hashlib.sha256(TWICE[:SMALL]).hexdigest() not in text(done.stdout):
            failure, kind = f"wrong bytes: {text(done.stdout)[:300]}", "wrong"
        tally.add(1, SMALL, failure, kind=kind)
        time.sleep(0.05)

    def chromium(self, tally, http):
        """One browser for as long as it lives: paced downloads, and small requests beside them."""
        size = self.paced_size()
        browser = chromium.Browser(
            f"https://localhost:{self.server.port}", self.server.address, self.server.certificate, http
        )
        try:
            while not self.stop.is_set():
                patience, began = size / PACED + LONGEST, time.monotonic()
                found = browser.download(size, PACED, PERIOD, SMALL, patience)
                tally.add(found["requests"], found["bytes"])
                # As with h2load: where no process was replaced meanwhile, they are failures as others.
                left = len(found["unsent"]) if self.was_replaced(began, time.monotonic()) else 0
                for kind, failure in found["failures"]:
                    if left and kind == "broken" and failure.startswith("/file: TypeError"):
                        tally.not_repeated, left = tally.not_repeated + 1, left - 1
                    else:
                        tally.add(0, 0, f"{failure}; {'; '.join(found['why'])}", kind=kind)
                others = set(found["protocols"]) - {"", f"h{http}"}
                if others:
                    tally.add(0, 0, f"it spoke {', '.join(others)}")
        finally:
            browser.close()


def paced_size(seconds):
    return int(PACED * max(10, seconds / 5))
