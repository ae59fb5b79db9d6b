"""Soaks one `tercel serve`: honest clients check every byte while hostile ones, signals and restarts do their worst.

All at once: windows of one byte, heads and handshakes that dribble over each version of HTTP, floods of handshakes, garbage,
reloads, rotated logs, a log on a full disk, a file on a disk that takes 300 ms a read, a small budget, a root
that a deploy switches, restarts by SIGTERM and by SIGKILL, and clients whose port changes within the handshake.

Exit code 0 if no honest client was failed. A failure is excused only if the server was down when the client began, or if
SIGKILL cut it; then it must be told within a few seconds. Small files must come at once while others wait for the slow disk,
slow clients must be ended in time, and each line of the log must be there or be told as lost.
"""

import argparse
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "interop"))

from disks import Disks  # noqa: E402
from peers import TERCEL, free_port  # noqa: E402
from workshop import CACHE, KB, MB, make_certificate, sha256  # noqa: E402

FILES = {"small": 3, "20k": 20 * KB, "1m": MB, "10m": 10 * MB}
MEMORY = 32 * MB  # of the server
RESIDENT_LIMIT = MEMORY + 192 * MB  # budget, code, stacks and what the allocator keeps
TOLD_WITHIN = 15.0  # seconds from the server's return to the end of what its absence cut: the clients' idle timeout, and some
SEEN_WITHIN = 5.0  # seconds from a deploy to its sight
PROMPT = 0.1  # seconds for a small file, in the median, while others wait for the disk
# What a minute brings is judged at its end, so a client that stops reading within one is borne for nearly two.
HELD = {"TLS": 15, "reads nothing": 130, "HTTP/2 hoard": 75}  # seconds that a slow client is borne, and some
HELD_OTHERWISE = 45
LINES_CUT = 100  # lines of the log that SIGKILL may take: those of a quarter of a second


