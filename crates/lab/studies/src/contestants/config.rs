//! The configurations of nginx and Caddy: one worker, no logs, files from a folder, TLS 1.3 with AES-128-GCM where it can be
//! chosen, and connections that live for as many requests as a study makes.

use std::net::SocketAddr;

use super::TestSite;

/// nginx in one process: the one that we started is the one that works. `sendfile` and `tcp_nopush` are what its documentation
/// advises for files, an open-file cache spares looking the file up, and TLS records are as large as they may be.
pub(super) fn nginx(ground: &TestSite, address: SocketAddr) -> String {
    let folder = ground.folder().display();
    let [files, certificate, key] = shown(ground);
    format!(
        "daemon off;
master_process off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/nginx.log crit;
events {{
    worker_connections 4096;
}}
http {{
    access_log off;
    default_type application/octet-stream;
    sendfile on;
    tcp_nopush on;
    tcp_nodelay on;
    keepalive_timeout 300;
    keepalive_requests 1000000000;
    http2_max_concurrent_streams 128;
    http2_chunk_size 16k;
    open_file_cache max=100 inactive=1h;
    open_file_cache_valid 1h;
    client_body_temp_path {folder}/nginx-body;
    proxy_temp_path {folder}/nginx-proxy;
    fastcgi_temp_path {folder}/nginx-fastcgi;
    uwsgi_temp_path {folder}/nginx-uwsgi;
    scgi_temp_path {folder}/nginx-scgi;
    server {{
        listen {address} ssl http2 backlog=1024;
        ssl_certificate {certificate};
        ssl_certificate_key {key};
        ssl_protocols TLSv1.3;
        ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;
        ssl_buffer_size 16k;
        root {files};
    }}
}}
"
    )
}

/// Caddy, without its administration and its search for certificates. Go's TLS prefers AES-128-GCM by itself.
pub(super) fn caddy(ground: &TestSite, address: SocketAddr) -> String {
    let [files, certificate, key] = shown(ground);
    let (ip, port) = (address.ip(), address.port());
    format!(
        "{{
    admin off
    auto_https off
    default_sni localhost
    log {{
        output discard
    }}
    servers {{
        protocols h1 h2 h3
    }}
}}
https://:{port} {{
    bind {ip}
    tls {certificate} {key}
    root * {files}
    file_server
}}
"
    )
}

fn shown(ground: &TestSite) -> [String; 3] {
    [ground.files(), ground.certificate(), ground.key()].map(|path| path.display().to_string())
}
