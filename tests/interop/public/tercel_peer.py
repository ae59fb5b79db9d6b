"""tercel as an end of the cases: `tercel interop`, and for http3 the commands that people use, `tercel serve` and `tercel get`."""

import os
import sys

from contract import arguments


def main():
    tercel, *given = sys.argv[1:]
    options = arguments().parse_args(given)
    command = [tercel, "interop", *given]
    if options.case == "http3" and options.end == "server":
        state = os.path.join(os.path.dirname(options.ready_file), "state")
        command = [tercel, "serve", options.root, "--http", "3", "--listen", options.listen, "--cert", options.cert]
        command += ["--key", options.key, "--ready-file", options.ready_file, "--access-log", "off", "--state-dir", state]
    elif options.case == "http3":
        host, _, port = options.connect.rpartition(":")
        command = [tercel, "get", "--quiet", "--cacert", options.cacert, "--resolve", f"{options.name}:{port}:{host}"]
        command += ["--parallel", str(len(options.paths)), "-o", options.output + "/"]
        command += [f"https://{options.name}:{port}/{path}" for path in options.paths]
    os.execvp(tercel, command)


if __name__ == "__main__":
    main()