class Server:
    """The server under test, always on the same port."""

    def __init__(self, folder, root):
        self.folder, self.root = folder, root
        self.port = free_port("::")
        self.process = None
        self.outages = []  # {"kind", "from", "to"}, in seconds of the monotonic clock
        self.said = open(folder / "server.stderr", "ab")

    def start(self):
        ready = self.folder / "ready.json"
        ready.unlink(missing_ok=True)
        command = [TERCEL, "serve", self.root, "--listen", f"[::]:{self.port}", "--workers", "2"]
        command += ["--cert", self.folder / "cert.pem", "--key", self.folder / "key.pem", "--ready-file", ready]
        command += ["--access-log", self.folder / "log/access.log", "--state-dir", self.folder / "state"]
        # Hoarders keep a drain waiting for a minute; nothing honest here takes ten seconds.
        command += ["--memory", f"{MEMORY // MB}MB", "--drain-timeout", "15"]
        self.process = subprocess.Popen(
            list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.said
        )
        deadline = time.monotonic() + 20
        while not ready.exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"soak: the server does not start; see {self.folder}/server.stderr")
            time.sleep(0.02)

    def restart(self, kind):
        """Ends the server by `kind` and starts it again. Returns the seconds that its end took."""
        began = time.monotonic()
        self.process.send_signal(kind)
        self.outages.append({"kind": kind.name, "from": began, "to": began + 3600})
        code = self.process.wait(120)
        ended = time.monotonic()
        if kind == signal.SIGTERM and code != 0:
            raise SystemExit(f"soak: the server ended with {code} after SIGTERM")
        self.start()
        self.outages[-1]["to"] = time.monotonic()
        return ended - began

    def resident(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS"))

    def is_alive(self):
        return self.process.poll() is None


def make_root(folder):
    """Two releases with the same files, and a link to one of them."""
    for release in ("one", "two"):
        place = folder / release
        place.mkdir()
        for name, size in FILES.items():
            (place / name).write_bytes(random.Random(name).randbytes(size))
        (place / "release").write_text(release)
    os.symlink("one", folder / "current")
    return folder / "current"


def deploy(folder, release):
    """Switches the link as deployments do: in one step."""
    os.symlink(release, folder / "next")
    os.replace(folder / "next", folder / "current")


def start_clients(script, server, folder, *more):
    command = [sys.executable, HERE / script, server.port, folder, *more]
    return subprocess.Popen(
        list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=open(folder / f"{script}.stderr", "ab"), text=True,
    )


def seen_release(server):
    """What the server says the release is, asked by an independent client; None while it is away."""
    url = f"https://localhost:{server.port}/release"
    command = ["curl", "--ipv6", "--silent", "--max-time", "5", "--cacert", server.folder / "ca.pem", url]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else None


class Soak:
    """One soak: what happens when, and what was found."""

    def __init__(self, options, folder):
        self.options = options
        self.folder = folder
        self.server = Server(folder, make_root(folder))
        self.disks = Disks(folder)
        self.faults = []
        self.peak = 0
        self.drains = []
        self.deploys = self.fills = 0

    def run(self):
        if not self.options.no_disks:
            self.disks.mount()
        self.server.start()
        honest = ["honest.py", self.server, self.folder, self.options.seed]
        clients = [start_clients(*honest, "transfers"), start_clients(*honest, "prompt")]
        clients += [start_clients("hostile.py", self.server, self.folder)]
        try:
            self.disturb(time.monotonic() + self.options.seconds)
        finally:
            # The honest ones end first, so that all that they began is done while the others go on.
            reports = [self.end(client) for client in clients]
            self.server.process.send_signal(signal.SIGTERM)
            self.server.process.wait(120)
        return self.judge(*reports)

    def end(self, client):
        client.send_signal(signal.SIGTERM)
        return json.loads(client.communicate(timeout=180)[0] or "null")

    def close(self):
        self.disks.close()

    def disturb(self, until):
        """Reloads, deploys and restarts, in turn."""
        turn = 0
        while time.monotonic() < until:
            turn += 1
            for _ in range(5):
                time.sleep(min(1.0, max(0.0, until - time.monotonic())))
                self.peak = max(self.peak, self.server.resident())
                if not self.server.is_alive():
                    raise SystemExit("soak: the server is gone")
                self.server.process.send_signal(signal.SIGHUP)
            if turn % 4 == 1 and not self.options.no_disks:
                self.disks.fill()
                self.fills += 1
            self.rotate(turn)
            self.switch(("one", "two")[turn % 2])
            if turn % 4 == 0:
                kind = (signal.SIGTERM, signal.SIGKILL)[turn // 4 % 2]
                seconds = self.server.restart(kind)
                if kind == signal.SIGTERM:
                    self.drains.append(seconds)
            print(f"{until - time.monotonic():6.0f} s to go, {self.peak / MB:.0f} MB at most", file=sys.stderr, flush=True)

    def rotate(self, turn):
        os.rename(self.folder / "log/access.log", self.folder / f"log/access.{turn}.log")
        self.server.process.send_signal(signal.SIGUSR1)

    def switch(self, release):
        deploy(self.folder, release)
        self.deploys += 1
        deadline = time.monotonic() + SEEN_WITHIN
        while (seen := seen_release(self.server)) != release:
            if time.monotonic() > deadline:
                self.faults.append(f"{SEEN_WITHIN:.0f} s after a deploy the server shows {seen!r}, not {release!r}")
                return
            time.sleep(0.1)

    def judge(self, transfers, prompt, hostile):
        failures = transfers["failures"] + prompt["failures"]
        not_excused = [failure for failure in failures if not self.is_excused(failure)]
        for failure in not_excused:
            self.faults.append(self.describe(failure))
        if self.peak > RESIDENT_LIMIT:
            self.faults.append(f"{self.peak / MB:.0f} MB were resident; {RESIDENT_LIMIT / MB:.0f} MB are the limit")
        for kind, found in prompt["kinds"].items():
            if found["median_seconds"] > PROMPT:
                self.faults.append(f"{kind}: {found['median_seconds']} s for a small file in memory")
        for kind, seconds in hostile["held_seconds"].items():
            if seconds > HELD.get(kind, HELD_OTHERWISE):
                self.faults.append(f"a slow client ({kind}) was borne for {seconds} s")
        kinds = transfers["kinds"] | prompt["kinds"]
        answers = sum(kind["answers"] for kind in kinds.values())
        return {
            "seconds": self.options.seconds, "answers": answers, "bytes": transfers["bytes"] + prompt["bytes"],
            "kinds": kinds, "excused": len(failures) - len(not_excused), "hostile": hostile,
            "log": self.judge_log(transfers["kinds"] | prompt["kinds"]), "memory_bytes": MEMORY,
            "peak_resident_bytes": self.peak, "restarts": len(self.server.outages), "drain_seconds": self.drains,
            "deploys": self.deploys, "faults": self.faults,
        }

    def judge_log(self, kinds):
        """Each whole answer has its line, or is one of those that are told as lost."""
        answers = sum(kind["answers"] for name, kind in kinds.items() if name not in ("expectation", "small head"))
        files = [path.read_bytes() for path in (self.folder / "log").glob("access*.log")]
        lines = sum(
            line.startswith(b"::1 ") and b" /release " not in line for file in files for line in file.split(b"\n")
        )
        said = (self.folder / "server.stderr").read_text()
        lost = sum(map(int, re.findall(r"(\d+) lines of the access log were lost", said)))
        kills = sum(outage["kind"] == "SIGKILL" for outage in self.server.outages)
        if lines + lost + LINES_CUT * kills < answers:
            self.faults.append(f"{answers} answers were read; the logs have {lines} lines, and {lost} are told as lost")
        return {"times_full": self.fills, "lines_of_honest_clients": lines, "lines_told_as_lost": lost}

    def describe(self, failure):
        stages = "after its head" if failure["had_head"] else "before a head"
        text = f"{failure['what']}: {failure['why']} {failure['to'] - failure['from']:.1f} s from its start, {stages}"
        for outage in self.server.outages:
            begun, back = (failure["from"] - outage[edge] for edge in ("from", "to"))
            if -TOLD_WITHIN < begun and back < TOLD_WITHIN:
                text += f"; it began {begun:.1f} s after {outage['kind']}, {back:.1f} s after the server was back"
        return text

    def is_excused(self, failure):
        for outage in self.server.outages:
            overlaps = failure["from"] < outage["to"] and failure["to"] > outage["from"]
            in_time = failure["to"] < outage["to"] + TOLD_WITHIN
            if outage["kind"] == "SIGKILL" and overlaps and in_time:
                return True
            # A drain loses no response that has begun, and turns new clients away in words.
            if outage["kind"] == "SIGTERM" and overlaps and in_time and not failure["had_head"]:
                return True
        return False


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-disks", action="store_true", help="without a slow disk and a full one, which need mounts")
    parser.add_argument("--json", metavar="FILE", help="write what was found here, too")
    parser.add_argument("--keep", action="store_true", help="keep logs and files of the soak")
    options = parser.parse_args()
    for program in (TERCEL, "curl"):
        if not shutil.which(program):
            raise SystemExit(f"soak: {program} is missing; run make build, or install it")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tercel-soak-"))
    try:
        make_certificate(folder)
        soak = Soak(options, folder)
        try:
            found = soak.run()
        finally:
            if options.keep:
                shutil.copytree(folder / "log", folder / "log-kept")
            soak.close()
    finally:
        if options.keep:
            print(f"soak: kept in {folder}", file=sys.stderr)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    text = json.dumps(found, indent=1)
    print(text)
    if options.json:
        pathlib.Path(options.json).write_text(text)
    print(f"soak: {'failed' if found['faults'] else 'passed'}, {found['answers']} answers checked")
    return 1 if found["faults"] else 0


if __name__ == "__main__":
    sys.pycache_prefix = os.path.join(CACHE, "pycache")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("soak: terminated"))
    sys.exit(main())
