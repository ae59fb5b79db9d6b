"""The reverse proxy of tercel beside those of nginx, HAProxy and Caddy, whichever are installed.

An nginx of one process is the upstream, by HTTP/1.1 on loopback; h2load asks. Both have one core, the proxies the other one, and one thread each.
A proxy keeps its connections to the upstream, logs nothing and adds X-Forwarded-For. In each round every proxy is asked in an order drawn anew;
CPU time is the proxy's own, from the kernel's accounts. A ratio is nginx's CPU time over the proxy's in the same round.

The row "tercel, h3" is tercel before an upstream of HTTP/3, which is another tercel, as the others here have no such upstreams. Its ratio beside
nginx's is one between different upstreams.
"""

import argparse
import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
UPSTREAM, TERCEL, UPSTREAM_H3, TERCEL_H3 = 18800, 18801, 18810, 18811
# name: path, flags of h2load, requests a round
WORK = {
    "630 B, HTTP/2": ("/small", ["-c", "32", "-m", "10"], 40_000),
    "630 B, HTTP/1.1": ("/small", ["-c", "32", "--h1"], 20_000),
    "1 MB, HTTP/2": ("/large", ["-c", "32", "-m", "1"], 400),
    "1 MB, HTTP/1.1": ("/large", ["-c", "32", "--h1"], 400),
}

NGINX_UPSTREAM = """
daemon off; worker_processes 1; pid {folder}/upstream.pid; error_log {folder}/upstream.log;
events {{ worker_connections 4096; }}
http {{
    access_log off; keepalive_requests 1000000000; keepalive_timeout 600s;
    server {{
        listen 127.0.0.1:{upstream};
        location /small {{ default_type text/plain; return 200 "{body}"; }}
        location /large {{ root {folder}; }}
    }}
}}
"""

NGINX = """
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/nginx.log;
events {{ worker_connections 4096; }}
http {{
    access_log off; keepalive_requests 1000000000;
    upstream u {{ server 127.0.0.1:{upstream}; keepalive 256; keepalive_requests 1000000000; }}
    server {{
        listen 127.0.0.1:{port} ssl http2;
        ssl_certificate {certificate}; ssl_certificate_key {key};
        location / {{
            proxy_pass http://u; proxy_http_version 1.1;
            proxy_set_header Connection ""; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
        }}
    }}
}}
"""

HAPROXY = """
global
  nbthread 1
  maxconn 4096
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  option forwardfor
  http-reuse always
frontend f
  bind 127.0.0.1:{port} ssl crt {both} alpn h2,http/1.1
  default_backend b
backend b
  server s 127.0.0.1:{upstream}
"""

CADDY = """
{{
  admin off
  auto_https off
}}
https://localhost:{port} {{
  tls {certificate} {key}
  reverse_proxy 127.0.0.1:{upstream}
}}
"""

OURS = """
listen = "127.0.0.1:{port}"
workers = 1
access-log = "off"

[[site]]
names = ["localhost"]

[[site.route]]
path = "/"
proxy = {{ to = "{to}", keep-alive = 256{more} }}
"""
H3 = "tercel, h3"

# name: program, configuration, file, its arguments
OTHERS = {
    "nginx": ("nginx", NGINX, "nginx.conf", ["-p", "{folder}", "-c", "{folder}/nginx.conf"]),
    "HAProxy": ("haproxy", HAPROXY, "haproxy.cfg", ["-f", "{folder}/haproxy.cfg"]),
    "Caddy": ("caddy", CADDY, "Caddyfile", ["run", "--config", "{folder}/Caddyfile", "--adapter", "caddyfile"]),
}


def family(pid):
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(one for child in children for one in family(int(child)))]


def cpu_seconds(pid):
    """Of all threads of a process and of its children."""
    tasks = [task for one in family(pid) for task in pathlib.Path(f"/proc/{one}/task").iterdir()]
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


