"""How to start each server and to call each client: the only place that knows their command lines.

A server is a function (workshop, options) -> authority ("127.0.0.1:4433"). A client is a function
(workshop, authority, request) -> list of Result, one per path.
"""

import dataclasses
import json
import os
import re
import socket
import sys

from workshop import CACHE, ROOT, Failure, expect, read_ready, sha256, shown

TERCEL = os.environ.get("TERCEL", str(ROOT / "target/release/tercel"))
QUINN = ROOT / "target/peers/release/quinn-peer"
HERE = ROOT / "tests/interop"
# tercel updates keys after so many packets that it sent, its peers after bytes of a body: full packets one way, one
# acknowledgement for a whole train of them the other way.
PACKET, TRAIN = 1_200, 80


@dataclasses.dataclass
class Serving:
    """What is asked of a server beside files."""

    host: str = "127.0.0.1"
    retry: bool = False
    cipher: str | None = None
    key_update_after: int | None = None
    quic_version: str | None = None
    single_datagrams: bool = False  # for captures: a train would be seen as one huge datagram
    env: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Request:
    """What is asked of a client."""

    paths: list
    range: str | None = None
    head: bool = False
    cipher: str | None = None
    key_update_after: list = dataclasses.field(default_factory=list)
    quic_version: str = "1"
    pcap: str | None = None
    single_datagrams: bool = False
    timeout: int = 60
    env: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Result:
    """What came back for one path, and of the connection what the client can tell."""

    status: int
    size: int
    sha256: str | None
    content_length: int | None = None
    connection: dict = dataclasses.field(default_factory=dict)


def bracketed(host):
    return f"[{host}]" if ":" in host else host


def serving_command(program, workshop, serving, ready):
    """What the servers have in common."""
    command = [*program, workshop.files, "--listen", f"{bracketed(serving.host)}:0", "--ready-file", ready]
    command += ["--cert", workshop.certificates / "cert.pem", "--key", workshop.certificates / "key.pem"]
    command += ["--cipher", serving.cipher] if serving.cipher else []
    return command


def start(workshop, serving, command, ready):
    port = workshop.start(command, lambda: read_ready(ready), serving.env)["port"]
    return f"{bracketed(serving.host)}:{port}"


