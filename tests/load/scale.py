#!/usr/bin/env python3
"""What a sender's CPU time for each byte is with one connection or stream, and with thousands.

    tests/load/scale.py [--tercel PATH] [--seconds N] [--trials N] [PLACE...] [-- FLAGS OF THE SERVER]

A place is connections:N or streams:N; without any, 1 to 10,000 of each by powers of ten. For each, `tercel perf serve` on core 0
sends without end to `tercel perf client` on core 1 over loopback, in packets of 1,452 bytes. What counts is the server's
CPU time after all handshakes and a warm-up. Prints the median of the trials, which go round the places in turns.
Needs two cores without other load; 10,000 connections take a gigabyte of memory."""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

SIZE = ["--packet-size", "1452", "--mtu-search", "off"]


def measure(options, place, flags):
    """One trial: the JSON of the client."""
    kind, count = place.split(":")
    counts = ["-c", count, "-m", "1"] if kind == "connections" else ["-c", "1", "-m", count]
    with tempfile.TemporaryDirectory() as folder:
        ready = pathlib.Path(folder, "ready.json")
        serve = [options.tercel, "perf", "serve", "--listen", "127.0.0.1:0", "--max-streams", "10000", "--pin", "0"]
        environment = {"XDG_DATA_HOME": folder}
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": environment}
        server = subprocess.Popen([*serve, "--ready-file", ready, *SIZE, *flags], **quiet)
        try:
            while not ready.exists():
                if server.poll() is not None:
                    sys.exit("the server does not start")
                time.sleep(0.02)
            port = json.loads(ready.read_text())["port"]
            ask = [options.tercel, "perf", "client", "--insecure", "--json", "--pin", "1", *counts, *SIZE]
            ask += ["--warm-up", str(options.warm_up), "-D", str(options.seconds), "--server-pid", str(server.pid)]
            ask += [f"127.0.0.1:{port}", "download"]
            # Its exit code tells of connections that failed, which are in the table.
            return json.loads(subprocess.run(ask, capture_output=True, check=False).stdout)
        finally:
            server.terminate()
            server.wait()


def main():
    own, flags = sys.argv[1:], []
    if "--" in own:
        own, flags = own[: own.index("--")], own[own.index("--") + 1 :]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tercel", default="target/release/tercel")
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--warm-up", type=int, default=3, help="seconds; 10,000 connections need 25")
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("places", nargs="*", metavar="PLACE")
    options = parser.parse_args(own)
    every = [f"{kind}:{10**power}" for kind in ("connections", "streams") for power in range(5)]
    places = options.places or every
    results = {place: [] for place in places}
    for _ in range(options.trials):
        for place in places:
            results[place].append(measure(options, place, flags))
    print(f"{'':20}{'s/GB':>8}{'GB/s':>8}{'packets for an ACK':>20}{'not connected':>15}")
    for place, trials in results.items():
        median = lambda of: statistics.median(map(of, trials))
        cost = median(lambda it: it["server"]["cpu_s"] / it["received_bytes"] * 1e9)
        rate = median(lambda it: it["received_bytes"] / it["seconds"] / 1e9)
        packets = median(lambda it: it["client"]["received_datagrams"] / max(1, it["client"]["sent_datagrams"]))
        missing = median(lambda it: it["unconnected"])
        print(f"{place:20}{cost:8.3f}{rate:8.2f}{packets:20.0f}{missing:15.0f}", flush=True)


main()
