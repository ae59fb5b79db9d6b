"""A series of runs, several at a time: what of it is still to do, how long that takes, and an end at any moment without a loss."""

import concurrent.futures
import json
import multiprocessing
import os
import pathlib
import shutil
import signal
import sys
import threading
import time

from cell import Helpers, Outcome, Processes, Run, begin_to_judge
from strain import Strain

UNKNOWN_SECONDS = 8  # of a run of a case that has not been run yet
# Attempts at a run until one is not late.
ATTEMPTS = 3


class Book:
    """The outcomes, in a file that is written anew after each."""

    def __init__(self, path):
        self.path = pathlib.Path(path) if path else None
        self.cells = json.loads(self.path.read_text()) if self.path and self.path.exists() else {}

    def runs(self, job):
        case, server, client, _ = job
        return self.cells.get(case.name, {}).get(f"{server.name}/{client.name}", [])

    def lacks(self, job, again):
        """Whether a run is still to do: `again` names the results that do not count as done. One run tells what is not offered, and a late one
        tells nothing."""
        kept = [run for run in self.runs(job) if run["result"] not in (*again, "late")]
        return not any(run["seed"] == job[3] or run["result"] == "not offered" for run in kept)

    def note(self, job, outcome, build, workers, late=()):
        """`workers` is how many runs went at a time, `late` what came of earlier attempts, which do not count."""
        case, server, client, seed = job
        runs = self.cells.setdefault(case.name, {}).setdefault(f"{server.name}/{client.name}", [])
        earlier = [one for run in runs if run["seed"] == seed for one in run.get("late", [])]
        runs[:] = [run for run in runs if run["seed"] != seed]
        runs.append({
            "seed": seed, "result": outcome.result, "reason": outcome.reason, "seconds": round(outcome.seconds, 1), "tercel": build,
            "late_ms": in_ms(outcome.late), "workers": workers,
            "late": earlier + [{"result": one.result, "reason": one.reason, "late_ms": in_ms(one.late)} for one in late],
        })
        runs.sort(key=lambda run: run["seed"])
        if self.path:
            unfinished = self.path.with_suffix(".unfinished")
            unfinished.write_text(lines_of(self.cells))
            unfinished.rename(self.path)

    def seconds(self, job):
        """How long a run takes: the mean of the cell's, or else of the case's."""
        of_case = [run for runs in self.cells.get(job[0].name, {}).values() for run in runs]
        for runs in (self.runs(job), of_case):
            known = [run["seconds"] for run in runs if run["result"] != "not offered"]
            if known:
                return sum(known) / len(known)
        return UNKNOWN_SECONDS


def lines_of(cells):
    """The outcomes as JSON with a line for each run, so that version control shows what a series has added."""
    def members(one, value_of):
        return "{\n" + ",\n".join(f"{json.dumps(name)}: {value_of(value)}" for name, value in sorted(one.items())) + "\n}"
    return members(cells, lambda pairs: members(pairs, lambda runs: "[\n" + ",\n".join(map(json.dumps, runs)) + "\n]")) + "\n"


def in_ms(seconds):
    return round(min(seconds, 1e6) * 1_000)


class Progress:
    """A line for each outcome, and on a terminal a line below them that tells how far the series is."""

    def __init__(self, book, jobs, workers):
        self.book, self.workers = book, workers
        self.left = dict.fromkeys(jobs)
        self.total = len(jobs)
        self.counts = {}
        self.failures = []
        self.width = shutil.get_terminal_size().columns - 1 if sys.stdout.isatty() else 0

    def note(self, job, outcome):
        del self.left[job]
        self.counts[outcome.result] = self.counts.get(outcome.result, 0) + 1
        case, server, client, seed = job
        if outcome.result == "failed":
            self.failures.append((case.name, server.name, client.name, outcome.reason))
        line = f"{outcome.result:12}{outcome.seconds:6.1f} s  {case.name}: {server.name} serves {client.name} (seed {seed})"
        if self.width:
            print(f"\r\x1b[K{line}")
        else:
            print(f"{self.total - len(self.left):>5}/{self.total}  {self.time_left():>7}  {line}", flush=True)
        if outcome.reason:
            print(f"{'':22}{outcome.reason}", flush=True)
        self.show()

    def show(self):
        if self.width:
            counts = "".join(f", {count} {result}" for result, count in self.counts.items())
            line = f"{self.total - len(self.left)} of {self.total} runs{counts}; {self.time_left()} left"
            print(f"\r\x1b[K{line[:self.width]}", end="", flush=True)

    def time_left(self):
        seconds = [self.book.seconds(job) for job in self.left]
        # The longest run bounds the series from below.
        minutes = max(sum(seconds) / self.workers, max(seconds, default=0)) / 60
        return f"{minutes / 60:.1f} h" if minutes >= 90 else f"{minutes:.0f} min" if minutes >= 1.5 else f"{minutes * 60:.0f} s"

    def end(self):
        if self.width:
            print("\r\x1b[K", end="", flush=True)


class Series:
    """Runs jobs, each (case, server, client, seed), and notes their outcomes."""

    def __init__(self, book, jobs, workers, build, minutes=None, takes_late=False):
        self.book, self.jobs, self.workers, self.build, self.takes_late = book, jobs, workers, build, takes_late
        self.progress = Progress(book, jobs, workers)
        self.minutes = minutes
        self.interrupted = threading.Event()

    def run(self, folder, keep):
        """Whether all was done. An interrupt ends the runs that are under way, which count as not begun."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.interrupt)
        apart = multiprocessing.get_context("spawn")
        judges = concurrent.futures.ProcessPoolExecutor(1, mp_context=apart, initializer=begin_to_judge)
        with judges, Strain() as strain, concurrent.futures.ThreadPoolExecutor(self.workers) as pool:
            # Now, so that this thread is the parent: a process ends with the thread that has started it.
            judges.submit(int).result()
            self.helpers = Helpers(judges, strain)
            self.until = time.monotonic() + 60 * (self.minutes or float("inf"))
            running = {pool.submit(self.one, job, folder, keep): job for job in self.jobs}
            self.progress.show()
            for done in concurrent.futures.as_completed(running):
                if attempts := done.result():
                    *late, outcome = attempts
                    self.book.note(running[done], outcome, self.build, self.workers, late)
                    self.progress.note(running[done], outcome)
        self.progress.end()
        return not self.progress.left

    def one(self, job, folder, keep):
        """The outcomes of its attempts, of which the last one counts; none if there is no time left for the run, or it was interrupted."""
        case, server, client, seed = job
        for implementation, end in ((server, "server"), (client, "client")):
            if reason := implementation.lacks(end, case.name):
                return [Outcome("not offered", f"by the {end} {implementation.name}: {reason}")]
        late = []
        while len(late) < ATTEMPTS:
            if self.interrupted.is_set() or time.monotonic() > self.until:
                return []
            outcome = Run(case, server, client, folder, seed, self.helpers).carry_out(keep)
            if self.interrupted.is_set():
                return []
            if self.takes_late or outcome.late <= case.late or outcome.result == "not offered":
                return [*late, outcome]
            late.append(outcome)
        return [*late, Outcome("late", f"the machine was late by more than {in_ms(case.late)} ms, {ATTEMPTS} times")]

    def interrupt(self, *_):
        if self.interrupted.is_set():
            os._exit(130)  # asked twice; the processes of the runs die with this one
        self.interrupted.set()
        Processes.kill_all()

    def counted(self, result):
        return self.progress.counts.get(result, 0)
