"""docs/interop.md, from the outcomes of many runs."""

import datetime

from cases import CASES
from faults import fault_of, lack_of

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
  corruption are drawn by a seed, at most three in a row, as there. The blackhole's times count from the first datagram.
- `amplificationlimit` has six certificates, the last one with 120 names, in place of nine: rustls takes a path of no more. The server's flight is longer
  than 7,500 bytes all the same, which the judge demands.
- The client's port or address changes first four seconds after the network is made, which is one to three seconds into the transfer, and
  then every five seconds.
- Of a `PATH_CHALLENGE` an answer is demanded if the client's capture shows that it has arrived.
- `zerortt` counts all bytes in a client's 1-RTT packets, as there. Probes for the packet size are such bytes, so tercel and quinn do without them
  in that case.
- `http3` is called over the commands that the implementations have for HTTP/3; all other cases are HTTP/0.9 (`hq-interop`).

## How to read the tables

A number is how many runs passed, of how many. `–` is not offered by one of the ends; an empty cell has not been run. A second number leads to the findings below.
"""


def cell(book, case, server, client, notes):
    """The text of a cell, and its note if it has failures."""
    runs = book.get(case.name, {}).get(f"{server}/{client}", [])
    if not runs:
        return ""
    if all(run["result"] == "not offered" for run in runs):
        return "–"
    done = [run for run in runs if run["result"] != "not offered"]
    passed = sum(run["result"] == "passed" for run in done)
    text = f"{passed}/{len(done)}"
    if passed == len(done):
        return text
    reason = next(run["reason"] for run in done if run["result"] == "failed")
    notes.append((case, server, client, text, reason))
    return f"{text} [{len(notes)}](#findings)"


def table(book, title, peers, pair, notes):
    lines = [f"\n## {title}\n", "| | " + " | ".join(case.abbreviation for case in CASES) + " |", "|---" * (len(CASES) + 1) + "|"]
    for peer in peers:
        server, client = pair(peer)
        lines.append(f"| {peer} | " + " | ".join(cell(book, case, server, client, notes) for case in CASES) + " |")
    return lines


def findings(notes):
    lines = ["\n## Findings\n", "Of each cell with a failure: what the judge said of one such run, and whose fault it is.\n"]
    for number, (case, server, client, text, reason) in enumerate(notes, 1):
        fault = fault_of(case.name, server, client)
        said = " ".join(reason.split()).replace("|", "/")[:240]
        verdict = f"**{fault.whose}**: {fault.evidence}" if fault else "**not yet explained**"
        lines.append(f"{number}. {case.name}, {server} serves {client}, {text}: “{said}”. {verdict}")
    return lines if notes else []


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
    runs = [run for cells in book.values() for runs in cells.values() for run in runs if run["result"] != "not offered"]
    passed = sum(run["result"] == "passed" for run in runs)
    lossy = [
        run for case in CASES if case.lossy for runs in book.get(case.name, {}).values() for run in runs
        if run["result"] != "not offered"
    ]
    kept = sum(run["result"] == "passed" for run in lossy)
    facts = [f"| date | {datetime.date.today().isoformat()} |"]
    facts += [f"| {one.name} | {one.version()} ({one.registry}) |" for one in implementations if one.is_there()]
    facts += [f"| {name} | {why} |" for name, why in registries]
    facts += [f"| runs | {len(runs)}, of which {passed} passed; of the lossy cases (L1, L2, C1, C2) {kept} of {len(lossy)} |"]
    names = ", ".join(f"{case.abbreviation} {case.name}" for case in CASES)
    notes = []
    ends = [("tercel serves", lambda peer: ("tercel", peer)), ("tercel downloads from", lambda peer: (peer, "tercel"))]
    tables = []
    for title, pair in ends:
        tables += table(book, title, ["tercel", *peers], pair, notes)
    lines = [HEAD + "\n".join(facts), METHOD, names + ".", *tables, *findings(notes), *lacks(book)]
    path.write_text("\n".join(lines) + "\n")
