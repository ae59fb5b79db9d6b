"""Opens WebSockets over one connection of HTTP/2 with the library h2 (RFC 8441): one has messages echoed and is closed, one is given up, one is
broken off by the server. Prints what came as JSON. Run with --help."""

import argparse
import json
import socket
import ssl
import urllib.parse

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import DataReceived, RemoteSettingsChanged, ResponseReceived, StreamEnded, StreamReset

from websocket import CLOSE, TEXT, frame, parse

PATIENCE = 60  # seconds
TEXTS = ["", "a", "x" * 125, "y" * 126, "ä€😀", "z" * 65_535, "ä" * 150_000] + [str(number) * 100 for number in range(13)]


class Client:
    """One connection."""

    def __init__(self, parts):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_alpn_protocols(["h2"])
        plain = socket.create_connection(("127.0.0.1", parts.port), PATIENCE)
        self.socket = context.wrap_socket(plain, server_hostname=parts.hostname)
        self.http = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        self.parts, self.streams, self.has_settings = parts, {}, False
        self.http.initiate_connection()
        self.until(lambda: self.has_settings)

    def until(self, is_so):
        self.socket.sendall(self.http.data_to_send())
        while not is_so():
            received = self.socket.recv(65_536)
            if not received:
                raise EOFError("the connection has ended")
            for event in self.http.receive_data(received):
                self.on_event(event)
            self.socket.sendall(self.http.data_to_send())

    def on_event(self, event):
        self.has_settings = self.has_settings or isinstance(event, RemoteSettingsChanged)
        stream = self.streams.get(getattr(event, "stream_id", None))
        if isinstance(event, ResponseReceived):
            stream.status = int(dict(event.headers)[":status"])
        if isinstance(event, DataReceived):
            stream.buffer += event.data
            self.http.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        if isinstance(event, StreamEnded):
            stream.is_ended = True
        if isinstance(event, StreamReset):
            stream.reset = int(event.error_code)


class Stream:
    """One WebSocket."""

    def __init__(self, client):
        self.client, self.http = client, client.http
        self.status, self.buffer, self.is_ended, self.reset = None, b"", False, None
        self.number = self.http.get_next_available_stream_id()
        client.streams[self.number] = self
        head = [
            (":method", "CONNECT"), (":protocol", "websocket"), (":scheme", "https"),
            (":authority", client.parts.netloc), (":path", client.parts.path), ("sec-websocket-version", "13"),
        ]
        self.http.send_headers(self.number, head)
        client.until(lambda: self.status is not None)

    def send(self, opcode, payload):
        rest = frame(opcode, payload)
        while rest:
            room = min(self.http.local_flow_control_window(self.number), self.http.max_outbound_frame_size)
            self.http.send_data(self.number, rest[:room])
            rest = rest[room:]
            self.client.until(lambda: self.http.local_flow_control_window(self.number) > 0)

    def message(self):
        """The opcode and the payload of the next frame."""
        self.client.until(lambda: parse(self.buffer) or self.is_ended or self.reset is not None)
        opcode, payload, self.buffer = parse(self.buffer)
        return opcode, payload

    def echo(self, text):
        self.send(TEXT, text.encode())
        return self.message() == (TEXT, text.encode())


def talk(client):
    """One that ends well."""
    stream = Stream(client)
    told = {"status": stream.status, "first": stream.message()[1].decode()}
    told["echoed"] = sum(stream.echo(text) for text in TEXTS)
    stream.send(CLOSE, b"\x03\xe8")
    told["closed"] = stream.message() == (CLOSE, b"\x03\xe8")
    client.http.end_stream(stream.number)
    client.until(lambda: stream.is_ended or stream.reset is not None)
    told["ended"] = stream.reset is None
    return told


def give_up(client):
    """One that we break off."""
    stream = Stream(client)
    stream.message()
    echoed = stream.echo("a")
    client.http.reset_stream(stream.number, ErrorCodes.CANCEL)
    client.until(lambda: True)
    return echoed


def be_given_up(client):
    """One that the server breaks off. What it does not read makes a reset of a connection's end."""
    stream = Stream(client)
    stream.message()
    stream.send(TEXT, b"break off")
    stream.send(TEXT, b"x" * 300_000)
    client.until(lambda: stream.is_ended or stream.reset is not None)
    return stream.reset


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", help="wss://HOST:PORT/PATH; the connection goes to 127.0.0.1")
    client = Client(urllib.parse.urlsplit(parser.parse_args().url))
    told = {"announced": client.http.remote_settings.enable_connect_protocol == 1}
    told |= talk(client)
    told["given_up"], told["reset"] = give_up(client), be_given_up(client)
    # The connection goes on.
    told["again"] = talk(client)["echoed"]
    print(json.dumps(told))


if __name__ == "__main__":
    main()
