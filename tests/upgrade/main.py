"""Reloads and upgrades one `tercel serve` again and again under load. No client may notice anything.

usage: main.py [--short] [--seconds S] [--changes N] [--workers 1,2] [--json FILE]

In each run: N reloads (SIGHUP) and N upgrades (SIGUSR2) in turn, spread over S seconds; by default 10 and 10 in 600, with one
worker and with two; --short: 60 seconds. Beside them, over HTTP/1.1, 2 and 3 each:

- paced downloads that last as long as several upgrades, each byte checked,
- one download after the other of 100 kB by a new connection, each byte checked,
- requests on connections that are kept (tercel load; h2load for HTTP/1.1 and 2), counted by their answers,
- downloads by clients that share no code with the server: curl, aioquic.

Exit code 0 if no request failed, no byte was wrong, and each process that was replaced has ended.
"""

import argparse
import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TERCEL = os.environ.get("TERCEL", str(ROOT / "target/release/tercel"))
SMALL = 100_000
PACED = 4_000_000  # bytes a second of a paced download at most
PATIENCE = 120  # seconds for a process to end or to be replaced
PERIOD = 65_521  # of generated bodies: crates/protocol/base/src/pattern.rs


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


class Server:
    """The server, and all processes that it has been."""

    def __init__(self, folder, workers):
        self.folder = folder
        root = folder / "root"
        root.mkdir()
        (root / "file").write_bytes(TWICE[:SMALL])
        self.said = folder / "said"
        self.ready = folder / "ready.json"
        command = [TERCEL, "serve", root, "--listen", "127.0.0.1:0", "--workers", workers, "--ready-file", self.ready]
        command += ["--access-log", folder / "access.log"]
        env = os.environ | {"XDG_DATA_HOME": str(folder / "data")}
        with open(self.said, "ab") as said:
            self.first = subprocess.Popen(
                list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said, env=env
            )
        self.wait(lambda: self.ready.exists(), "it does not start")
        told = json.loads(self.ready.read_text())
        self.port, self.certificate, self.processes = told["port"], told["certificate"], [told["pid"]]

    def wait(self, condition, what):
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > deadline:
                raise SystemExit(f"upgrade: {what}; see {self.said}:\n{self.said.read_text()[-2000:]}")
            time.sleep(0.02)

    def count(self, words):
        return self.said.read_text(errors="replace").count(words)

    def reload(self):
        before = self.count("reloaded: ")
        os.kill(self.processes[-1], signal.SIGHUP)
        self.wait(lambda: self.count("reloaded: ") > before, "it does not reload")

    def upgrade(self):
        """Returns the seconds until the new process serves."""
        before, began = self.count("tercel: upgraded: "), time.monotonic()
        os.kill(self.processes[-1], signal.SIGUSR2)
        self.wait(lambda: self.count("tercel: upgraded: ") > before, "it is not upgraded")
        seconds = time.monotonic() - began
        self.processes.append(json.loads(self.ready.read_text())["pid"])
        return seconds

    def running(self):
        return [process for process in self.processes if is_running(process)]

    def stop(self):
        """Ends the last one. Returns those that do not end."""
        if is_running(self.processes[-1]):
            os.kill(self.processes[-1], signal.SIGTERM)
        deadline = time.monotonic() + PATIENCE
        while self.running() and time.monotonic() < deadline:
            self.first.poll()
            time.sleep(0.05)
        left = self.running()
        for process in left:
            os.kill(process, signal.SIGKILL)
        self.first.wait(10)
        return left


def is_running(process):
    try:
        status = pathlib.Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return status.rsplit(") ", 1)[1][0] != "Z"


class Tally:
    """What clients of one kind found."""

    def __init__(self):
        self.lock = threading.Lock()
        self.requests = self.bytes = 0
        self.failures = []

    def add(self, requests, count, failure=None):
        with self.lock:
            self.requests += requests
            self.bytes += count
            if failure:
                self.failures.append(failure)


