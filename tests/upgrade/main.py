"""Reloads and upgrades one `tercel serve` again and again under load. No client may notice anything.

usage: main.py [--short] [--seconds S] [--changes N] [--workers 1,2] [--datapath gso,xdp] [--server tercel,nginx,caddy] [--json FILE]

In each run: N reloads (SIGHUP) and N upgrades (SIGUSR2) in turn, spread over S seconds; by default 10 and 10 in 600, with one
worker and with two; --short: 60 seconds. Beside them, over HTTP/1.1, 2 and 3 each:

- paced downloads that last as long as several upgrades, each byte checked,
- one download after the other of 100 kB by a new connection, each byte checked,
- requests on connections that are kept (tercel load; h2load and curl for HTTP/1.1 and 2), counted by their answers,
- downloads by clients that share no code with the server: curl, aioquic, Chromium (HTTP/2 and 3, a paced download among them).

With xdp among the data paths everything runs in network namespaces that veth joins, as root. nginx and Caddy are for comparison: theirs are
the reload and the upgrade of their documentation, HTTP/3 is asked of Caddy alone, and what they lose is no fault of this test.

Exit code 0 if no request to tercel failed, no byte was wrong, and each process that was replaced has ended.
"""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import servers
from clients import PERIOD, SMALL, TERCEL, TWICE, Clients, paced_size

INSIDE = "TERCEL_UPGRADE_NAMESPACE"  # set in the namespace of the clients
NEAR, FAR = "198.18.0.2", "198.18.0.1"
LONGEST_RUN = 24 * 3600  # seconds until the namespace of a server ends at the latest


class Namespace:
    """Where a server has an interface of its own, joined with this namespace by veth. It ends with its process."""

    def __init__(self, queues):
        # The process dies with this one.
        command = ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sleep", str(LONGEST_RUN)]
        self.holder = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        own, deadline = os.readlink("/proc/self/ns/net"), time.monotonic() + 10
        while os.readlink(f"/proc/{self.holder.pid}/ns/net") == own:
            if time.monotonic() > deadline or self.holder.poll() is not None:
                raise SystemExit("upgrade: no network namespace can be made")
            time.sleep(0.01)
        many = f"numtxqueues {queues} numrxqueues {queues}"
        self.inside = ["nsenter", f"--net=/proc/{self.holder.pid}/ns/net", "--"]
        ip(f"link add client0 {many} type veth peer name server0 {many}")
        ip(f"link set server0 netns {self.holder.pid}")
        ip(f"address add {NEAR}/24 dev client0")
        ip("link set client0 up")
        for words in [f"address add {FAR}/24 dev server0", "link set server0 up", "link set lo up"]:
            ip(words, self.inside)

    def close(self):
        self.holder.kill()
        self.holder.wait()
        # The other end of the pair has gone with the namespace, or is about to.
        subprocess.run(["ip", "link", "delete", "client0"], stderr=subprocess.DEVNULL)


def ip(words, inside=()):
    subprocess.run([*inside, "ip", *words.split()], check=True, timeout=30)


def enter_namespace():
    """Begins anew in a network namespace, so that nothing of the machine's network is touched."""
    if os.environ.get(INSIDE):
        return ip("link set lo up")
    if os.geteuid() != 0:
        raise SystemExit("upgrade: the data path xdp needs network namespaces: run it as root, or with --datapath gso")
    os.execvpe("unshare", ["unshare", "--net", sys.executable, *sys.argv], os.environ | {INSIDE: "1"})


def start(name, place, folder, workers, seconds, datapath):
    """The server, in a folder with what it serves."""
    root = folder / "root"
    root.mkdir()
    (root / "file").write_bytes(TWICE[:SMALL])
    (root / "page.html").write_text("<!doctype html><title>tercel</title>")
    address, inside = (FAR, place.inside) if place else ("127.0.0.1", ())
    if name == "tercel":
        flags = ["--datapath", datapath, *(["--interface", "server0"] if place else [])]
        return servers.Tercel(folder, address, inside, workers, flags, TERCEL)
    kind = {"nginx": servers.Nginx, "caddy": servers.Caddy}[name]
    return kind(folder, address, inside, workers, [SMALL, paced_size(seconds)], TWICE[:PERIOD])


def run(name, workers, datapath, options):
    place = Namespace(max(2, int(workers))) if datapath == "xdp" else None
    try:
        with tempfile.TemporaryDirectory(prefix="tercel-upgrade-") as path:
            folder = pathlib.Path(path)
            server = start(name, place, folder, workers, options.seconds, datapath)
            return change(name, server, workers, datapath, options)
    finally:
        if place:
            place.close()


