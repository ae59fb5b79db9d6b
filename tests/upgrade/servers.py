"""The servers that are reloaded and upgraded: tercel, and for comparison nginx and Caddy, each in the way that its documentation says."""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

PATIENCE = 300  # seconds for a process to end or to be replaced
SYSTEMD_STOP = 5  # seconds from SIGTERM to SIGKILL in the unit of Debian's Caddy

NGINX = """
user root; worker_processes {workers}; pid {folder}/nginx.pid; error_log {folder}/said;
events {{ worker_connections 4096; }}
http {{
    access_log off; keepalive_requests 1000000000;
    server {{
        listen {address}:{port} ssl http2;
        ssl_certificate {certificate}; ssl_certificate_key {key};
        root {folder}/root;
    }}
}}
"""

CADDY = """
{{
  admin unix/{folder}/admin.sock
  auto_https off
  servers {{
    protocols h1 h2 h3
  }}
}}
https://localhost:{port}, https://{address}:{port} {{
  bind {address}
  tls {certificate} {key}
  root * {folder}/root
  file_server
}}
"""


class Unfit(Exception):
    """The comparison cannot be made here."""


def is_running(process):
    try:
        status = pathlib.Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return status.rsplit(") ", 1)[1][0] != "Z"


class Server:
    """A server of a folder, and all processes that it has been. `inside` are words in front of its command."""

    versions = "123"

    def __init__(self, folder, address, inside):
        self.folder, self.address, self.inside = folder, address, list(inside)
        self.said = folder / "said"
        self.processes = []
        self.certificate, self.key = folder / "certificate.pem", folder / "key.pem"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "90",
             "-subj", "/CN=localhost", "-addext", f"subjectAltName=DNS:localhost,IP:{address}",
             "-keyout", self.key, "-out", self.certificate], check=True, capture_output=True)

    def wait(self, condition, what):
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > deadline:
                raise SystemExit(f"upgrade: {what}; see {self.said}:\n{self.said.read_text(errors='replace')[-2000:]}")
            time.sleep(0.02)

    def spawn(self, *command):
        env = os.environ | {"XDG_DATA_HOME": str(self.folder / "data"), "HOME": str(self.folder)}
        with open(self.said, "ab") as said:
            return subprocess.Popen(
                self.inside + list(map(str, command)), stdin=subprocess.DEVNULL, stdout=said, stderr=said, env=env
            )

    def count(self, words):
        return self.said.read_text(errors="replace").count(words)

    def running(self):
        return [process for process in self.processes if is_running(process)]

    def stop(self):
        """Ends the last one. Returns those that do not end."""
        if self.processes and is_running(self.processes[-1]):
            os.kill(self.processes[-1], signal.SIGTERM)
        deadline = time.monotonic() + PATIENCE
        while self.running() and time.monotonic() < deadline:
            self.first.poll()
            time.sleep(0.05)
        left = self.running()
        for process in left:
            os.kill(process, signal.SIGKILL)
        self.first.wait(10)
        return left


class Tercel(Server):
    """SIGHUP, and SIGUSR2."""

    def __init__(self, folder, address, inside, workers, flags, program):
        super().__init__(folder, address, inside)
        self.ready = folder / "ready.json"
        self.log = folder / "access.log"
        command = [program, "serve", folder / "root", "--listen", f"{address}:0", "--workers", workers, "--ready-file", self.ready]
        command += ["--cert", self.certificate, "--key", self.key]
        self.first = self.spawn(*command, "--access-log", self.log, *flags)
        # As long as it has not said more: without this it would stay if its start fails.
        self.processes = [self.first.pid]
        try:
            self.wait(lambda: self.ready.exists() or self.first.poll() is not None, "it does not start")
            told = json.loads(self.ready.read_text())
        except (OSError, SystemExit):
            self.stop()
            raise SystemExit(f"upgrade: it does not start: {self.said.read_text(errors='replace')[-2000:]}") from None
        self.port, self.processes = told["port"], [told["pid"]]

    def reload(self):
        before = self.count("reloaded: ")
        os.kill(self.processes[-1], signal.SIGHUP)
        self.wait(lambda: self.count("reloaded: ") > before, "it does not reload")

    def upgrade(self):
        """Returns the seconds until the new process serves."""
        before, began = self.count("tercel: upgraded: "), time.monotonic()
        os.kill(self.processes[-1], signal.SIGUSR2)
        self.wait(lambda: self.count("tercel: upgraded: ") > before, "it is not upgraded")
        seconds = time.monotonic() - began
        self.processes.append(json.loads(self.ready.read_text())["pid"])
        return seconds


