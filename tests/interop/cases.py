"""Every case: a client, a server, and what is special about the transfer. Adding a row adds a test."""

import dataclasses
import functools

from capture import check_capture, check_capture_checker
from peers import CLIENTS, SERVERS, Request, Serving
from workshop import FILES, KB, MANY, MB, expect, sha256, sha256_of_part


@dataclasses.dataclass
class Case:
    """A name, and a function of a workshop that raises Failure."""

    name: str
    run: object


def download(client, server, request, workshop, serving=None):
    """One client, one connection's worth of requests, one server; every body compared by its hash."""
    authority = SERVERS[server](workshop, serving or Serving())
    results = CLIENTS[client](workshop, authority, request)
    expect(len(results) == len(request.paths), f"{len(results)} of {len(request.paths)} answers")
    for path, result in zip(request.paths, results):
        expect(result.status == 200, f"/{path}: status {result.status}, not 200")
        size = (workshop.files / path).stat().st_size
        expect(result.content_length in (None, size), f"/{path}: Content-Length {result.content_length}, not {size}")
        if not request.head:
            expect(result.size == size, f"/{path}: {result.size} bytes, not {size}")
            expect(result.sha256 == sha256(workshop.files / path), f"/{path}: the content differs")
    workshop.stop_servers()
    return results


def sizes(client, server, name, workshop):
    download(client, server, Request([name], timeout=180 if FILES[name] > 10 * MB else 60), workshop)


def ranges(client, server, text, part, workshop):
    """A part of a file; `part` is begin and end, or None where there is nothing to send."""
    authority = SERVERS[server](workshop, Serving())
    result = CLIENTS[client](workshop, authority, Request(["1m"], range=text))[0]
    if part is None:
        expect(result.status == 416, f"status {result.status}, not 416")
    else:
        expect(result.status == 206, f"status {result.status}, not 206")
        expect(result.size == part[1] - part[0], f"{result.size} bytes, not {part[1] - part[0]}")
        expect(result.sha256 == sha256_of_part(workshop.files / "1m", *part), "the content differs")
    workshop.stop_servers()


def missing_file(client, server, workshop):
    authority = SERVERS[server](workshop, Serving())
    result = CLIENTS[client](workshop, authority, Request(["there/is/no such".replace(" ", "%20")]))[0]
    expect(result.status == 404, f"status {result.status}, not 404")
    workshop.stop_servers()


def head(client, server, workshop):
    result = download(client, server, Request(["1m"], head=True), workshop)[0]
    expect(result.size == 0, "an answer to HEAD has a body")
    expect(result.content_length == MB, f"Content-Length {result.content_length}, not {MB}")


def many(client, server, workshop):
    download(client, server, Request(MANY), workshop)


def retry(client, server, workshop):
    told = download(client, server, Request(["1m"]), workshop, Serving(retry=True))[0].connection
    expect(told.get("retries", 1) == 1, f"{told.get('retries')} Retry packets, not 1")


def chacha20(client, server, workshop):
    """The server has nothing else, so that success alone means that it was used."""
    told = download(client, server, Request(["1m"]), workshop, Serving(cipher="chacha20"))[0].connection
    expect("chacha20" in told.get("cipher", "chacha20").lower(), f"cipher {told.get('cipher')}")


def chacha20_client(client, server, workshop):
    """The same with a client that has nothing else."""
    download(client, server, Request(["1m"], cipher="chacha20"), workshop)


def aes256(client, server, workshop):
    download(client, server, Request(["1m"], cipher="aes256"), workshop)


def key_update(client, server, after, workshop):
    """The client updates the keys in the middle, at every one of `after` bytes. What follows arrives only if the server does
    the same."""
    told = download(client, server, Request(["10m"], key_update_after=after), workshop)[0].connection
    updates = told.get("key_updates_by_client", len(after))
    expect(updates >= len(after), f"the client updated its keys {updates} times, not {len(after)}")


