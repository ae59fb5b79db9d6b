"""Headless Chromium, told what to do through a pipe by its DevTools protocol.

Chromium is optional: Debian has it as chromium-headless-shell and as chromium. On a page of the server, a script downloads at a limited rate and
asks for small files beside that. The browser tells the protocol of each request, so that a fall back to another version of HTTP is found, and
why a request has failed, which a script does not hear.

Chromium 156 fails a request with ERR_CONNECTION_CLOSED where a GOAWAY of HTTP/3 arrives between its choice of the connection and the making of
the stream (by its net log: the job is attached to the session, GOAWAY is received, and the request ends as the stream is made). Nothing of it was
sent, and Chromium does not send it elsewhere. Such requests are told apart, as `unsent`: their fields were never handed to a connection.
"""

import base64
import fcntl
import hashlib
import json
import os
import select
import shutil
import ssl
import subprocess
import tempfile
import time

NAMES = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"]
SMALL_EVERY = 0.5  # seconds from one small request to the next beside a download

# Reads `size` bytes at `rate` bytes a second at most, and checks each of them: SplitMix64 from zero, as main.py says.
SCRIPT = """
(async (size, rate, period, small, every) => {
  const mask = (1n << 64n) - 1n, block = new Uint8Array(period);
  for (let index = 1n, at = 0; at < period; index++) {
    let mixed = index * 0x9E3779B97F4A7C15n & mask;
    mixed = (mixed ^ (mixed >> 30n)) * 0xBF58476D1CE4E5B9n & mask;
    mixed = (mixed ^ (mixed >> 27n)) * 0x94D049BB133111EBn & mask;
    mixed ^= mixed >> 31n;
    for (let byte = 0; byte < 8 && at < period; byte++, at++) { block[at] = Number(mixed & 255n); mixed >>= 8n; }
  }
  const pause = (ms) => new Promise((done) => setTimeout(done, ms));
  const is_whole = (bytes, from) => {
    for (let index = 0, at = from % period; index < bytes.length; index++) {
      if (bytes[index] !== block[at]) return false;
      if (++at === period) at = 0;
    }
    return true;
  };
  const found = { requests: 0, bytes: 0, failures: [] };
  let is_over = false;
  const others = (async () => {
    while (!is_over) {
      found.requests++;
      try {
        const answer = await fetch('/file', { cache: 'no-store' });
        const bytes = new Uint8Array(await answer.arrayBuffer());
        if (answer.status !== 200) found.failures.push(['failed', `status ${answer.status}`]);
        else if (bytes.length !== small || !is_whole(bytes, 0)) found.failures.push(['wrong', 'wrong bytes of /file']);
        found.bytes += bytes.length;
      } catch (error) { found.failures.push(['broken', `/file: ${error}`]); }
      await pause(every);
    }
  })();
  found.requests++;
  try {
    const began = performance.now(), answer = await fetch(`/bytes/${size}`, { cache: 'no-store' });
    if (answer.status !== 200) throw `status ${answer.status}`;
    let received = 0, wrong = false;
    const reader = answer.body.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      wrong ||= !is_whole(value, received);
      received += value.length;
      const early = began + received / rate * 1000 - performance.now();
      if (early > 0) await pause(early);
    }
    found.bytes += received;
    if (received !== size || wrong) found.failures.push(['wrong', `${received} bytes instead of ${size}, or others`]);
  } catch (error) { found.failures.push(['broken', `download: ${error}`]); }
  is_over = true;
  await others;
  found.protocols = [...new Set(performance.getEntriesByType('resource').map((entry) => entry.nextHopProtocol))];
  performance.clearResourceTimings();
  return JSON.stringify(found);
})
"""


