#!/bin/bash
# The load generator beside h2load: the same server, the same counts, alternating.
#
#   tests/load/compare.sh [TERCEL [TRIALS]]
#
# Starts nginx with one worker and a configuration of its own on a free port, asks it for a small file over HTTP/1.1 and HTTP/2
# with both programs, and prints every rate and the ratio of the means. Needs nginx, h2load and openssl.
set -euo pipefail

tercel=${1:-target/release/tercel}
trials=${2:-5}
work=$(mktemp -d)
trap 'kill "${server:-}" 2>/dev/null || true; rm -rf "$work"' EXIT

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost \
    -addext subjectAltName=DNS:localhost -keyout "$work/key.pem" -out "$work/cert.pem" 2>/dev/null
head -c 630 /dev/zero | tr '\0' x > "$work/small"
chmod 755 "$work"
cat > "$work/nginx.conf" <<CONF
daemon off; worker_processes 1; pid $work/pid; error_log $work/error.log;
events { worker_connections 4096; }
http {
    access_log off; keepalive_requests 100000000; sendfile on; tcp_nopush on;
    client_body_temp_path $work/body; proxy_temp_path $work/proxy; fastcgi_temp_path $work/fastcgi;
    uwsgi_temp_path $work/uwsgi; scgi_temp_path $work/scgi;
    server {
        listen 127.0.0.1:$port ssl http2; server_name localhost; root $work; http2_max_concurrent_streams 128;
        ssl_certificate $work/cert.pem; ssl_certificate_key $work/key.pem;
    }
}
CONF
nginx -c "$work/nginx.conf" -p "$work" 2>/dev/null &
server=$!
url=https://localhost:$port/small
for _ in $(seq 100); do curl -sk -o /dev/null "$url" && break; sleep 0.05; done

ours() { # version connections streams requests
    "$tercel" load -k -q --json --http "$1" -c "$2" -m "$3" -n "$4" --server-pid "$(worker)" "$url" |
        python3 -c 'import json, sys; r = json.load(sys.stdin); assert r["failed"] == 0, r; print(round(r["requests_per_second"]))'
}
theirs() {
    local flags=(); [ "$1" = 1 ] && flags=(--h1)
    h2load "${flags[@]}" -c "$2" -m "$3" -n "$4" "$url" | sed -n 's|.*, \([0-9.]*\) req/s.*|\1|p' | cut -d. -f1
}
worker() { pgrep -P "$server" | head -1; }

compare() { # name version connections streams requests
    local name=$1; shift
    local mine=() other=()
    ours "$@" > /dev/null; theirs "$@" > /dev/null
    for _ in $(seq "$trials"); do mine+=("$(ours "$@")"); other+=("$(theirs "$@")"); done
    python3 - "$name" "${mine[*]}" "${other[*]}" <<'PY'
import sys
name, mine, other = sys.argv[1], *[[float(x) for x in text.split()] for text in sys.argv[2:4]]
mean = lambda values: sum(values) / len(values)
print(f"{name}\n  tercel {mine}\n  h2load {other}\n  ratio of the means {mean(mine) / mean(other):.3f}")
PY
}

compare "HTTP/1.1, 20 connections" 1 20 1 60000
compare "HTTP/2, 10 connections x 10 streams" 2 10 10 60000
compare "HTTP/2, 1 connection x 1 stream" 2 1 1 15000
