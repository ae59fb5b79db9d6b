"""Runs the cases of the public interoperability tests on our own link emulator, and writes what came of them.

Runs go several at a time, each in namespaces of its own. A run takes a seed, which decides what the network does; with --runs N the seeds are 0 to N-1,
or begin at --seed. Outcomes are added to those that a JSON file holds already, and what it holds is not run again: a long series can be interrupted
at any moment, or by --minutes, and goes on by the same command. A run during which the machine kept the link or a process waiting for long (250 ms,
or a round trip in some cases) does not count, whatever came of it: it goes again, three times at most, and the file keeps what came of it.
"""

import argparse
import os
import pathlib
import sys
import tempfile

import certificates
from cases import BY_NAME as CASES
from faults import is_a_peers_fault
from implementations import BY_NAME as IMPLEMENTATIONS
from implementations import ROOT, UNREACHABLE, build_of_tercel
from series import Book, Series
from table import write

OURS = "tercel"
# The outcomes that docs/interop.md is written from: a series is longer than a day's work, and goes on from here.
RECORD = pathlib.Path(__file__).with_name("record.json")


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
    # Of each seed the lossy cases first: their runs are long and need the processor least.
    return sorted(found, key=lambda job: (job[3], not job[0].lossy))


def asked():
    parser = argparse.ArgumentParser(
        prog="cargo xtask interop", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", action="append", choices=CASES, help="only this case; repeatable")
    parser.add_argument("--peer", action="append", choices=IMPLEMENTATIONS, help="only this peer; repeatable")
    parser.add_argument("--pair", action="append", metavar="SERVER/CLIENT", help="only this pair; repeatable")
    parser.add_argument("--end", choices=("server", "client"), help="only with tercel at this end")
    parser.add_argument("--control", action="store_true", help="the peers among themselves, too")
    parser.add_argument("--runs", type=int, default=1, help="runs of each cell")
    parser.add_argument("--seed", type=int, default=0, help="the first run's seed")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (default: %(default)s)")
    parser.add_argument("--minutes", type=float, help="begin no run after this time")
    parser.add_argument("--json", help="add the outcomes to this file, and run nothing whose outcome it has")
    parser.add_argument("--again", choices=("failed", "all"), help="run that again all the same")
    parser.add_argument("--keep", type=pathlib.Path, help="keep captures, key logs and logs of failures in this folder")
    parser.add_argument("--ci", action="store_true", help="the cells that CI runs")
    parser.add_argument("--docs", action="store_true", help="run nothing: write docs/interop.md from the file of --json, or else from the record beside this program")
    return parser.parse_args()


def able(jobs):
    """The jobs whose programs are there, and the names of those that are not."""
    missing = sorted({end.name for job in jobs for end in job[1:3] if not end.is_there()})
    for name in missing:
        print(f"interop: {name} is not built: {IMPLEMENTATIONS[name].command[0]} is missing; make build and peers/build make it")
    return [job for job in jobs if job[1].name not in missing and job[2].name not in missing], missing


def main():
    options = asked()
    book = Book(options.json or (RECORD if options.docs else None))
    if options.docs:
        write(ROOT / "docs/interop.md", book.cells, list(IMPLEMENTATIONS.values()), UNREACHABLE)
        return 0
    jobs = wanted(options)
    if os.geteuid() != 0:
        print("interop: the cases need namespaces and captures, so they need root")
        return 1 if "CI" in os.environ else 0
    jobs, missing = able(jobs)
    if not jobs:
        print("interop: nothing to run", file=sys.stderr)
        return 1
    again = {None: (), "failed": ("failed",), "all": ("failed", "passed", "not offered")}[options.again]
    jobs = [job for job in jobs if book.lacks(job, again)]
    # CI's cells pass however busy the machine is, and it has no time for second attempts.
    series = Series(book, jobs, options.jobs, build_of_tercel(), options.minutes, takes_late=options.ci)
    with tempfile.TemporaryDirectory(prefix="tercel-interop-") as name:
        folder = pathlib.Path(name)
        for count in {job[0].certificates for job in jobs}:
            certificates.make(folder / str(count), count)
        complete = series.run(folder, options.keep)
    failed = series.counted("failed")
    if options.ci:
        # A cell that does not run is one that failed. What a peer does against the rules is not tercel's to mend; any other failure of the cell is.
        excused = sum(is_a_peers_fault(*failure) for failure in series.progress.failures)
        print(f"interop: {excused} cells failed by a peer's fault that docs/interop.md explains")
        failed += len(missing) - excused
    print(f"interop: {series.counted('passed')} passed, {failed} failed")
    if not complete:
        print(f"interop: {len(series.progress.left)} runs are left: the same command goes on")
    return 130 if series.interrupted.is_set() else 1 if failed or not complete else 0


if __name__ == "__main__":
    sys.exit(main())