class Clients:
    """All that load the server until they are told to stop."""

    def __init__(self, server, seconds):
        self.server, self.seconds = server, seconds
        self.url = f"https://localhost:{server.port}"
        self.stop = threading.Event()
        self.tallies = {}
        self.threads = []

    def start(self):
        for http in "123":
            name = {"1": "HTTP/1.1", "2": "HTTP/2", "3": "HTTP/3"}[http]
            self.start_client(f"{name}, paced download", self.paced, http)
            self.start_client(f"{name}, new connections", self.short, http)
            self.start_client(f"{name}, kept connections", self.kept, http)
        if shutil.which("curl"):
            self.start_client("curl, HTTP/1.1", self.curl, "--http1.1")
            self.start_client("curl, HTTP/2", self.curl, "--http2")
        if shutil.which("h2load"):
            self.start_client("h2load, HTTP/1.1", self.h2load, "--h1")
            self.start_client("h2load, HTTP/2", self.h2load, None)
        try:
            import aioquic  # noqa: F401

            self.start_client("aioquic, HTTP/3", self.aioquic, None)
        except ImportError:
            print("upgrade: without aioquic; tests/setup installs it", file=sys.stderr)

    def start_client(self, name, work, option):
        tally = self.tallies[name] = Tally()

        def run():
            while not self.stop.is_set():
                work(tally, option)

        thread = threading.Thread(target=run, name=name)
        thread.start()
        self.threads.append(thread)

    def end(self):
        self.stop.set()
        for thread in self.threads:
            thread.join()

    def paced(self, tally, http):
        """One that is read slowly, for a fifth of the time of the run, or until the end of it."""
        size = int(PACED * max(10, self.seconds / 5))
        command = [TERCEL, "get", "-k", "-q", "--http", http, "-o", "-", f"{self.url}/bytes/{size}"]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        received, began, wrong = 0, time.monotonic(), None
        while data := process.stdout.read1(1 << 16):
            phase = received % PERIOD
            if wrong is None and data != (TWICE[phase:] + BLOCK)[: len(data)]:
                wrong = f"a byte near {received} is wrong"
            received += len(data)
            if not self.stop.is_set():
                time.sleep(max(0, began + received / PACED - time.monotonic()))
        complaint = process.stderr.read().decode(errors="replace").strip()
        if process.wait() != 0:
            wrong = wrong or complaint or f"exit code {process.returncode}"
        elif received != size:
            wrong = wrong or f"{received} bytes instead of {size}"
        tally.add(1, received, wrong)

    def short(self, tally, http):
        command = [TERCEL, "get", "-k", "-q", "--http", http, "--verify-pattern", f"{self.url}/bytes/{SMALL}"]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        tally.add(1, SMALL, done.stderr.strip() or "failed" if done.returncode else None)
        time.sleep(0.05)

    def kept(self, tally, http):
        command = [TERCEL, "load", "-k", "-q", "--json", "-c", "4", "-m", "1" if http == "1" else "4", "--http", http]
        command += ["--rate", "200", "-D", str(max(5, self.seconds / 6)), f"{self.url}/file"]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        try:
            told = json.loads(done.stdout)
        except ValueError:
            return tally.add(0, 0, done.stderr.strip() or "no result")
        failed = told["failed"] + told.get("not_begun", 0)
        why = f"{failed} of {told['succeeded'] + failed}: {told.get('failures')} {told.get('connection_failures')}"
        tally.add(told["succeeded"], told["succeeded"] * SMALL, why if failed else None)

    def curl(self, tally, version):
        command = ["curl", "--silent", "--show-error", "--fail", "-k", version, f"{self.url}/file"]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True)
        failure = done.stderr.decode(errors="replace").strip() if done.returncode else None
        if not failure and done.stdout != TWICE[:SMALL]:
            failure = "wrong bytes"
        tally.add(1, len(done.stdout), failure)
        time.sleep(0.05)

    def h2load(self, tally, option):
        """Bursts on a few connections."""
        command = ["h2load", "-n", "40", "-c", "4", "-m", "1" if option else "4", f"{self.url}/file"]
        command += [option] if option else []
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        line = next((line for line in done.stdout.splitlines() if line.startswith("requests: ")), "")
        numbers = {words.split()[1]: int(words.split()[0]) for words in line[10:].split(", ") if words}
        # It does not connect again where a server ends a connection in good order: what it has not sent then it counts as failed.
        succeeded = numbers.get("succeeded", 0)
        # Over HTTP/2 it may have sent requests that the server's GOAWAY leaves to another connection: those are done and not answered.
        answered = succeeded if option else numbers.get("done", 0)
        is_whole = line and numbers["started"] == numbers["done"] == answered
        failure = None if is_whole else line or done.stderr.strip() or "no result"
        tally.add(succeeded, succeeded * SMALL, failure)
        time.sleep(0.2)

    def aioquic(self, tally, _):
        script = ROOT / "tests/interop/aioquic_get.py"
        command = [sys.executable, script, "--cacert", self.server.certificate, f"{self.url}/bytes/{SMALL}"]
        done = subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL, capture_output=True, text=True)
        failure = None
        if done.returncode:
            failure = done.stderr.strip()[-300:] or "failed"
        elif hashlib.sha256(TWICE[:SMALL] if SMALL <= 2 * PERIOD else b"").hexdigest() not in done.stdout:
            failure = f"wrong bytes: {done.stdout[:300]}"
        tally.add(1, SMALL, failure)
        time.sleep(0.05)


