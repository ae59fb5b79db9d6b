"""How long the machine lets a process wait that has something to do: what a late run cannot be judged by.

A process of the ordinary priority sleeps for 5 ms again and again and notes when it wakes late. It is a process of its own, because the
threads of the runner wait for each other.
"""

import collections
import os
import subprocess
import sys
import threading
import time

NAP = 0.005
# Shorter delays are not told.
LEAST = 0.005
# Delays that are remembered: of the longest run, if each nap is late.
REMEMBERED = 50_000


class Strain:
    """The delays of the machine while this context is entered."""

    def __init__(self):
        self.delays = collections.deque(maxlen=REMEMBERED)

    def __enter__(self):
        self.process = subprocess.Popen([sys.executable, "-B", __file__], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        return self

    def __exit__(self, *_):
        with self.process:
            self.process.kill()
            self.reader.join()

    def read(self):
        for line in self.process.stdout:
            woke, delay = map(float, line.split())
            self.delays.append((woke, delay))

    def worst_since(self, began):
        """The longest delay in seconds that ended after `began`, by the monotonic clock."""
        return max((delay for woke, delay in list(self.delays) if woke >= began), default=0.0)


def watch():
    parent = os.getppid()
    while os.getppid() == parent:
        due = time.monotonic() + NAP
        time.sleep(NAP)
        woke = time.monotonic()
        if woke - due > LEAST:
            print(woke, woke - due, flush=True)


if __name__ == "__main__":
    watch()
