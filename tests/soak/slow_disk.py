"""A file system whose one file takes 300 ms for each lookup and each read, until it is killed.

It speaks the kernel's protocol for FUSE, version 7.31 (include/uapi/linux/fuse.h), so that it needs neither a library nor a
package. It must run where it may mount: as root, or in a user namespace with a mount namespace. The kernel passes each read on
(direct I/O) and remembers no name, so that nothing of it is ever cached. Requests wait side by side, as on a disk with a queue.

usage: slow_disk.py MOUNTPOINT FILE
"""

import concurrent.futures
import ctypes
import errno
import os
import pathlib
import stat
import struct
import sys
import time

DELAY = 0.3  # seconds
NAME = "slow"
ROOT_NODE, FILE_NODE = 1, 2
LOOKUP, FORGET, GETATTR, OPEN, READ, STATFS, RELEASE = 1, 2, 3, 14, 15, 17, 18
FLUSH, INIT, OPENDIR, RELEASEDIR, INTERRUPT, BATCH_FORGET = 25, 26, 27, 29, 36, 42
UNANSWERED = {FORGET, INTERRUPT, BATCH_FORGET}
SLOW = {LOOKUP, READ}
HEADER = struct.Struct("<IIQQ")  # length, operation, number, node; user, group, process and padding follow
HEADER_LENGTH = 40
DIRECT_IO = 1
FOREVER = 1 << 30  # seconds
MS_RDONLY, MS_NOSUID, MS_NODEV = 1, 2, 4


class Refused(Exception):
    """An operation that fails with this error number."""


class SlowDisk:
    def __init__(self, content):
        self.content = content

    def attributes(self, node):
        is_file = node == FILE_NODE
        mode = stat.S_IFREG | 0o444 if is_file else stat.S_IFDIR | 0o555
        size = len(self.content) if is_file else 0
        times = (1_700_000_000,) * 3
        return struct.pack("<6Q10I", node, size, size // 512, *times, 0, 0, 0, mode, 1, 0, 0, 0, 1 << 17, 0)

    def answer(self, operation, node, body):
        if operation == INIT:
            sizes = struct.pack("<IIII2HIIHHI", 7, 31, 0, 0, 64, 48, 4096, 1, 32, 0, 0)
            return sizes.ljust(64, b"\0")
        if operation == LOOKUP:
            if node != ROOT_NODE or body.rstrip(b"\0") != NAME.encode():
                raise Refused(errno.ENOENT)
            # Names are looked up each time, attributes are not.
            return struct.pack("<QQQQII", FILE_NODE, 0, 0, FOREVER, 0, 0) + self.attributes(FILE_NODE)
        if operation == GETATTR:
            return struct.pack("<QII", FOREVER, 0, 0) + self.attributes(node)
        if operation in (OPEN, OPENDIR):
            return struct.pack("<QII", 0, DIRECT_IO if operation == OPEN else 0, 0)
        if operation == READ:
            _, offset, size = struct.unpack_from("<QQI", body)
            return self.content[offset : offset + size]
        if operation == STATFS:
            return bytes(80)
        if operation in (FLUSH, RELEASE, RELEASEDIR):
            return b""
        raise Refused(errno.ENOSYS)

    def serve(self, device, request):
        _, operation, number, node = HEADER.unpack_from(request)
        if operation in UNANSWERED:
            return
        if operation in SLOW:
            time.sleep(DELAY)
        try:
            error, body = 0, self.answer(operation, node, request[HEADER_LENGTH:])
        except Refused as refused:
            error, body = refused.args[0], b""
        try:
            os.write(device, struct.pack("<IiQ", 16 + len(body), -error, number) + body)
        except FileNotFoundError:
            pass  # The caller was killed meanwhile.


def mount(device, place):
    libc = ctypes.CDLL(None, use_errno=True)
    options = f"fd={device},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()}"
    flags = MS_RDONLY | MS_NOSUID | MS_NODEV
    if libc.mount(b"slow", place.encode(), b"fuse", flags, options.encode()) != 0:
        raise OSError(ctypes.get_errno(), f"mount of FUSE at {place}: {os.strerror(ctypes.get_errno())}")


def main():
    place, content = sys.argv[1], pathlib.Path(sys.argv[2]).read_bytes()
    device = os.open("/dev/fuse", os.O_RDWR)
    mount(device, place)
    disk = SlowDisk(content)
    with concurrent.futures.ThreadPoolExecutor(256) as threads:
        while True:
            try:
                threads.submit(disk.serve, device, os.read(device, 1 << 17))
            except OSError as error:
                if error.errno == errno.ENODEV:  # unmounted
                    return
                if error.errno not in (errno.EINTR, errno.ENOENT):
                    raise


if __name__ == "__main__":
    main()
