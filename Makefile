# tercel: the main jobs. Each target does its own set-up on a fresh Debian 12 with Rust, cc, make and Python 3.11.

.PHONY: help build dist experiments test datapaths interop soak upgrade demo peers release release-test clean

help:
	@echo "make build   the tercel binary, optimised: target/release/tercel"
	@echo "make dist    the same with link-time optimisation, for measurements and releases: target/dist/tercel"
	@echo "make experiments  the same for study E6, able to do without techniques of connections: target/experiments/dist/tercel"
	@echo "make demo    serve, download over HTTP/3, verify, measure, print"
	@echo "make test    everything that has to pass before a change lands"
	@echo "make datapaths  only HTTP/3 over every data path (as root: AF_XDP and namespaces too)"
	@echo "make interop only the downloads by and from independent implementations, and CI's part of docs/interop.md (as root)"
	@echo "make soak    ten minutes of hostile clients, signals and restarts beside honest clients that check every byte"
	@echo "make release  what is released: a static program, a Debian package, an OCI image, an SBOM: target/packages"
	@echo "make release-test  installs and starts each of them in a bare root (as root)"
	@echo "make upgrade  ten reloads and ten upgrades in ten minutes of load, with one worker and two (SHORT=1: one minute)"
	@echo "make peers   the servers that the studies E4 and E5 compare tercel with, each tried once"

build:
	cargo build --release --locked --package tercel-cli

dist:
	cargo build --profile dist --locked --package tercel-cli

demo: build
	tests/demo/run

experiments:
	cargo build --profile dist --locked --package tercel-cli --features experiments --target-dir target/experiments

test:
	tests/setup
	cargo xtask ci
	$(MAKE) interop

datapaths:
	cargo test --locked --package tercel-cli --test datapaths

interop: build
	tests/setup
	tests/interop/run
	cargo xtask interop --ci

soak: build
	tests/setup
	tests/soak/run

upgrade: build
	tests/upgrade/run $(if $(SHORT),--short)

peers: dist
	cargo build --profile dist --locked --package tercel-bench --example axum_hello
	peers/build
	TERCEL=target/dist/tercel peers/check

release:
	packaging/build

release-test:
	packaging/test

clean:
	cargo clean
