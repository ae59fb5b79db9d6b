"""What a case works with: files to transfer, a certificate, processes that end when the case does.

A case gets a Workshop of its own: a folder that is removed afterwards, and a list of the processes that it started,
which are ended by their id. Nothing that others started is touched.
"""

import datetime
import hashlib
import ipaddress
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
CACHE = ROOT / "target/tests"
SCALE = float(os.environ.get("TIMEOUT_SCALE", "1"))  # for slow machines and sanitizers

KB, MB = 1_000, 1_000_000
FILES = {"0": 0, "1": 1, "1k": KB, "1m": MB, "10m": 10 * MB, "100m": 100 * MB}
MANY = [f"many/{number}" for number in range(50)]


class Failure(Exception):
    """A case did not go as it should; the text says what was expected and what happened."""


def expect(condition, text):
    if not condition:
        raise Failure(text)


def make_files():
    """The folder that servers serve. Kept from run to run: its content depends on nothing but the names."""
    folder = CACHE / "files"
    for name, size in (FILES | {name: 20 * KB + 1 for name in MANY}).items():
        path = folder / name
        if not path.is_file() or path.stat().st_size != size:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(random.Random(name).randbytes(size))
    return folder


def make_certificate(folder):
    """An authority and a certificate by it, in PEM: ca.pem, cert.pem, key.pem, valid for a day."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    now = datetime.datetime.now(datetime.timezone.utc)
    hour, day = datetime.timedelta(hours=1), datetime.timedelta(days=1)

    def name(text):
        return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])

    def begin(subject, key):
        builder = x509.CertificateBuilder().subject_name(name(subject)).issuer_name(name("test authority"))
        builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
        return builder.not_valid_before(now - hour).not_valid_after(now + day)

    def write(path, content):
        (folder / path).write_bytes(content)

    authority, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    ca = begin("test authority", authority).add_extension(x509.BasicConstraints(True, None), critical=True)
    addresses = [x509.IPAddress(ipaddress.ip_address(text)) for text in ("127.0.0.1", "::1")]
    names = x509.SubjectAlternativeName([x509.DNSName("localhost"), *addresses])
    leaf = begin("localhost", key).add_extension(names, critical=False)
    leaf = leaf.add_extension(x509.BasicConstraints(False, None), critical=True)
    pem = serialization.Encoding.PEM
    write("ca.pem", ca.sign(authority, hashes.SHA256()).public_bytes(pem))
    write("cert.pem", leaf.sign(authority, hashes.SHA256()).public_bytes(pem))
    private = serialization.PrivateFormat.PKCS8
    write("key.pem", key.private_bytes(pem, private, serialization.NoEncryption()))


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of_part(path, begin, end):
    with open(path, "rb") as file:
        file.seek(begin)
        return hashlib.sha256(file.read(end - begin)).hexdigest()


class Workshop:
    """The place where one case is carried out."""

    def __init__(self, certificates):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tercel-interop-"))
        self.certificates = certificates
        self.files = CACHE / "files"
        self.servers = []
        self.logs = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for server, _, _ in self.servers:
            if server.poll() is None:
                server.kill()
                server.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, command, ready, env=None, clean_exit=True):
        """Starts a server and waits until `ready()` returns something, which it returns."""
        log = self.folder / f"log-{len(self.logs)}"
        self.logs.append(log)
        with open(log, "wb") as out:
            server = subprocess.Popen(
                list(map(str, command)), stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                env=os.environ | (env or {}),
            )
        self.servers.append((server, log, clean_exit))
        deadline = time.monotonic() + 20 * SCALE
        while time.monotonic() < deadline:
            if server.poll() is not None:
                raise Failure(f"{shown(command)} ended at once with code {server.returncode}: {tail(log)}")
            if found := ready():
                return found
            time.sleep(0.02)
        raise Failure(f"{shown(command)} does not get ready: {tail(log)}")

    def stop_servers(self):
        """Asks the servers to end, as an operator would, and looks at how they do."""
        for server, log, clean_exit in self.servers:
            if server.poll() is None:
                server.send_signal(signal.SIGTERM)
                try:
                    server.wait(10 * SCALE)
                except subprocess.TimeoutExpired:
                    raise Failure(f"the server did not end within 10 s of SIGTERM: {tail(log)}") from None
            if clean_exit:
                expect(server.returncode == 0, f"the server ended with {server.returncode}: {tail(log)}")
        self.servers.clear()

    def run(self, command, timeout, env=None):
        """Runs a client to its end; the caller looks at its exit code."""
        command = list(map(str, command))
        try:
            return subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                timeout=timeout * SCALE, env=os.environ | (env or {}),
            )
        except subprocess.TimeoutExpired as expired:
            heard = (expired.stderr or b"").decode(errors="replace")
            raise Failure(f"{shown(command)} took more than {timeout} s: {heard[-300:]}") from None


def shown(command):
    return " ".join(pathlib.Path(str(part)).name if os.sep in str(part) else str(part) for part in command)[:200]


def tail(log):
    return log.read_text(errors="replace").strip()[-500:] or "it said nothing"


def read_ready(path):
    """The content of a ready file, once there is one."""
    return json.loads(path.read_text()) if path.exists() else None