def serve_tercel(workshop, serving):
    ready = workshop.folder / "ready.json"
    command = serving_command([TERCEL, "serve"], workshop, serving, ready)
    # As on Ethernet: loopback takes packets of 64 KB, which are too few for what is counted in packets.
    command += ["--mtu-ceiling", 1_472]
    command += ["--retry", "always"] if serving.retry else []
    command += ["--key-update-after", serving.key_update_after // PACKET] if serving.key_update_after else []
    command += ["--datapath", "plain"] if serving.single_datagrams else []
    return start(workshop, serving, command, ready)


def serve_quinn(workshop, serving):
    ready = workshop.folder / "ready.json"
    command = serving_command([QUINN, "serve"], workshop, serving, ready)
    command += ["--retry", "always"] if serving.retry else []
    command += ["--key-update-after", serving.key_update_after] if serving.key_update_after else []
    command += ["--no-gso"] if serving.single_datagrams else []
    return start(workshop, serving, command, ready)


def serve_aioquic(workshop, serving):
    ready = workshop.folder / "ready.json"
    command = serving_command([sys.executable, HERE / "aioquic_serve.py"], workshop, serving, ready)
    command += ["--retry"] if serving.retry else []
    command += ["--key-update"] if serving.key_update_after else []
    command += ["--quic-version", serving.quic_version] if serving.quic_version else []
    return start(workshop, serving, command, ready)


CADDYFILE = """{{
    admin off
    auto_https off
    default_sni localhost
    servers {{
        protocols h1 h3
    }}
}}
https://:{port} {{
    bind {host}
    tls {certificates}/cert.pem {certificates}/key.pem
    root * {files}
    file_server
}}
"""


def serve_caddy(workshop, serving):
    port = free_port(serving.host)
    config = workshop.folder / "Caddyfile"
    config.write_text(
        CADDYFILE.format(
            port=port, host=serving.host, certificates=workshop.certificates, files=workshop.files
        )
    )
    command = ["caddy", "run", "--adapter", "caddyfile", "--config", config]
    homes = dict.fromkeys(("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"), str(workshop.folder))
    workshop.start(command, lambda: listens(port), homes | serving.env, clean_exit=False)
    return f"{bracketed(serving.host)}:{port}"


def free_port(host):
    """A port that is free at the moment: Caddy cannot tell which one it was given."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.bind((host, 0))
        return probe.getsockname()[1]


def listens(port):
    """Whether any process has this UDP port."""
    for table in ("/proc/net/udp", "/proc/net/udp6"):
        if os.path.exists(table) and f":{port:04X} " in open(table).read():
            return True
    return False


def get_tercel(workshop, authority, request):
    folder = workshop.folder / "bodies"
    folder.mkdir()
    command = [TERCEL, "get", "--json", "--cacert", workshop.certificates / "ca.pem"]
    command += [f"https://{authority}/{path}" for path in request.paths]
    command += ["--head"] if request.head else ["-o", f"{folder}/"]
    command += ["--parallel", "20"] if len(request.paths) > 1 else []
    command += ["--range", request.range] if request.range else []
    command += ["--cipher", request.cipher] if request.cipher else []
    command += ["--quic-version", "2"] if request.quic_version == "2" else []
    for after in request.key_update_after[:1]:
        command += ["--key-update-after", after // PACKET // TRAIN]
    command += ["--pcap", request.pcap] if request.pcap else []
    done = workshop.run(command, request.timeout, request.env)
    lines = [json.loads(line) for line in (done.stdout + done.stderr).splitlines() if line.startswith("{")]
    results = [tercel_result(told, folder, done.stdout, request.range) for told in lines]
    refused = lines and all(400 <= told["status"] < 500 for told in lines)
    expect(
        done.returncode == (22 if refused else 0),
        f"{shown(command)} ended with {done.returncode}: {done.stderr.strip()[-500:]}",
    )
    # Downloads end in any order.
    order = [f"https://{authority}/{path}" for path in request.paths]
    return [result for _, result in sorted(zip(lines, results), key=lambda pair: order.index(pair[0]["url"]))]


def tercel_result(told, folder, printed, asked_for_a_range):
    told["key_updates_by_client"] = told["key_updates_by_server"] = told.get("key_updates", 0)
    length = re.search(r"^content-length: (\d+)", printed, re.MULTILINE)
    body = folder / told["url"].rpartition("/")[2]
    hash, size = (sha256(body), body.stat().st_size) if body.exists() else (None, 0)
    # With several requests at a time it asks for a whole file as a range too.
    status = 200 if told["status"] == 206 and not asked_for_a_range else told["status"]
    return Result(status, size, hash, int(length[1]) if length else None, told)


def get_quinn(workshop, authority, request):
    command = [QUINN, "get", "--cacert", workshop.certificates / "ca.pem"]
    command += [f"https://{authority}/{path}" for path in request.paths]
    command += [f"--range={request.range}"] if request.range else []
    command += ["--head"] if request.head else []
    command += ["--cipher", request.cipher] if request.cipher else []
    for after in request.key_update_after[:1]:
        command += ["--key-update-after", after]
    command += ["--no-gso"] if request.single_datagrams else []
    told = told_by(command, workshop.run(command, request.timeout, request.env))
    return [Result(part["status"], part["bytes"], part["sha256"], part["content_length"]) for part in told]


def get_aioquic(workshop, authority, request):
    command = [sys.executable, HERE / "aioquic_get.py", "--cacert", workshop.certificates / "ca.pem"]
    command += [f"https://{authority}/{path}" for path in request.paths]
    command += [f"--range={request.range}"] if request.range else []
    command += ["--head"] if request.head else []
    command += ["--cipher", request.cipher] if request.cipher else []
    command += ["--quic-version", request.quic_version]
    for after in request.key_update_after:
        command += ["--key-update-after", after]
    told = told_by(command, workshop.run(command, request.timeout, request.env))
    return [
        Result(part["status"], part["bytes"], part["sha256"], part["content_length"], told)
        for part in told["downloads"]
    ]


def told_by(command, done):
    if done.returncode != 0:
        raise Failure(f"{shown(command)} ended with {done.returncode}: {done.stderr.strip()[-500:]}")
    return json.loads(done.stdout)


SERVERS = {"tercel": serve_tercel, "quinn": serve_quinn, "caddy": serve_caddy, "aioquic": serve_aioquic}
CLIENTS = {"tercel": get_tercel, "quinn": get_quinn, "aioquic": get_aioquic}


def missing():
    """What is not there yet, in words."""
    needed = {QUINN: "tests/setup", CACHE / "venv": "tests/setup"}
    return [f"{path} is missing: run {remedy}" for path, remedy in needed.items() if not os.path.exists(path)]
