"""Frames of WebSocket as a client writes and reads them (RFC 6455 §5.2), for the clients over HTTP/2 and 3."""

import os

TEXT, BINARY, CLOSE = 1, 2, 8


def frame(opcode, payload):
    """A frame of a client, which is masked."""
    size = len(payload)
    length = bytes([0x80 | size]) if size < 126 else b"\xfe" + size.to_bytes(2, "big") if size < 1 << 16 else b"\xff" + size.to_bytes(8, "big")
    mask = os.urandom(4)
    repeated = (mask * (size // 4 + 1))[:size]
    masked = (int.from_bytes(payload, "big") ^ int.from_bytes(repeated, "big")).to_bytes(size, "big")
    return bytes([0x80 | opcode]) + length + mask + masked


def parse(buffer):
    """The opcode and the payload of the first frame, which is not masked, and what follows it. None: it is not whole yet."""
    if len(buffer) < 2:
        return None
    begin, length = 2, buffer[1]
    if length >= 126:
        begin = 4 if length == 126 else 10
        length = int.from_bytes(buffer[2:begin], "big")
    end = begin + length
    return (buffer[0] & 15, buffer[begin:end], buffer[end:]) if len(buffer) >= max(begin, end) else None
