"""The implementations, and how each is called: the only place that knows their programs.

A program takes the same arguments as every other, for either end:

    PROGRAM server --case NAME --listen ADDRESS:PORT --cert FILE --key FILE --root FOLDER --ready-file FILE
    PROGRAM client --case NAME --connect ADDRESS:PORT --name NAME --cacert FILE --output FOLDER [--migrate-to ADDRESS] PATH...

It ends with 127 if it does not offer the case, which is the public runner's convention, and writes its secrets to SSLKEYLOGFILE. The ready file
is written once it listens, by rename. The case `http3` is called with `--case http3`; the others speak HTTP/0.9 (`hq-interop`).
"""

import dataclasses
import importlib.metadata
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
TERCEL = os.environ.get("TERCEL", str(ROOT / "target/release/tercel"))
PEERS = ROOT / "target/peers/release"


@dataclasses.dataclass(eq=False)  # each is one, and a key
class Implementation:
    """A program, and what of it is not to be had from a registry."""

    name: str
    registry: str
    command: list
    version: object
    # (end, case) -> why it is not offered; "*" is every case.
    absent: dict = dataclasses.field(default_factory=dict)
    needs: list = dataclasses.field(default_factory=list)

    def is_there(self):
        return all(os.path.exists(path) for path in self.needs or [part for part in self.command if os.sep in str(part)])

    def lacks(self, end, case):
        return self.absent.get((end, case)) or self.absent.get((end, "*"))


def locked(package):
    """The version of a crate in the lock file of peers/."""
    text = (ROOT / "peers/Cargo.lock").read_text()
    return re.search(rf'name = "{package}"\nversion = "([^"]+)"', text)[1]


def of_go():
    return re.search(r"quic-go/quic-go v(\S+)", (ROOT / "peers/quic-go-peer/go.mod").read_text())[1]


def of_tercel():
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def build_of_tercel():
    """Its revision and profile, as docs/interop.md names them."""
    done = subprocess.run([TERCEL, "--version"], capture_output=True, text=True) if os.path.exists(TERCEL) else None
    profile = re.search(r"^profile (\S+)", done.stdout, re.MULTILINE) if done else None
    return f"{of_tercel()}, {profile[1] if profile else 'unknown'} profile"


PYTHON = sys.executable
IMPLEMENTATIONS = [
    Implementation("tercel", "this repository", [PYTHON, "-B", HERE / "tercel_peer.py", TERCEL], of_tercel),
    Implementation("quinn", "crates.io", [PEERS / "quinn-peer", "interop"], lambda: locked("quinn")),
    Implementation(
        "quic-go", "Go module", [PEERS / "quic-go-peer", "interop"], of_go,
    ),
    Implementation(
        "s2n-quic", "crates.io", [PEERS / "s2n-quic-peer", "interop"], lambda: locked("s2n-quic"),
        absent={
            ("server", case): "its server follows no client in 198.18.0.0/15, the range for benchmarks that the laboratory uses"
            for case in ("rebind-port", "rebind-addr", "connectionmigration")
        },
    ),
    Implementation("quiche", "crates.io", [PEERS / "quiche-peer", "interop"], lambda: locked("quiche")),
    Implementation("tquic", "crates.io", [PEERS / "tquic-peer", "interop"], lambda: locked("tquic")),
    Implementation("aioquic", "PyPI", [PYTHON, "-B", HERE / "aioquic_peer.py"], lambda: importlib.metadata.version("aioquic")),
]
# picoquic's package needs a newer Python than the tests: peers/build makes this environment where there is one.
PICOQUIC = ROOT / "target/tests/venv-picoquic"
IMPLEMENTATIONS.append(
    Implementation(
        "picoquic", "PyPI, aiopquic", [PICOQUIC / "bin/python", "-B", HERE / "aiopquic_peer.py"],
        lambda: next(PICOQUIC.glob("lib/*/site-packages/aiopquic-*.dist-info")).name.split("-")[1].removesuffix(".dist"),
    )
)
KWIK = ROOT / "target/peers/kwik"
IMPLEMENTATIONS.append(
    Implementation(
        "kwik", "Maven Central", ["/usr/bin/env", "java", "-cp", f"{KWIK}/classes:{KWIK}/dependency/*", "Interop"],
        lambda: re.search(r"<artifactId>kwik</artifactId>\s*<version>([\d.]+)", (ROOT / "peers/kwik-peer/pom.xml").read_text())[1],
        needs=[KWIK / "classes/Interop.class", KWIK / "dependency"],
        absent={("server", "connectionmigration"): "its server forbids migration (disable_active_migration)"},
    )
)
BY_NAME = {implementation.name: implementation for implementation in IMPLEMENTATIONS}
# What the plan names and no registry here has, or not for this machine.
UNREACHABLE = [("neqo", "not run: its crates are not on crates.io")]