def find():
    """The path of the program, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def key_hash(certificate):
    """By which Chromium takes a certificate: of its public key, which openssl cuts out."""
    key = subprocess.run(["openssl", "x509", "-in", certificate, "-pubkey", "-noout"], capture_output=True, check=True, text=True).stdout
    # The same armour as a certificate's, so the same decoder takes it off.
    der = ssl.PEM_cert_to_DER_cert(key.replace("PUBLIC KEY", "CERTIFICATE"))
    return base64.b64encode(hashlib.sha256(der).digest()).decode()


class Browser:
    """One browser with one page of the server. `http` is "2" or "3"."""

    def __init__(self, url, address, certificate, http):
        self.profile = tempfile.TemporaryDirectory(prefix="tercel-chromium-", ignore_cleanup_errors=True)
        authority = url.removeprefix("https://")
        command = [find(), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-pipe"]
        command += [f"--user-data-dir={self.profile.name}", f"--host-resolver-rules=MAP localhost {address}"]
        command += [f"--ignore-certificate-errors-spki-list={key_hash(certificate)}"]
        command += [f"--origin-to-force-quic-on={authority}"] if http == "3" else ["--disable-quic"]
        theirs_in, self.out = os.pipe()
        self.into, theirs_out = os.pipe()
        # It reads from descriptor 3 and writes to 4.
        high = [fcntl.fcntl(theirs, fcntl.F_DUPFD, 10) for theirs in (theirs_in, theirs_out)]
        script = f'exec 3<&{high[0]} 4>&{high[1]} {high[0]}<&- {high[1]}>&-; exec "$@"'
        self.process = subprocess.Popen(
            ["bash", "-c", script, "bash", *command], pass_fds=high, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        for descriptor in [theirs_in, theirs_out, *high]:
            os.close(descriptor)
        self.buffer, self.number, self.session = b"", 0, None
        self.urls, self.sent, self.failed = {}, set(), {}
        try:
            target = self.call("Target.createTarget", 60, url="about:blank")["targetId"]
            self.session = self.call("Target.attachToTarget", 20, targetId=target, flatten=True)["sessionId"]
            self.call("Network.enable", 20)
            told = self.call("Page.navigate", 60, url=f"{url}/page.html")
            if "errorText" in told:
                raise OSError(f"Chromium does not open {url}/page.html: {told['errorText']}")
            self.settle()
        except BaseException:
            self.close()
            raise

    def settle(self):
        """Waits until the page is there."""
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            told = self.call("Runtime.evaluate", 30, expression="document.title")
            if told["result"].get("value") == "tercel":
                return
            time.sleep(0.1)
        raise OSError("Chromium does not show the page")

    def call(self, method, patience, **params):
        """The result of a method, awaited for so many seconds."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + patience
        while True:
            while b"\0" not in self.buffer:
                if not select.select([self.into], [], [], max(0, deadline - time.monotonic()))[0]:
                    raise OSError(f"Chromium has not answered {method} in {patience:.0f} s")
                data = os.read(self.into, 1 << 16)
                if not data:
                    raise OSError("Chromium has ended")
                self.buffer += data
            one, self.buffer = self.buffer.split(b"\0", 1)
            answer = json.loads(one)
            self.note(answer.get("method"), answer.get("params", {}))
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise OSError(f"{method}: {answer['error']}")
                return answer["result"]

    def note(self, event, params):
        """Keeps what is told of requests that have not ended well."""
        request = params.get("requestId")
        if event == "Network.requestWillBeSent":
            self.urls[request] = params["request"]["url"]
        elif event == "Network.requestWillBeSentExtraInfo":
            self.sent.add(request)
        elif event == "Network.loadingFailed":
            self.failed[request] = params["errorText"]
        elif event == "Network.loadingFinished":
            self.urls.pop(request, None)
            self.sent.discard(request)

    def take_failed(self):
        """The requests that have failed, each as its address, why, and whether anything of it was sent."""
        told = [(self.urls.pop(request, ""), why, request in self.sent) for request, why in self.failed.items()]
        self.sent -= set(self.failed)
        self.failed = {}
        return told

    def download(self, size, rate, period, small, patience):
        """A download of `size` bytes, and small requests beside it: what the script found."""
        words = ", ".join(map(str, [size, rate, period, small, SMALL_EVERY * 1000]))
        told = self.call("Runtime.evaluate", patience, expression=f"{SCRIPT}({words})", awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in told:
            raise OSError(f"the script in Chromium failed: {told['exceptionDetails'].get('exception', {}).get('description')}")
        found, failed = json.loads(told["result"]["value"]), self.take_failed()
        found["unsent"] = [(url, why) for url, why, is_sent in failed if not is_sent and why == "net::ERR_CONNECTION_CLOSED"]
        found["why"] = [f"{url}: {why}" for url, why, is_sent in failed if is_sent or why != "net::ERR_CONNECTION_CLOSED"]
        return found

    def close(self):
        """Ends it, with all of its processes, which are a group of their own."""
        try:
            os.killpg(self.process.pid, 9)
        except ProcessLookupError:
            pass
        self.process.wait()
        os.close(self.out)
        os.close(self.into)
        self.profile.cleanup()