def run(workers, options):
    with tempfile.TemporaryDirectory(prefix="tercel-upgrade-") as name:
        server = Server(pathlib.Path(name), workers)
        clients = Clients(server, options.seconds)
        took, most = [], 1
        try:
            clients.start()
            pause = options.seconds / (2 * options.changes + 1)
            for change in range(2 * options.changes):
                time.sleep(pause)
                if change % 2 == 0:
                    server.reload()
                else:
                    took.append(server.upgrade())
                most = max(most, len(server.running()))
                print(f"{workers} workers: {change + 1} of {2 * options.changes} changes", file=sys.stderr, flush=True)
            time.sleep(pause)
        finally:
            clients.end()
            left = server.stop()
        lines = (pathlib.Path(name) / "access.log").read_text().splitlines()
        bad = [line for line in lines if '" 200 ' not in line]
        return {
            "workers": workers, "seconds": options.seconds, "reloads": options.changes, "upgrades": options.changes,
            "clients": {
                kind: {"requests": tally.requests, "bytes": tally.bytes, "failures": tally.failures}
                for kind, tally in clients.tallies.items()
            },
            "slowest_upgrade_seconds": round(max(took), 3), "processes_at_a_time": most,
            "processes_that_did_not_end": len(left), "log_lines": len(lines), "log_lines_not_200": bad[:10],
            "said": [line for line in server.said.read_text().splitlines() if "warning" in line][:20],
        }


def table(runs):
    print("| workers | clients | requests | bytes | failed |\n|---|---|---|---|---|")
    for found in runs:
        for kind, clients in found["clients"].items():
            failed = len(clients["failures"])
            print(f"| {found['workers']} | {kind} | {clients['requests']} | {clients['bytes']} | {failed} |")
    for found in runs:
        print(
            f"\n{found['workers']} workers: {found['reloads']} reloads and {found['upgrades']} upgrades in {found['seconds']:.0f} s, the "
            f"slowest upgrade {found['slowest_upgrade_seconds']} s, {found['processes_at_a_time']} processes at a time at most, "
            f"{found['processes_that_did_not_end']} did not end, {found['log_lines']} lines in the access log, "
            f"{len(found['log_lines_not_200'])} of them not of status 200"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--changes", type=int, default=10)
    parser.add_argument("--workers", default="1,2")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    options.seconds = options.seconds or (60 if options.short else 600)
    runs = [run(workers, options) for workers in options.workers.split(",")]
    if options.json:
        options.json.write_text(json.dumps(runs, indent=1) + "\n")
    table(runs)
    faults = [
        f"{found['workers']} workers, {kind}: {failure}"
        for found in runs
        for kind, clients in found["clients"].items()
        for failure in clients["failures"]
    ]
    faults += [f"{kind}: no request" for found in runs for kind, of in found["clients"].items() if not of["requests"]]
    faults += [line for found in runs for line in found["log_lines_not_200"]]
    faults += ["processes did not end" for found in runs if found["processes_that_did_not_end"]]
    for fault in faults:
        print(f"fault: {fault}")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