def key_update_by_server(client, server, workshop):
    told = download(client, server, Request(["10m"]), workshop, Serving(key_update_after=2 * MB))[0].connection
    expect(told.get("key_updates_by_server", 1) >= 1, "the server did not update its keys")


def ipv6(client, server, workshop):
    download(client, server, Request(["1m"]), workshop, Serving(host="::1"))


def version_2(client, server, workshop):
    told = download(client, server, Request(["1m"], quic_version="2"), workshop)[0].connection
    expect(told.get("quic_version", 2) == 2, f"QUIC version {told.get('quic_version')}, not 2")


def version_1_or_2(client, server, workshop):
    """The server may stay with version 1 or change to 2 at once (RFC 9368); the client checks that it says so."""
    download(client, server, Request(["1m"], quic_version="1-or-2"), workshop)


def unknown_version(client, server, workshop):
    told = download(client, server, Request(["1m"], quic_version="unknown"), workshop)[0].connection
    expect(told.get("version_negotiation", True), "there was no Version Negotiation packet")


RANGES = {
    "first byte": ("0-0", (0, 1)),
    "middle": (f"{500 * KB}-{600 * KB - 1}", (500 * KB, 600 * KB)),
    "from": (f"{999 * KB}-", (999 * KB, MB)),
    "last": ("-500", (MB - 500, MB)),
    "beyond": (f"{2 * MB}-", None),
}


def common(client, server):
    """What every pair can do: name and function of the workshop."""
    rows = [(f"{name} bytes", functools.partial(sizes, client, server, name)) for name in FILES]
    ours = [name for name in RANGES if client != "tercel" or name != "last"]  # tercel get always knows where it begins
    rows += [(f"range {name}", functools.partial(ranges, client, server, *RANGES[name])) for name in ours]
    rows += [("404", functools.partial(missing_file, client, server))]
    rows += [("50 files", functools.partial(many, client, server))]
    rows += [("ipv6", functools.partial(ipv6, client, server))]
    rows += [("chacha20 by client", functools.partial(chacha20_client, client, server))]
    rows += [("aes256 by client", functools.partial(aes256, client, server))]
    rows += [("key update by client", functools.partial(key_update, client, server, [2 * MB]))]
    if client != "aioquic":  # it misses the body that an answer to HEAD does not have
        rows += [("head", functools.partial(head, client, server))]
    if server != "caddy":  # its configuration has neither
        rows += [("retry", functools.partial(retry, client, server))]
        rows += [("chacha20 by server", functools.partial(chacha20, client, server))]
        rows += [("key update by server", functools.partial(key_update_by_server, client, server))]
    return rows


def special(client, server):
    """What needs both ends to go beyond the common."""
    rows = []
    if client == "aioquic":
        three = functools.partial(key_update, client, server, [2 * MB, 5 * MB, 8 * MB])
        rows += [("3 key updates by client", three)]
        rows += [("unknown version", functools.partial(unknown_version, client, server))]
        rows += [("version 1 or 2", functools.partial(version_1_or_2, client, server))]
    if {client, server} <= {"aioquic", "tercel"}:
        rows += [("version 2", functools.partial(version_2, client, server))]
    return rows


def all_cases(pairs):
    """The cases of these (client, server) pairs, and those of the capture."""
    cases = []
    for client, server in pairs:
        rows = common(client, server) + special(client, server)
        cases += [Case(f"{client} from {server}: {name}", run) for name, run in rows]
    for client, server in pairs:
        if client == "tercel" or (client == "quinn" and server != "caddy"):
            run = functools.partial(check_capture, client, server)
            cases.append(Case(f"{client} from {server}: dissected", run))
    checkable = next((pair for pair in pairs if pair in (("quinn", "tercel"), ("quinn", "quinn"))), None)
    if checkable:
        run = functools.partial(check_capture_checker, *checkable)
        cases.append(Case("the dissector notices damage", run))
    return cases
