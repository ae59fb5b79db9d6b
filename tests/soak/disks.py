"""Disks of a soak: one that is slow, and a small one that is filled now and then.

Both are mounts, so the soak runs in a mount namespace of its own (see run), which the kernel removes with it.
"""

import os
import pathlib
import random
import subprocess
import sys
import time

SLOW_BYTES = 400_000
LOG_BYTES = 16_000_000
FULL_SECONDS = 2.0

HERE = pathlib.Path(__file__).resolve().parent


class Disks:
    def __init__(self, folder):
        self.folder, self.log = folder, folder / "log"
        self.log.mkdir()
        (folder / "slow").write_bytes(random.Random("slow").randbytes(SLOW_BYTES))
        self.process = None

    def mount(self):
        """`one/disk` and `two/disk` become the slow disk, `log` the small one."""
        self.call("mount", "-t", "tmpfs", "-o", f"size={LOG_BYTES}", "tmpfs", self.log)
        places = [self.folder / release / "disk" for release in ("one", "two")]
        for place in places:
            place.mkdir()
        command = [sys.executable, HERE / "slow_disk.py", places[0], self.folder / "slow"]
        self.process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + 10
        while not os.path.ismount(places[0]):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit("soak: /dev/fuse cannot be used; --no-disks leaves the slow and the small disk out")
            time.sleep(0.02)
        self.call("mount", "--bind", *places)

    def call(self, *command):
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"soak: {' '.join(map(str, command))}: {done.stderr.strip()}; --no-disks leaves it out")

    def fill(self):
        """Fills the disk of the log for a while."""
        filler = self.log / "filler"
        try:
            with open(filler, "wb", buffering=0) as file:
                while file.write(bytes(1 << 16)) == 1 << 16:
                    pass
        except OSError:
            pass  # Full, as it should be.
        time.sleep(FULL_SECONDS)
        filler.unlink()

    def close(self):
        """What happens without it: nothing below the folder can be removed."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        for place in ("two/disk", "one/disk", "log"):
            if os.path.ismount(self.folder / place):
                subprocess.run(["umount", "--lazy", str(self.folder / place)], capture_output=True)
