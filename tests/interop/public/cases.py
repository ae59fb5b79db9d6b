"""The 22 cases of the public runner (quic-interop/quic-interop-runner), and one of our own: names, files, networks, time limits, conditions."""

import dataclasses

import judge

KB, MB = 1024, 1024 * 1024  # as the public runner counts
# One way 15 ms, 10 Mbit/s, a queue of 25 full frames.
USUAL = ["--delay", "15ms", "--rate", "10mbit", "--queue", "37850B"]
# One round trip: where what comes within one decides.
STRICT = 0.030
# Counted from the client's first datagram.
REBINDING = ["--rebind-after", "2s", "--rebind-every", "5s"]


@dataclasses.dataclass(eq=False)  # each is one, and a key
class Case:
    """One row of the table."""

    name: str
    abbreviation: str
    files: list  # bytes of each
    conditions: list
    server: str | None = None  # what it is called to the server, and to the client; else by `name`
    client: str | None = None
    network: list = dataclasses.field(default_factory=lambda: list(USUAL))
    timeout: int = 60
    protocol: str = "hq"
    ipv6: bool = False
    long_names: bool = False
    certificates: int = 1  # in the server's chain
    lossy: bool = False
    # Seconds for which the machine may keep the link or a process of a run waiting: else the run tells nothing of the protocol.
    late: float = 0.250
    second_address: bool = False  # of the client, which it is told by --migrate-to

    @property
    def of_server(self):
        return self.server or self.name

    @property
    def of_client(self):
        return self.client or self.of_server


def with_delay(delay):
    return ["--delay", delay, *USUAL[2:]]


def lossy(*flags):
    # The public runner's network is told 3 and lets 4 in a row be lost: it compares before it counts.
    return [*USUAL, *flags, "--burst", "4"]


ONE = judge.handshakes(1)
MOVED = [judge.paths_validated]
CASES = [
    Case("handshake", "H", [1 * KB], [ONE, judge.no_retry, judge.version_1]),
    Case("transfer", "DC", [2 * MB, 3 * MB, 5 * MB], [ONE]),
    Case("longrtt", "LR", [1 * KB], [ONE, judge.two_hellos], "handshake", network=with_delay("750ms")),
    Case("chacha20", "C20", [3 * MB], [judge.only_chacha20]),
    Case("multiplexing", "M", [32] * 1999, [ONE, judge.few_streams], "transfer"),
    Case("retry", "S", [10 * KB], [judge.retried]),
    Case("resumption", "R", [5 * KB, 10 * KB], [judge.handshakes(2), judge.resumed]),
    Case("zerortt", "Z", [32] * 40, [judge.early], long_names=True, late=STRICT),
    Case("http3", "3", [5 * KB, 10 * KB, 500 * KB], [ONE], protocol="h3"),
    Case("blackhole", "B", [10 * MB], [ONE], "transfer", network=[*USUAL, "--blackhole", "5s/2s"]),
    Case("keyupdate", "U", [3 * MB], [ONE, judge.key_updated], "transfer", "keyupdate"),
    Case("ecn", "E", [100 * KB], [ONE, judge.ecn_marked]),
    Case(
        "amplificationlimit", "A", [5 * KB], [ONE, judge.amplification], "transfer",
        network=[*USUAL, "--drop-to-server", "2-7"], certificates=6,
    ),
    Case(
        "handshakeloss", "L1", [1 * KB] * 50, [judge.handshakes(50)], "multiconnect",
        network=lossy("--loss", "30%"), timeout=300, lossy=True,
    ),
    Case("transferloss", "L2", [2 * MB], [ONE], "transfer", network=lossy("--loss", "2%"), lossy=True),
    Case(
        "handshakecorruption", "C1", [1 * KB] * 50, [judge.handshakes(50)], "multiconnect",
        network=lossy("--corrupt", "30%"), timeout=300, lossy=True,
    ),
    Case("transfercorruption", "C2", [2 * MB], [ONE], "transfer", network=lossy("--corrupt", "2%"), lossy=True),
    Case("ipv6", "6", [5 * KB, 10 * KB], [judge.ipv6_only], "transfer", ipv6=True),
    Case("v2", "V2", [1 * KB], [judge.version_2]),
    Case("rebind-port", "BP", [10 * MB], MOVED, "transfer", network=[*USUAL, *REBINDING], late=STRICT),
    Case(
        "rebind-addr", "BA", [10 * MB], [*MOVED, judge.addresses_changed], "transfer",
        network=[*USUAL, *REBINDING, "--rebind-address"], late=STRICT,
    ),
    Case(
        "connectionmigration", "CM", [2 * MB], [*MOVED, judge.new_cid_on_new_path], "transfer", "connectionmigration",
        second_address=True, late=STRICT,
    ),
    # Not of the public runner: the draft of several paths.
    Case("multipath", "MP", [5 * MB], [ONE, judge.both_paths_used], second_address=True),
]
BY_NAME = {case.name: case for case in CASES}
