"""Alternating trials of two programs or two servers, for compare.sh.

Each row is the same work done in turn by both sides, first the one, then the other, then the other way round. The ratio of each pair is
taken, so that what slows the machine for a while slows both. Printed are the medians, the mean ratio of the pairs with its 95 %
interval (Student's t on logarithms), and CPU time for each request, which other work on the machine changes less than the rate.

A rate is requests by the seconds from the last connection's being made to the last answer: h2load counts from before it
connects, so the longest time that it needed for that is taken off.
"""

import argparse
import json
import math
import os
import re
import resource
import statistics
import subprocess
import sys

# Work: name, version of HTTP, connections, requests at a time on each, requests, file.
WORK = [
    ("HTTP/1.1, 630 B, 20 x 1", 1, 20, 1, 60_000, "small"),
    ("HTTP/2,   630 B, 10 x 10", 2, 10, 10, 80_000, "small"),
    ("HTTP/2,   630 B, 1 x 1", 2, 1, 1, 18_000, "small"),
    ("HTTP/1.1, 10 MiB, 4 x 1", 1, 4, 1, 120, "large"),
    ("HTTP/2,   10 MiB, 1 x 4", 2, 1, 4, 100, "large"),
]
# Two-sided 95 % quantiles of Student's t, by degrees of freedom from 1 on.
STUDENT = [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13, 2.12, 2.11, 2.10, 2.09]
UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


def seconds(text):
    value, unit = re.fullmatch(r"([\d.]+)(us|ms|s)", text).groups()
    return float(value) * UNITS[unit]


def client(command):
    """Runs a generator on the second core. Returns what it printed and its CPU seconds."""
    pinned = ["taskset", "-c", "1"] if os.cpu_count() >= 2 else []
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(pinned + command, capture_output=True, text=True, timeout=120)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def h2load(work, port):
    _, version, connections, streams, count, path = work
    flags = ["--h1"] if version == 1 else []
    url = f"https://localhost:{port}/{path}"
    text, cpu = client(["h2load", *flags, "-c", str(connections), "-m", str(streams), "-n", str(count), url])
    if f" {count} succeeded" not in text:
        sys.exit(f"h2load did not succeed:\n{text}")
    took = seconds(re.search(r"finished in (\S+),", text).group(1))
    connecting = seconds(re.search(r"time for connect:\s+\S+\s+(\S+)", text).group(1))
    return count / (took - connecting), cpu / count


def tercel(program, work, port):
    _, version, connections, streams, count, path = work
    text, cpu = client([program, "load", "-k", "-q", "--json", "--http", str(version), "-c", str(connections),
                        "-m", str(streams), "-n", str(count), f"https://localhost:{port}/{path}"])
    report = json.loads(text)
    if report["succeeded"] != count:
        sys.exit(f"tercel load did not succeed:\n{text}")
    return report["requests_per_second"], cpu / count


def cpu_of(process):
    """CPU seconds of a process's threads so far."""
    total = 0
    for thread in os.listdir(f"/proc/{process}/task"):
        with open(f"/proc/{process}/task/{thread}/schedstat", encoding="ascii") as file:
            total += int(file.read().split()[0])
    return total / 1e9


def served(work, server):
    """The rate that h2load gets of a server, and the server's CPU seconds for each request."""
    port, process = server
    before = cpu_of(process)
    rate, _ = h2load(work, port)
    return rate, (cpu_of(process) - before) / work[4]


def interval(ratios):
    logs = [math.log(ratio) for ratio in ratios]
    mean = statistics.fmean(logs)
    if len(logs) < 2:
        return math.exp(mean), 0.0, math.inf
    half = STUDENT[min(len(logs) - 1, len(STUDENT)) - 1] * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


def row(work, trials, ours, theirs, judge):
    sides = [ours, theirs]
    for side in sides:
        side(work)
    found = ([], [])
    for trial in range(trials):
        for index in (0, 1) if trial % 2 == 0 else (1, 0):
            found[index].append(sides[index](work))
    ratio, low, high = interval([mine[0] / other[0] for mine, other in zip(*found)])
    rates = [statistics.median(one[0] for one in side) for side in found]
    costs = [statistics.median(one[1] for one in side) * 1e6 for side in found]
    verdict = judge(low, high)
    print(f"{work[0]:26} {rates[0]:10.1f} {rates[1]:10.1f}  {ratio:5.2f} ({low:.2f} to {high:.2f})"
          f"  {costs[0]:9.1f} {costs[1]:9.1f}  {verdict}", flush=True)
    return verdict


def judge_generator(low, high):
    if low >= 0.9:
        return "within 10 %" if high <= 1.1 else "within 10 %, or faster"
    return "SLOWER by more than 10 %" if high < 0.9 else "unclear: noise"


def judge_server(low, high):
    if low >= 0.8:
        return "not slower by 20 %"
    return "SLOWER by more than 20 %" if high < 0.8 else "unclear: noise"


def main():
    parser = argparse.ArgumentParser(description="Alternating trials; see compare.sh")
    parser.add_argument("--tercel", required=True, help="the program")
    parser.add_argument("--trials", type=int, default=9, help="pairs of trials for each row")
    parser.add_argument("--nginx", nargs=2, type=int, required=True, metavar=("PORT", "PID"))
    parser.add_argument("--ours", nargs=2, type=int, required=True, metavar=("PORT", "PID"))
    options = parser.parse_args()
    verdicts = []
    print(f"medians of {options.trials} alternating trials; ratios of pairs with 95 % intervals; CPU in us for each request\n")
    print(f"{'generators, of nginx':26} {'tercel':>10} {'h2load':>10}  {'ratio of rates':20}  {'CPU':>9} {'CPU':>9}")
    for work in WORK:
        verdicts.append(row(work, options.trials, lambda work: tercel(options.tercel, work, options.nginx[0]),
                            lambda work: h2load(work, options.nginx[0]), judge_generator))
    print(f"\n{'servers, by h2load':26} {'tercel':>10} {'nginx':>10}  {'ratio of rates':20}  {'CPU':>9} {'CPU':>9}")
    for work in WORK:
        verdicts.append(row(work, options.trials, lambda work: served(work, options.ours),
                            lambda work: served(work, options.nginx), judge_server))
    bad = any(verdict.startswith("SLOWER") for verdict in verdicts)
    open_ones = any(verdict.startswith("unclear") for verdict in verdicts)
    return 1 if bad else 3 if open_ones else 0


if __name__ == "__main__":
    sys.exit(main())
