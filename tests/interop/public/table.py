"""docs/interop.md, from the outcomes of many runs."""

import collections
import datetime
import math

from cases import CASES
from faults import fault_of, lack_of

UNEXPLAINED = ("not yet explained", "")
# What the lossy cases are to reach: so many runs of each cell, and this share of passes.
LOSSY_RUNS, LOSSY_SHARE = 20, 0.995

HEAD = """# Interoperability

Written by `cargo xtask interop --docs`; do not edit. The cases are those of the public runner (quic-interop/quic-interop-runner), by the names
and abbreviations that it has. They run on tercel's own link emulator (docs/decisions/004), in network namespaces, and are judged from captures of
both ends, decrypted by the key logs of both ends. `tests/interop/public` has all of it: `cases.py` the networks and files, `judge.py` the conditions,
`trace.py` the reader of captures.

| | |
|---|---|
"""

METHOD = """
## What differs from the public runner

- The network is the emulator's: one way 15 ms, 10 Mbit/s, and a queue of 37,850 bytes, which is 25 full frames, where ns-3 counts packets. Losses and
  corruption are drawn by a seed, at most four in a row, as there. The blackhole's times count from the first datagram.
- `amplificationlimit` has six certificates, the last one with an extension of 4,500 random bytes, in place of nine: rustls takes a path of no more. The
  server's flight is longer than 7,500 bytes all the same, which the judge demands.
- The client's port or address changes first two seconds after its first datagram, and then every five seconds.
- Of a `PATH_CHALLENGE` an answer is demanded if the client's capture shows that it has arrived.
- `zerortt` counts all bytes in a client's 1-RTT packets, as there. Probes for the packet size are such bytes, so tercel and quinn do without them
  in that case.
- A run does not count, whatever came of it, if the machine kept the link emulator or a process of ordinary priority waiting for more than 250 ms; 30 ms,
  one round trip, in Z, BP, BA and CM, where what comes within one decides. It is repeated, and left out if three attempts were late.
- Several runs go at a time, up to 16. Judges work behind them, at a lower priority.
- `multipath` is not of the public runner: several paths at once by draft-ietf-quic-multipath, in the text of March 2026. The client has a second address on
  the same link, and at least a tenth of the bytes must go to each.
- `http3` is called over the commands that the implementations have for HTTP/3; all other cases are HTTP/0.9 (`hq-interop`).

## How to read the tables

A number is how many runs passed, of how many. `–` is not offered by one of the ends; an empty cell has no run that counts. A second number leads to the findings below.
"""


def offered(runs):
    """The runs that count."""
    return [run for run in runs if run["result"] in ("passed", "failed")]


def failures(runs):
    return [run for run in runs if run["result"] == "failed"]


def interval(passed, of, z=1.96):
    """The share of passes in the long run, from and to, with 95 % confidence (Wilson's score interval)."""
    if not of:
        return 0.0, 1.0
    share, square = passed / of, z * z / of
    half = z * math.sqrt(share * (1 - share) / of + square / (4 * of)) / (1 + square)
    centre = (share + square / 2) / (1 + square)
    return max(0.0, centre - half), min(1.0, centre + half)


def cell(book, case, server, client, notes):
    """The text of a cell, and its note if it has failures."""
    runs = book.get(case.name, {}).get(f"{server}/{client}", [])
    done = offered(runs)
    if not done:
        return "–" if any(run["result"] == "not offered" for run in runs) else ""
    failed = failures(done)
    text = f"{len(done) - len(failed)}/{len(done)}"
    if not failed:
        return text
    notes.append((case, server, client, text, failed))
    return f"{text} [{len(notes)}](#findings)"


def table(book, title, peers, pair, notes):
    lines = [f"\n## {title}\n", "| | " + " | ".join(case.abbreviation for case in CASES) + " |", "|---" * (len(CASES) + 1) + "|"]
    for peer in peers:
        server, client = pair(peer)
        lines.append(f"| {peer} | " + " | ".join(cell(book, case, server, client, notes) for case in CASES) + " |")
    return lines


def by_fault(case, server, client, failed):
    """(whose, evidence) -> what the judge said of such runs."""
    groups = collections.defaultdict(list)
    for run in failed:
        fault = fault_of(case.name, server, client, run["reason"])
        groups[(fault.whose, fault.evidence) if fault else UNEXPLAINED].append(run["reason"])
    return groups


def findings(notes):
    lines = ["\n## Findings\n", "Of each cell with a failure: what the judge said of one such run, and whose fault it is.\n"]
    for number, (case, server, client, text, failed) in enumerate(notes, 1):
        groups = by_fault(case, server, client, failed)
        told = []
        for (whose, evidence), reasons in groups.items():
            said = " ".join(reasons[0].split()).replace("|", "/")[:240]
            often = "once" if len(reasons) == 1 else f"{len(reasons)} times"
            count = f"{often} " if len(groups) > 1 else ""
            told.append(f"{count}“{said}”. **{whose}**{': ' + evidence if evidence else ''}")
        lines.append(f"{number}. {case.name}, {server} serves {client}, {text}: {' '.join(told)}")
    return lines if notes else []