def change(name, server, workers, datapath, options):
    changes, took, most = [], [], 1
    clients = Clients(server, options.seconds, lambda: changes)
    what = f"{name}, {workers} workers" + (f", {datapath}" if name == "tercel" else "")
    try:
        clients.start()
        pause = options.seconds / (2 * options.changes + 1)
        for number in range(2 * options.changes):
            time.sleep(pause)
            now = [time.monotonic(), float("inf")]
            changes.append(now)
            if number % 2 == 0:
                server.reload()
            else:
                took.append(server.upgrade())
            now[1] = time.monotonic()
            most = max(most, len(server.running()))
            print(f"{what}: {number + 1} of {2 * options.changes} changes", file=sys.stderr, flush=True)
        time.sleep(pause)
    finally:
        clients.end()
        left = server.stop()
    found = {
        "server": name, "workers": workers, "datapath": datapath, "seconds": options.seconds, "reloads": options.changes,
        "upgrades": options.changes, "clients": {kind: tally.told() for kind, tally in clients.tallies.items()},
        "slowest_upgrade_seconds": round(max(took), 3), "processes_at_a_time": most, "processes_that_did_not_end": len(left),
        "log_lines": 0, "log_lines_not_200": [],
    }
    if name == "tercel":
        lines = server.log.read_text().splitlines()
        found |= {"log_lines": len(lines), "log_lines_not_200": [line for line in lines if '" 200 ' not in line][:10]}
        found["by_xdp"] = server.count("HTTP/3 goes by AF_XDP again")
    found["said"] = [line for line in server.said.read_text(errors="replace").splitlines() if "warning" in line][:20]
    return found


def title(found):
    path = f", {found['datapath']}" if found["server"] == "tercel" else ""
    return f"{found['server']}, {found['workers']} {'worker' if found['workers'] == '1' else 'workers'}{path}"


NUMBERS = ["requests", "failed", "broken", "wrong", "not_repeated"]


def table(runs):
    print("| server | clients | requests | failed | of these broken | of these wrong | not repeated | bytes |\n|---|---|---|---|---|---|---|---|")
    for found in runs:
        for kind, of in found["clients"].items():
            print(f"| {title(found)} | {kind} | " + " | ".join(str(of[name]) for name in [*NUMBERS, "bytes"]) + " |")
    print("\n| server | requests | failed requests | broken connections | wrong bytes | not repeated by h2load and Chromium |\n|---|---|---|---|---|---|")
    for found in runs:
        sums = [sum(of[name] for of in found["clients"].values()) for name in NUMBERS]
        print(f"| {title(found)} | " + " | ".join(f"{one:,}" for one in sums) + " |")
    for found in runs:
        print(
            f"\n{title(found)}: {found['reloads']} reloads and {found['upgrades']} upgrades in {found['seconds']:.0f} s, the slowest "
            f"upgrade {found['slowest_upgrade_seconds']} s, {found['processes_at_a_time']} processes at a time at most, "
            f"{found['processes_that_did_not_end']} did not end, {found['log_lines']} lines in the access log, "
            f"{len(found['log_lines_not_200'])} of them not of status 200"
        )


def faults_of(found):
    """What tercel must not do. Every client must have asked, whatever the server."""
    yield from (f"{kind}: no request" for kind, of in found["clients"].items() if not of["requests"])
    if found["server"] != "tercel":
        return
    yield from (f"{kind}: {failure}" for kind, of in found["clients"].items() for failure in of["failures"])
    yield from found["log_lines_not_200"]
    if any(of["failures"] for of in found["clients"].values()):
        yield from (f"the server said: {line}" for line in found["said"])
    if found["processes_that_did_not_end"]:
        yield "processes did not end"
    if found["datapath"] == "xdp" and found["by_xdp"] != found["upgrades"]:
        yield f"{found['by_xdp']} of {found['upgrades']} new processes have opened AF_XDP sockets: {found['said']}"


def wanted(names, paths, workers):
    """Server, data path and workers of each run. Others than tercel have no data paths."""
    return [(name, path, count) for name in names for path in (paths if name == "tercel" else ["gso"]) for count in workers]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--changes", type=int, default=10)
    parser.add_argument("--workers", default="1,2")
    parser.add_argument("--datapath", default="gso")
    parser.add_argument("--server", default="tercel")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    options.seconds = options.seconds or (60 if options.short else 600)
    paths = options.datapath.split(",")
    if "xdp" in paths:
        enter_namespace()
    # What is started here ends by `finally`.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    runs = []
    try:
        for name, path, workers in wanted(options.server.split(","), paths, options.workers.split(",")):
            try:
                runs.append(run(name, workers, path, options))
            except servers.Unfit as why:
                print(f"upgrade: without {name}: {why}", file=sys.stderr)
            # After each: a run takes ten minutes, and an interrupt loses the one that is under way alone.
            if options.json:
                options.json.write_text(json.dumps(runs, indent=1) + "\n")
    finally:
        if runs:
            table(runs)
    faults = [f"{title(found)}: {fault}" for found in runs for fault in faults_of(found)]
    for fault in faults:
        print(f"fault: {fault}")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