class Bench:
    def __init__(self, folder, tercel, stack):
        self.folder, self.tercel, self.stack = folder, tercel, stack
        self.environment = dict(os.environ, GOMAXPROCS="1", HOME=str(folder), XDG_DATA_HOME=str(folder / "data"))
        self.proxies = {}

    def start(self, core, *command):
        log = (self.folder / f"{pathlib.Path(command[0]).name}.err").open("w")
        process = subprocess.Popen(
            ["taskset", "-c", str(core), *map(str, command)], stdout=subprocess.DEVNULL, stderr=log, env=self.environment)
        self.stack.callback(self.stop, process)
        return process

    @staticmethod
    def stop(process):
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def prepare(self):
        (self.folder / "large").write_bytes(random.randbytes(1_000_000))
        facts = {"folder": self.folder, "upstream": UPSTREAM, "body": "x" * 630}
        (self.folder / "upstream.conf").write_text(NGINX_UPSTREAM.format(**facts))
        self.start(0, "nginx", "-p", self.folder, "-c", self.folder / "upstream.conf")
        # tercel's certificate for development is everyone's.
        self.start_tercel("tercel", TERCEL, f"http://127.0.0.1:{UPSTREAM}")
        certificates = self.folder / "data/tercel"
        pems = {"key": certificates / "development.pem", "certificate": certificates / "development-certificate.pem"}
        files, ready = self.folder / "files", self.folder / "upstream.ready"
        files.mkdir()
        (files / "small").write_text("x" * 630)
        shutil.copy(self.folder / "large", files)
        upstream = self.start(
            0, self.tercel, "serve", "--http", "3", "--listen", f"localhost:{UPSTREAM_H3}", "--access-log", "off", "--ready-file", ready, files)
        self.wait_until("the upstream of HTTP/3", upstream, ready.exists)
        self.start_tercel(H3, TERCEL_H3, f"h3://localhost:{UPSTREAM_H3}", f', tls-ca = "{pems["certificate"]}"')
        both = self.folder / "both.pem"
        both.write_text(pems["certificate"].read_text() + pems["key"].read_text())
        for number, (name, (program, configuration, file, arguments)) in enumerate(OTHERS.items()):
            if not shutil.which(program):
                print(f"without {name}: it is not installed", file=sys.stderr)
                continue
            port = TERCEL + 1 + number
            (self.folder / file).write_text(configuration.format(port=port, both=both, **pems, **facts))
            process = self.start(1, program, *(argument.format(folder=self.folder) for argument in arguments))
            self.proxies[name] = (process, port)
        for name, (process, port) in self.proxies.items():
            self.wait_until(name, process, lambda: self.ask(port, "/small", ["-c", "1"], 1))

    def start_tercel(self, name, port, to, more=""):
        file, ready = self.folder / f"{port}.toml", self.folder / f"{port}.ready"
        file.write_text(OURS.format(port=port, to=to, more=more))
        process = self.start(1, self.tercel, "serve", "--config", file, "--ready-file", ready)
        self.wait_until(name, process, ready.exists)
        self.proxies[name] = (process, port)

    def wait_until(self, name, process, condition):
        until = time.monotonic() + 10
        while not condition():
            if process.poll() is not None or time.monotonic() > until:
                logs = "".join(path.read_text()[-500:] for path in self.folder.glob("*.err"))
                sys.exit(f"{name} does not answer:\n{logs}")
            time.sleep(0.1)

    def ask(self, port, path, flags, count):
        """Requests a second, or 0 if a request had no answer of status 200."""
        command = ["taskset", "-c", "0", "h2load", "-n", str(count), *flags, f"https://localhost:{port}{path}"]
        said = subprocess.run(command, capture_output=True, text=True, timeout=120).stdout
        answered = re.search(r"status codes: (\d+) 2xx", said)
        if not answered or int(answered[1]) != count:
            return 0
        return float(re.search(r"finished in .*?, ([\d.]+) req/s", said)[1])

    def round(self):
        found = {}
        for work, (path, flags, count) in WORK.items():
            names = list(self.proxies)
            random.shuffle(names)
            for name in names:
                process, port = self.proxies[name]
                before = cpu_seconds(process.pid)
                rate = self.ask(port, path, flags, count)
                if not rate:
                    sys.exit(f"{name}: not all of {count} requests ({work}) were answered by status 200")
                found[work, name] = (rate, (cpu_seconds(process.pid) - before) / count * 1e6)
        return found


def rows(rounds):
    for work in WORK:
        for name in sorted({name for one in rounds for _, name in one}):
            mine = [one[work, name] for one in rounds]
            ratios = [one[work, "nginx"][1] / one[work, name][1] for one in rounds] if (work, "nginx") in rounds[0] else []
            yield {
                "work": work, "proxy": name, "requests_per_second": statistics.median(rate for rate, _ in mine),
                "cpu_us_per_request": statistics.median(cpu for _, cpu in mine),
                "nginx_over_this": [min(ratios), statistics.median(ratios), max(ratios)] if ratios else None,
            }


def main():
    parser = argparse.ArgumentParser(prog="tests/proxy/run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="rounds that count, after one that does not (default: %(default)s)")
    parser.add_argument("--tercel", default=ROOT / "target/release/tercel", help="the program (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="a line of JSON for each row")
    options = parser.parse_args()
    if missing := [program for program in ("nginx", "h2load", "taskset") if not shutil.which(program)]:
        sys.exit(f"please install {', '.join(missing)}: Debian has nginx-light, nghttp2-client and util-linux")
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tercel-proxy-")))
        folder.chmod(0o755)
        bench = Bench(folder, pathlib.Path(options.tercel).resolve(), stack)
        bench.prepare()
        bench.round()
        rounds = []
        for number in range(options.rounds):
            print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
            rounds.append(bench.round())
    for row in rows(rounds):
        if options.json:
            print(json.dumps(row))
            continue
        ratio = "  nginx takes {1:.2f} times that ({0:.2f} to {2:.2f})".format(*row["nginx_over_this"]) if row["nginx_over_this"] else ""
        rate, cpu = row["requests_per_second"], row["cpu_us_per_request"]
        print(f"{row['work']:16}{row['proxy']:11}{rate:9.0f} requests/s{cpu:9.1f} µs of CPU{ratio}")


if __name__ == "__main__":
    main()
