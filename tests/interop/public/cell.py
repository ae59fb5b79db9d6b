"""One run of a case: a network, a server, a client, two captures, a judgement.

All processes of a run end with it, by their id, and with the runner itself if that is killed. The namespaces vanish with `tercel lab`.
"""

import concurrent.futures
import contextlib
import ctypes
import dataclasses
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import tempfile
import threading
import time

from implementations import TERCEL
from judge import Failure, expect, opened
from strain import Strain
from trace import PORT, Trace

NOT_OFFERED = 127
SECOND_ADDRESS = "198.18.0.3"  # where a client moves, or has a second path
LAB = os.environ.get("TERCEL_LAB", TERCEL)
# Of a capture's buffer: seconds of the links here. The kernel clears it when the capture begins, and nothing else runs on that core meanwhile: 150 ms
# for 64 MiB on a slow machine.
CAPTURE_MIB = "8"


@dataclasses.dataclass
class Outcome:
    """What a run has come to: passed, failed or not offered, and why."""

    result: str
    reason: str = ""
    seconds: float = 0.0
    late: float = 0.0  # seconds: the longest for which the machine kept the link or a process waiting

    @property
    def passed(self):
        return self.result == "passed"


def die_with_parent():
    os.setsid()
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


@dataclasses.dataclass
class Helpers:
    """What all runs share."""

    judges: concurrent.futures.Executor
    strain: Strain
    # Programs that start need the processor most: one run at a time does that.
    starts: threading.Lock = dataclasses.field(default_factory=threading.Lock)


class Processes(contextlib.AbstractContextManager):
    """Those that a run has started; the last one ends first."""

    everywhere = set()
    no_more = threading.Event()

    @classmethod
    def kill_all(cls):
        """Ends the processes of all runs at once, and lets none start."""
        cls.no_more.set()
        for process in list(cls.everywhere):
            process.kill()

    def __init__(self, folder):
        self.folder = folder
        self.running = []

    def start(self, name, command, env=None, output=None):
        expect(not self.no_more.is_set(), "interrupted")
        with open(self.folder / f"{name}.log", "wb") as log:
            process = subprocess.Popen(
                list(map(str, command)), stdin=subprocess.DEVNULL, stdout=output or log, stderr=log,
                env=os.environ | (env or {}), preexec_fn=die_with_parent,
            )
        self.running.append(process)
        self.everywhere.add(process)
        if self.no_more.is_set():
            process.kill()
        return process

    def stop(self, process, number=signal.SIGTERM):
        if process.poll() is None:
            process.send_signal(number)
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def __exit__(self, *_):
        for process in reversed(self.running):
            self.stop(process)
            self.everywhere.discard(process)
            if process.stdout:
                process.stdout.close()


def tail(path):
    return " ".join(path.read_text(errors="replace").split())[-300:] if path.exists() else ""