def counts(book):
    """What is told of all runs together."""
    cells = [(case, pair, runs) for case in CASES for pair, runs in book.get(case.name, {}).items() if offered(runs)]
    runs = [run for _, _, of_cell in cells for run in offered(of_cell)]
    builds = collections.Counter(run.get("tercel", "unknown") for run in runs)
    lines = [f"| tercel | {build}: {count:,} runs |" for build, count in builds.most_common()]
    lengths = collections.Counter(len(offered(of_cell)) for _, _, of_cell in cells)
    lines += ["| runs a cell | " + ", ".join(f"{length} in {count} cell{'s' if count > 1 else ''}" for length, count in sorted(lengths.items(), reverse=True)) + " |"]
    whose = collections.Counter()
    for case, pair, of_cell in cells:
        for (name, _), reasons in by_fault(case, *pair.split("/"), failures(of_cell)).items():
            whose[name] += len(reasons)
    told = ": " + ", ".join(f"{name} {count}" for name, count in whose.most_common()) if whose else ""
    lines += [f"| all cases | {len(runs):,} runs, {sum(whose.values()):,} failed{told} |"]
    every = [run for of_case in book.values() for of_cell in of_case.values() for run in of_cell]
    return [*lines, lossy([one for one in cells if one[0].lossy]), at_a_time(runs), discarded(every)]


def at_a_time(runs):
    """Whether runs beside others fail more often."""
    by_workers = collections.defaultdict(list)
    for run in runs:
        if "workers" in run:
            by_workers[run["workers"]].append(run)
    told = [f"{workers}: {len(failures(of))} of {len(of):,} failed" for workers, of in sorted(by_workers.items())]
    return f"| runs at a time | {'; '.join(told)} |"


def discarded(runs):
    """The runs that do not count because of the machine."""
    late = [one for run in runs for one in run.get("late", [])]
    failed = sum(one["result"] == "failed" for one in late)
    open_ = sum(run["result"] == "late" for run in runs)
    text = f"{len(late):,} runs, {failed} of them failed, do not count: the machine was late"
    return f"| discarded | {text}; {open_} runs were late each time, and are not in the tables |"


def lossy(cells):
    """The share of the lossy cases that passes, over all, and without the failures that are a peer's, beside what it is to be."""
    total = failed = peers = 0
    for case, pair, runs in cells:
        total += len(offered(runs))
        others = {f"{name}'s" for name in pair.split("/") if name != "tercel"}
        for (name, _), reasons in by_fault(case, *pair.split("/"), failures(runs)).items():
            failed += len(reasons)
            peers += len(reasons) if name in others else 0
    fewest = min((len(offered(runs)) for _, _, runs in cells), default=0)

    def share(passed, of):
        low, high = interval(passed, of)
        outcome = "reached" if passed >= LOSSY_SHARE * of else "missed"
        return f"{passed:,} of {of:,} passed, {passed / max(1, of):.2%} (95 % interval {low:.2%} to {high:.2%}): {outcome}"

    own = f"; without the {peers} failures that are a peer's {share(total - failed, total - peers)}" if peers else ""
    asked = f"{LOSSY_RUNS} runs of each cell and {LOSSY_SHARE:.1%} of passes are the aim; each cell has {fewest} runs or more"
    return f"| lossy cases (L1, L2, C1, C2) | {asked}. {share(total - failed, total)}{own} |"


def lacks(book):
    """Each reason once."""
    seen = {}
    for case in CASES:
        for pair, runs in book.get(case.name, {}).items():
            if runs and all(run["result"] == "not offered" for run in runs):
                server, client = pair.split("/")
                name, end, why = lack_of(case.name, server, client, runs[0]["reason"])
                seen.setdefault((name, why), {}).setdefault(case.name, set()).add(end)
    lines = ["\n## Not offered\n"]
    for (name, why), cases in seen.items():
        said = ", ".join(f"{case} as {' and '.join(sorted(ends))}" for case, ends in cases.items())
        lines.append(f"- {name}: {said}: {why}.")
    return lines


def write(path, book, implementations, registries):
    peers = [implementation.name for implementation in implementations if implementation.name != "tercel"]
    facts = [f"| date | {datetime.date.today().isoformat()} |"]
    facts += [f"| {one.name} | {one.version()} ({one.registry}) |" for one in implementations if one.name != "tercel" and one.is_there()]
    facts += [f"| {name} | {why} |" for name, why in registries]
    facts += counts(book)
    names = ", ".join(f"{case.abbreviation} {case.name}" for case in CASES)
    notes = []
    ends = [("tercel serves", lambda peer: ("tercel", peer)), ("tercel downloads from", lambda peer: (peer, "tercel"))]
    tables = []
    for title, pair in ends:
        tables += table(book, title, ["tercel", *peers], pair, notes)
    lines = [HEAD + "\n".join(facts), METHOD, names + ".", *tables, *findings(notes), *lacks(book)]
    path.write_text("\n".join(lines) + "\n")
