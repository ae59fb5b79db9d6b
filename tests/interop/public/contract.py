"""The arguments that all programs of the cases take, and what they do alike; see implementations.py. Needs nothing but Python."""

import argparse
import asyncio
import json
import os
import signal

NOT_OFFERED = 127
CHANGE_AFTER = 256 * 1024  # bytes of content after which a client updates its keys, or moves


def arguments():
    """What every program takes."""
    parser = argparse.ArgumentParser()
    ends = parser.add_subparsers(dest="end", required=True)
    server, client = ends.add_parser("server"), ends.add_parser("client")
    for end in (server, client):
        end.add_argument("--case", required=True)
    for flag in ("--listen", "--cert", "--key", "--root", "--ready-file"):
        server.add_argument(flag, required=True)
    for flag in ("--connect", "--cacert", "--output"):
        client.add_argument(flag, required=True)
    client.add_argument("--name", default="server")
    client.add_argument("--migrate-to")
    client.add_argument("paths", nargs="+")
    return parser


def host_and_port(authority):
    host, _, port = authority.rpartition(":")
    return host.strip("[]"), int(port)


async def until_stopped(options):
    """Tells by the ready file that the server listens, and waits for the order to stop."""
    unfinished = options.ready_file + ".unfinished"
    with open(unfinished, "w") as file:
        json.dump({"port": host_and_port(options.listen)[1]}, file)
    os.rename(unfinished, options.ready_file)
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    await ended.wait()