class Run:
    """A case with two implementations, in a folder of its own."""

    def __init__(self, case, server, client, certificates, seed, helpers):
        self.case, self.server, self.client, self.seed, self.helpers = case, server, client, seed, helpers
        self.late = 0.0
        self.certificates = certificates / str(case.certificates)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tercel-interop-"))
        self.root, self.output = self.folder / "www", self.folder / "downloads"

    def carry_out(self, keep=None):
        """The outcome. The folder is removed, or moved to `keep` if the run fails."""
        began = time.monotonic()
        try:
            outcome = self.attempt()
        except Failure as failure:
            outcome = Outcome("failed", str(failure))
        except Exception as error:  # what the runner itself stumbles over is no peer's fault, and must be seen
            outcome = Outcome("failed", f"the runner: {error!r}")
        outcome.seconds, outcome.late = time.monotonic() - began, self.late
        if outcome.result == "failed" and keep and not Processes.no_more.is_set():
            keep.mkdir(parents=True, exist_ok=True)
            kept = keep / f"{self.case.name}-{self.server.name}-{self.client.name}-{self.seed}"
            shutil.rmtree(kept, ignore_errors=True)
            shutil.move(self.folder, kept)
        else:
            shutil.rmtree(self.folder, ignore_errors=True)
        return outcome

    def attempt(self):
        names = self.make_files()
        with Processes(self.folder) as processes:
            with self.helpers.starts:
                began = time.monotonic()
                server, captures = self.start_server(processes)
                if self.wait_until_ready(server) == NOT_OFFERED:
                    return Outcome("not offered", "by the server")
                client = processes.start("client", [*self.inside("client"), *self.client_command(names)], self.env("client"))
            try:
                code = client.wait(self.case.timeout)
            except subprocess.TimeoutExpired:
                code = None
            if code == NOT_OFFERED:
                return Outcome("not offered", "by the client")
            time.sleep(0.3)  # what the kernel has not handed over to the captures yet
            processes.stop(server)
            for capture in captures:
                processes.stop(capture, signal.SIGINT)
            self.late = max(self.stop_lab(processes), self.helpers.strain.worst_since(began))
        expect(code is not None, f"not done within {self.case.timeout} s; client: {tail(self.folder / 'client.log')}")
        expect(code == 0, f"the client ended with {code}: {tail(self.folder / 'client.log')}; server: {tail(self.folder / 'server.log')}")
        self.compare(names)
        self.judge()
        return Outcome("passed")

    def make_files(self):
        self.root.mkdir()
        self.output.mkdir()
        source, names = random.Random(self.seed), []
        for size in self.case.files:
            name = "".join(source.choices("abcdefghijklmnopqrstuvwxyz", k=250 if self.case.long_names else 10))
            (self.root / name).write_bytes(source.randbytes(size))
            names.append(name)
        return names

    def start_server(self, processes):
        """The lab, the captures and the server."""
        self.lab = self.start_lab(processes)
        if self.case.second_address:
            add = ["ip", "address", "add", f"{SECOND_ADDRESS}/24", "dev", "client0"]
            subprocess.run([*self.inside("client"), *add], check=True)
        captures = [self.capture(processes, side) for side in ("server", "client")]
        self.wait_for_captures(captures)
        server = processes.start("server", [*self.inside("server"), *self.server_command()], self.env("server"))
        return server, captures

    def inside(self, side):
        return ["nsenter", f"--net={self.lab['sides'][side]['namespace']}"]

    def start_lab(self, processes):
        command = [LAB, "lab", "--json", "--no-udp-segmentation", "--seed", self.seed, *self.case.network]
        lab = processes.start("lab", command, output=subprocess.PIPE)
        line = lab.stdout.readline()
        expect(line, f"tercel lab does not start: {tail(self.folder / 'lab.log')}")
        return json.loads(line)

    def capture(self, processes, side):
        path = self.folder / f"{side}.pcap"
        command = [*self.inside(side), "dumpcap", "-q", "-P", "-i", f"{side}0", "-B", CAPTURE_MIB, "-f", f"udp port {PORT}", "-w", path]
        return processes.start(f"capture-{side}", command)

    def wait_for_captures(self, captures):
        deadline = time.monotonic() + 10
        for path in (self.folder / "server.pcap", self.folder / "client.pcap"):
            while not (path.exists() and path.stat().st_size > 0):
                ended = any(process.poll() is not None for process in captures)
                expect(not ended and time.monotonic() < deadline, "dumpcap does not capture")
                time.sleep(0.02)

    def stop_lab(self, processes):
        """How late the link was at worst, in seconds. A frame that the kernel dropped before the emulator could read it is as late as can be."""
        lab = processes.running[0]
        processes.stop(lab, signal.SIGINT)
        link = json.loads(lab.stdout.readline() or "{}").get("link", {})
        if any(direction["missed"] for direction in link.values()):
            return float("inf")
        return max((direction.get("worst_late_us", 0) for direction in link.values()), default=0) / 1e6

    def address(self):
        side = self.lab["sides"]["server"]
        return f"[{side['ipv6']}]:{PORT}" if self.case.ipv6 else f"{side['ipv4']}:{PORT}"

    def server_command(self):
        command = [*self.server.command, "server", "--case", self.case.of_server, "--listen", self.address()]
        command += ["--cert", self.certificates / "cert.pem", "--key", self.certificates / "key.pem"]
        return command + ["--root", self.root, "--ready-file", self.folder / "ready.json"]

    def client_command(self, names):
        command = [*self.client.command, "client", "--case", self.case.of_client, "--connect", self.address()]
        command += ["--name", "server", "--cacert", self.certificates / "ca.pem", "--output", self.output]
        if self.case.second_address:
            command += ["--migrate-to", SECOND_ADDRESS]
        return command + names

    def env(self, side):
        return {"SSLKEYLOGFILE": str(self.folder / f"{side}.keys")}

    def wait_until_ready(self, server):
        deadline = time.monotonic() + 20
        while not (self.folder / "ready.json").exists():
            if server.poll() == NOT_OFFERED:
                return NOT_OFFERED
            expect(server.poll() is None, f"the server ended with {server.poll()}: {tail(self.folder / 'server.log')}")
            expect(time.monotonic() < deadline, f"the server does not get ready: {tail(self.folder / 'server.log')}")
            time.sleep(0.02)
        return None

    def compare(self, names):
        for name in names:
            got = self.output / name
            expect(got.exists(), f"file {name[:20]} was not downloaded; client: {tail(self.folder / 'client.log')}")
            expect(got.read_bytes() == (self.root / name).read_bytes(), f"file {name[:20]} differs")

    def judge(self):
        # In a process of another priority: the time of a judge must not be missed by the ends of other runs.
        if said := self.helpers.judges.submit(verdict, self.case.name, self.folder).result():
            raise Failure(said)


def verdict(name, folder):
    """What of a case's conditions the trace in a folder does not meet; None if it meets all."""
    from cases import BY_NAME

    trace = Trace(folder / "client.pcap", folder / "server.pcap", [folder / f"{side}.keys" for side in ("server", "client")])
    try:
        opened(trace)
        for condition in BY_NAME[name].conditions:
            condition(trace)
    except Failure as failure:
        return str(failure)
    return None


def begin_to_judge():
    """Of a process that judges: it lets the runs go first, and an interrupt is for the runner."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    os.nice(5)
