"""What an independent dissector says about a transfer: tshark, with the key log, over every packet of it.

tercel writes the capture itself (--pcap), each datagram by itself. For a peer that cannot, dumpcap listens on the loopback
interface, which needs root, and both ends send datagrams singly, because the interface shows a train as one huge datagram.
"""

import os
import signal
import subprocess
import time

from peers import CLIENTS, SERVERS, Request, Serving
from workshop import FILES, SCALE, Failure, expect, sha256

FILE = "10m"
# Full packets carry about 1,450 bytes, those at the begin fewer, and the other direction acknowledges.
LEAST_DECRYPTED = FILES[FILE] // 1_472

# IMMEDIATE_ACK got its number after this tshark was made: of packets with it, only the other complaints count.
COMPLAINTS = """
    _ws.malformed || quic.decryption_failed || quic.protocol_violation || quic.bad_retry || quic.connection.unknown
    || quic.fragment.overlap.conflict || quic.fragment.error
    || ((quic.ft.unknown || _ws.expert.severity == error) && !(quic.frame_type == 0x1f))
"""


def check_capture(client, server, workshop):
    """A transfer in which the dissector decrypts everything and finds nothing wrong."""
    capture, keys, port = captured(client, server, workshop)
    decrypted, complaints = dissect(workshop, capture, keys, port)
    expect(not complaints, f"tshark complains about {len(complaints)} packets: {complaints[:3]}")
    expect(decrypted >= LEAST_DECRYPTED, f"tshark decrypted only {decrypted} packets, not {LEAST_DECRYPTED}")


def check_capture_checker(client, server, workshop):
    """A check that cannot fail proves nothing: damaged packets, or no keys, must be noticed."""
    capture, keys, port = captured(client, server, workshop)
    _, complaints = dissect(workshop, capture, keys, port)
    expect(not complaints, f"tshark complains about packets that are not damaged: {complaints[:3]}")
    damaged = workshop.folder / "damaged.pcapng"
    # Bytes after Ethernet, IPv6 and UDP headers: about one packet in fifty gets one wrong byte.
    damage = ["editcap", "-E", "0.000015", "-o", "80", "--seed", "1", capture, damaged]
    done = workshop.run(damage, 60)
    expect(done.returncode == 0, f"editcap ended with {done.returncode}: {done.stderr[-300:]}")
    _, complaints = dissect(workshop, damaged, keys, port)
    expect(complaints, "tshark does not notice damaged packets")
    # The capture holds its secrets, too.
    none, bare = workshop.folder / "no-keys", workshop.folder / "no-secrets.pcapng"
    none.touch()
    done = workshop.run(["editcap", "--discard-all-secrets", capture, bare], 60)
    expect(done.returncode == 0, f"editcap ended with {done.returncode}: {done.stderr[-300:]}")
    decrypted, _ = dissect(workshop, bare, none, port)
    expect(decrypted < LEAST_DECRYPTED, f"tshark decrypted {decrypted} packets without keys")


def captured(client, server, workshop):
    """Downloads with a capture: its file, the file of its keys, the server's port."""
    capture, keys = workshop.folder / "capture.pcapng", workshop.folder / "keys"
    by_client = client == "tercel"
    serving = Serving(single_datagrams=not by_client)
    authority = SERVERS[server](workshop, serving)
    port = int(authority.rpartition(":")[2])
    request = Request([FILE], single_datagrams=not by_client, env={"SSLKEYLOGFILE": str(keys)})
    if by_client:
        request.pcap = capture
        results = CLIENTS[client](workshop, authority, request)
    else:
        listener = listen(capture, port)
        try:
            results = CLIENTS[client](workshop, authority, request)
            time.sleep(0.5)  # what the kernel has not handed over yet
        finally:
            listener.send_signal(signal.SIGINT)
            listener.wait(10 * SCALE)
    expect(results[0].sha256 == sha256(workshop.files / FILE), "the content differs")
    workshop.stop_servers()
    expect(keys.exists() and keys.stat().st_size > 0, "no key log was written")
    return capture, keys, port


def listen(capture, port):
    """Starts to capture a port on the loopback interface."""
    expect(os.geteuid() == 0, "capturing on the loopback interface needs root")
    command = ["dumpcap", "-q", "-i", "lo", "-B", "64", "-f", f"udp port {port}", "-w", str(capture)]
    listener = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 10 * SCALE
    while not (capture.exists() and capture.stat().st_size > 0):
        if listener.poll() is not None or time.monotonic() > deadline:
            listener.kill()
            raise Failure("dumpcap does not capture")
        time.sleep(0.05)
    time.sleep(0.3)
    return listener


def dissect(workshop, capture, keys, port):
    """(packets with readable frames, lines about packets that are not as they should be)."""
    command = ["tshark", "-n", "-r", capture, "-o", f"tls.keylog_file:{keys}", "-d", f"udp.port=={port},quic"]
    readable = read(workshop, [*command, "-Y", "quic.frame_type", "-T", "fields", "-e", "quic.frame_type"])
    complaints = ["-Y", " ".join(COMPLAINTS.split()), "-T", "fields", "-e", "frame.number", "-e", "_ws.expert.message"]
    wrong = read(workshop, [*command, *complaints])
    return len(readable), wrong


def read(workshop, command):
    done = workshop.run(command, 120)
    expect(done.returncode == 0, f"tshark ended with {done.returncode}: {done.stderr[-300:]}")
    return done.stdout.splitlines()