class Other(Server):
    """One that is there for comparison. It has a file for each body."""

    program = None

    def __init__(self, folder, address, inside, workers, sizes, pattern):
        super().__init__(folder, address, inside)
        if not shutil.which(self.program):
            raise Unfit(f"{self.program} is not installed (Debian: apt-get install {self.package})")
        self.workers, self.port = workers, free_port()
        (folder / "root/bytes").mkdir()
        for size in sizes:
            with open(folder / f"root/bytes/{size}", "wb") as file:
                whole, rest = divmod(size, len(pattern))
                file.writelines([pattern] * whole + [pattern[:rest]])
        folder.chmod(0o755)
        self.said.touch()
        self.begin()

    def write(self, name, template):
        path = self.folder / name
        facts = {"folder": self.folder, "address": self.address, "port": self.port, "workers": self.workers}
        path.write_text(template.format(certificate=self.certificate, key=self.key, **facts))
        return path

    def answers(self):
        try:
            with socket.create_connection((self.address, self.port), 1):
                return True
        except OSError:
            return False


class Nginx(Other):
    """SIGHUP; SIGUSR2 to the master, and SIGQUIT to the old one when the new one has written its file: nginx.org/en/docs/control.html."""

    versions, program, package = "12", "nginx", "nginx-light"

    def begin(self):
        self.pid = self.folder / "nginx.pid"
        configuration = self.write("nginx.conf", NGINX)
        # In the foreground it takes no SIGUSR2.
        self.first = self.spawn(shutil.which("nginx"), "-p", self.folder, "-c", configuration)
        self.wait(lambda: self.first.poll() is not None, "nginx does not start")
        if self.first.returncode == 0:
            self.wait(lambda: self.number() and self.answers(), "nginx does not start")
            self.processes = [self.number()]
        else:
            raise SystemExit(f"upgrade: nginx does not start: {self.said.read_text()[-1000:]}")

    def number(self):
        """Of the master that runs; None while there is no file of it."""
        try:
            return int(self.pid.read_text())
        except (OSError, ValueError):
            return None

    def children(self):
        path = pathlib.Path(f"/proc/{self.processes[-1]}/task/{self.processes[-1]}/children")
        return set(path.read_text().split())

    def reload(self):
        before = self.children()
        os.kill(self.processes[-1], signal.SIGHUP)
        self.wait(lambda: len(self.children() - before) >= int(self.workers), "nginx does not reload")

    def upgrade(self):
        # It ignores the signal while the process that it has replaced still answers.
        self.wait(lambda: len(self.running()) == 1, "nginx still has an old process")
        began, old = time.monotonic(), self.processes[-1]
        os.kill(old, signal.SIGUSR2)
        self.wait(lambda: self.number() not in (None, old), "nginx is not upgraded")
        self.processes.append(self.number())
        self.wait(lambda: len(self.children()) >= int(self.workers), "the new nginx does not serve")
        os.kill(old, signal.SIGQUIT)
        return time.monotonic() - began


class Caddy(Other):
    """Its API; it has no upgrade, so it is restarted as systemd does that: SIGTERM, and SIGKILL after five seconds."""

    program = package = "caddy"

    def begin(self):
        self.configuration = self.write("Caddyfile", CADDY)
        inside = ["env", f"GOMAXPROCS={self.workers}"]
        self.first = self.spawn(*inside, "caddy", "run", "--config", self.configuration, "--adapter", "caddyfile")
        self.processes.append(self.first.pid)
        self.wait(self.answers, "Caddy does not start")

    def reload(self):
        command = ["caddy", "reload", "--config", self.configuration, "--adapter", "caddyfile", "--force"]
        command += ["--address", f"unix/{self.folder}/admin.sock"]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=PATIENCE)
        if done.returncode:
            raise SystemExit(f"upgrade: Caddy does not reload: {done.stderr[-1000:]}")

    def upgrade(self):
        began = time.monotonic()
        self.first.terminate()
        try:
            self.first.wait(SYSTEMD_STOP)
        except subprocess.TimeoutExpired:
            self.first.kill()
            self.first.wait()
        self.begin()
        return time.monotonic() - began


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]
