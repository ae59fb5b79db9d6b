"""Runs the interoperability cases and prints a table; exit code 0 if all passed.

aioquic and quinn download from tercel, and tercel from quinn, Caddy and aioquic. With --control the independent
implementations talk to each other instead: when tercel fails and they do not, the fault is tercel's.
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import time

import peers
from cases import all_cases
from workshop import Failure, Workshop, make_certificate, make_files

OURS = [("aioquic", "tercel"), ("quinn", "tercel")]
OURS += [("tercel", server) for server in ("quinn", "caddy", "aioquic", "tercel")]
CONTROL = [(client, server) for client in ("aioquic", "quinn") for server in ("quinn", "caddy", "aioquic")]


def run_case(case, certificates):
    """(what went wrong or None, seconds)"""
    began = time.monotonic()
    try:
        with Workshop(certificates) as workshop:
            case.run(workshop)
        problem = None
    except Failure as failure:
        problem = " ".join(str(failure).split())
    return problem, time.monotonic() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("filter", nargs="*", help="run only cases whose name contains all of these")
    parser.add_argument("--control", action="store_true", help="the independent implementations among themselves")
    parser.add_argument("--list", action="store_true", help="print the names of the cases")
    parser.add_argument("--json", metavar="FILE", help="write the outcomes here")
    options = parser.parse_args()
    cases = all_cases(CONTROL if options.control else OURS)
    cases = [case for case in cases if all(word in case.name for word in options.filter)]
    if options.list:
        print("\n".join(case.name for case in cases))
        return 0
    absent = peers.missing()
    if not options.control and not shutil.which(peers.TERCEL):
        absent.append(f"{peers.TERCEL} is missing: run make build")
    if absent or not cases:
        print("\n".join(absent) or "no case has such a name", file=sys.stderr)
        return 1
    make_files()
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="tercel-interop-") as folder:
        certificates = pathlib.Path(folder)
        make_certificate(certificates)
        for case in cases:
            problem, seconds = run_case(case, certificates)
            outcomes.append({"name": case.name, "passed": problem is None, "seconds": seconds, "problem": problem})
            print(f"{'FAILED' if problem else 'passed':8}{seconds:7.1f} s  {case.name}", flush=True)
            if problem:
                print(f"{'':18}{problem}", flush=True)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(outcomes, indent=1))
    failed = sum(not outcome["passed"] for outcome in outcomes)
    print(f"interop: {len(outcomes) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    # Python's own cache belongs below target/ like everything else that is made here.
    sys.pycache_prefix = os.path.join(peers.CACHE, "pycache")
    # A run that ends by SIGTERM leaves no server and no folder behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("interop: terminated"))
    sys.exit(main())
