"""Runs the cases of the public interoperability tests on our own link emulator, and writes what came of them. See --help.

Cells run two at a time, each in namespaces of its own. A run takes a seed, which decides what the network does; with --runs N the seeds are 0 to N-1,
or begin at --seed. Outcomes are added to those that a JSON file holds already, so a long series can be done in parts.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import signal
import sys
import tempfile
import threading

import certificates
from cases import BY_NAME as CASES
from cell import Outcome, Run
from implementations import BY_NAME as IMPLEMENTATIONS
from implementations import ROOT, UNREACHABLE
from table import write

OURS = "tercel"


# What CI runs, in about two minutes: cells that pass however busy the machine is, with the peers that tests/setup makes.
ALL = [("tercel", "tercel"), ("tercel", "quinn"), ("quinn", "tercel"), ("tercel", "aioquic"), ("aioquic", "tercel")]
CI = {
    "handshake": ALL,
    "retry": ALL,
    "resumption": ALL,
    "amplificationlimit": ALL,
    "ipv6": ALL,
    "keyupdate": ALL[:3],
    "transferloss": ALL[:1],
    "transfercorruption": ALL[:3],
    "connectionmigration": ALL[:1],
    "rebind-addr": ALL[:1],
}


def pairs(peers, also_others):
    """(server, client): tercel with each peer, both ways, and with itself."""
    found = [(OURS, OURS)]
    for peer in peers:
        found += [(OURS, peer), (peer, OURS)]
    if also_others:
        found += [(one, other) for one in peers for other in peers]
    return found


def wanted(options):
    if options.ci:
        found = [(server, client, name) for name, pairs_of in CI.items() for server, client in pairs_of]
        return [(CASES[name], IMPLEMENTATIONS[server], IMPLEMENTATIONS[client], 0) for server, client, name in found]
    peers = [name for name in IMPLEMENTATIONS if name != OURS and (not options.peer or name in options.peer)]
    cases = [CASES[name] for name in (options.case or CASES)]
    found = []
    for number in range(options.seed, options.seed + options.runs):
        for server, client in pairs(peers, options.control):
            if options.pair and f"{server}/{client}" not in options.pair:
                continue
            if options.end and OURS != {"server": server, "client": client}[options.end]:
                continue
            found += [(case, IMPLEMENTATIONS[server], IMPLEMENTATIONS[client], number) for case in cases]
    return found


class Book:
    """The outcomes, in a file that is written anew after each."""

    def __init__(self, path):
        self.path = pathlib.Path(path) if path else None
        self.lock = threading.Lock()
        self.cells = json.loads(self.path.read_text()) if self.path and self.path.exists() else {}

    def note(self, case, server, client, number, outcome):
        with self.lock:
            runs = self.cells.setdefault(case.name, {}).setdefault(f"{server.name}/{client.name}", [])
            runs[:] = [run for run in runs if run["seed"] != number]
            runs.append({"seed": number, "result": outcome.result, "reason": outcome.reason, "seconds": round(outcome.seconds, 1)})
            if self.path:
                unfinished = self.path.with_suffix(".unfinished")
                unfinished.write_text(json.dumps(self.cells, indent=1))
                unfinished.rename(self.path)


def one(job, folder, keep):
    case, server, client, number = job
    for implementation, end in ((server, "server"), (client, "client")):
        if reason := implementation.lacks(end, case.name):
            return Outcome("not offered", f"by the {end} {implementation.name}: {reason}")
    return Run(case, server, client, folder, number).carry_out(keep)


def main():
    parser = argparse.ArgumentParser(prog="cargo xtask interop", description=__doc__.splitlines()[0])
    parser.add_argument("--case", action="append", choices=CASES, help="only this case; repeatable")
    parser.add_argument("--peer", action="append", choices=IMPLEMENTATIONS, help="only this peer; repeatable")
    parser.add_argument("--pair", action="append", metavar="SERVER/CLIENT", help="only this pair; repeatable")
    parser.add_argument("--end", choices=("server", "client"), help="only with tercel at this end")
    parser.add_argument("--control", action="store_true", help="the peers among themselves, too")
    parser.add_argument("--runs", type=int, default=1, help="runs of each cell")
    parser.add_argument("--seed", type=int, default=0, help="the first run's seed")
    parser.add_argument("--jobs", type=int, default=2, help="cells at a time")
    parser.add_argument("--json", help="add the outcomes to this file")
    parser.add_argument("--keep", type=pathlib.Path, help="keep captures, key logs and logs of failures in this folder")
    parser.add_argument("--ci", action="store_true", help="the cells that CI runs")
    parser.add_argument("--docs", action="store_true", help="run nothing: write docs/interop.md from the file of --json")
    options = parser.parse_args()
    if options.docs:
        write(ROOT / "docs/interop.md", Book(options.json).cells, list(IMPLEMENTATIONS.values()), UNREACHABLE)
        return 0
    jobs = wanted(options)
    if os.geteuid() != 0:
        print("interop: the cases need namespaces and captures, so they need root")
        return 1 if "CI" in os.environ else 0
    missing = sorted({end.name for job in jobs for end in job[1:3] if not end.is_there()})
    for name in missing:
        print(f"interop: {name} is not built: {IMPLEMENTATIONS[name].command[0]} is missing; make build and peers/build make it")
    jobs = [job for job in jobs if job[1].name not in missing and job[2].name not in missing]
    if not jobs:
        print("interop: nothing to run", file=sys.stderr)
        return 1
    # A cell of CI that does not run is one that failed.
    book, failed, passed = Book(options.json), len(missing) if options.ci else 0, 0
    with tempfile.TemporaryDirectory(prefix="tercel-interop-") as name:
        folder = pathlib.Path(name)
        for count in {job[0].certificates for job in jobs}:
            certificates.make(folder / str(count), count)
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            running = {pool.submit(one, job, folder, options.keep): job for job in jobs}
            for done in concurrent.futures.as_completed(running):
                case, server, client, number = running[done]
                outcome = done.result()
                book.note(case, server, client, number, outcome)
                failed += outcome.result == "failed"
                passed += outcome.passed
                print(f"{outcome.result:12}{outcome.seconds:6.1f} s  {case.name}: {server.name} serves {client.name} (seed {number})", flush=True)
                if outcome.reason:
                    print(f"{'':22}{outcome.reason}", flush=True)
    print(f"interop: {passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("interop: terminated"))
    sys.exit(main())
