#!/bin/bash
# The load generator beside h2load, and the server beside nginx, over HTTP/1.1 and HTTP/2.
#
#   tests/load/compare.sh [TERCEL [TRIALS]]
#
# Starts nginx with one worker and `tercel serve` with one thread for TCP, both on free ports, with the same files and the same
# certificate, and measures by measure.py: alternating trials, medians, the interval of each ratio, and a verdict for each row.
# Takes about three and a half minutes with 9 trials (the default); wants two cores without other load.
# Needs nginx, h2load, openssl and python3. Exits with 1 if a verdict is bad, with 3 if the noise leaves one open.
set -euo pipefail

tercel=$(realpath "${1:-target/release/tercel}")
trials=${2:-9}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'kill ${nginx:-} ${ours:-} 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$work"' EXIT

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
on_core() { local core=$1; shift; if [ "$(nproc)" -ge 2 ]; then exec taskset -c "$core" "$@"; else exec "$@"; fi; }

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost \
    -addext subjectAltName=DNS:localhost -keyout "$work/key.pem" -out "$work/cert.pem" 2>/dev/null
mkdir "$work/files"
head -c 630 /dev/zero | tr '\0' x > "$work/files/small"
head -c 10485760 /dev/urandom > "$work/files/large"
chmod -R a+rX "$work"
port=$(free_port)
cat > "$work/nginx.conf" <<CONF
daemon off; worker_processes 1; pid $work/pid; error_log $work/error.log;
events { worker_connections 4096; }
http {
    access_log off; keepalive_requests 100000000; sendfile on; tcp_nopush on;
    client_body_temp_path $work/body; proxy_temp_path $work/proxy; fastcgi_temp_path $work/fastcgi;
    uwsgi_temp_path $work/uwsgi; scgi_temp_path $work/scgi;
    server {
        listen 127.0.0.1:$port ssl http2; server_name localhost; root $work/files; http2_max_concurrent_streams 128;
        ssl_certificate $work/cert.pem; ssl_certificate_key $work/key.pem;
    }
}
CONF
(on_core 0 nginx -c "$work/nginx.conf" -p "$work" > /dev/null 2>&1) &
nginx=$!
own_port=$(free_port)
(on_core 0 "$tercel" serve --workers 1 --listen "127.0.0.1:$own_port" --cert "$work/cert.pem" --key "$work/key.pem" \
    --access-log off "$work/files" > "$work/serve.log" 2>&1) &
ours=$!
for each in "$port" "$own_port"; do
    for _ in $(seq 100); do
        curl -sk -o /dev/null "https://localhost:$each/small" && break
        sleep 0.05
    done
done
worker=$(pgrep -P "$nginx" | head -1)
status=0
python3 "$here/measure.py" --tercel "$tercel" --trials "$trials" \
    --nginx "$port" "$worker" --ours "$own_port" "$ours" || status=$?
exit "$status"
