"""Of a series of runs: that it goes on where it ended, and ends when it is told to. The runs are pretended."""

import contextlib
import io
import json
import os
import pathlib
import signal
import tempfile
import threading
import time
import unittest
from unittest import mock

import faults
import series
import table
from cases import BY_NAME as CASES
from cell import Outcome, Processes
from implementations import BY_NAME as IMPLEMENTATIONS
from strain import Strain

JOBS = [(CASES["handshake"], IMPLEMENTATIONS["tercel"], IMPLEMENTATIONS["quinn"], seed) for seed in range(4)]


class Pretended:
    """A run that passes, or what the test wants of it."""

    seeds = []
    what = staticmethod(lambda seed: Outcome("passed", seconds=2.0))

    def __init__(self, case, server, client, certificates, seed, helpers):
        self.seed = seed

    def carry_out(self, keep):
        self.seeds.append(self.seed)
        return self.what(self.seed)


class SeriesTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.file = self.folder / "outcomes.json"
        self.enterContext(contextlib.redirect_stdout(io.StringIO()))
        self.enterContext(mock.patch.object(series, "Run", Pretended))
        self.enterContext(mock.patch.object(Pretended, "seeds", []))
        self.addCleanup(Processes.no_more.clear)
        for number in (signal.SIGINT, signal.SIGTERM):
            self.addCleanup(signal.signal, number, signal.getsignal(number))

    def run_all(self, again=(), workers=2, **options):
        book = series.Book(self.file)
        one = series.Series(book, [job for job in JOBS if book.lacks(job, again)], workers, "abc, release profile", **options)
        return one, one.run(self.folder, None)

    def test_what_the_file_has_is_not_run_again(self):
        _, complete = self.run_all()
        self.assertTrue(complete)
        self.assertEqual(sorted(Pretended.seeds), [0, 1, 2, 3])
        cell = json.loads(self.file.read_text())["handshake"]["tercel/quinn"]
        self.assertEqual({run["tercel"] for run in cell}, {"abc, release profile"})
        Pretended.seeds.clear()
        self.run_all()
        self.assertEqual(Pretended.seeds, [])

    def test_failures_are_run_again_when_asked_for(self):
        with mock.patch.object(Pretended, "what", lambda run, seed: Outcome("failed" if seed == 2 else "passed")):
            one, _ = self.run_all()
            self.assertEqual((one.counted("failed"), one.counted("passed")), (1, 3))
        Pretended.seeds.clear()
        self.run_all(again=("failed",))
        self.assertEqual(Pretended.seeds, [2])

    def test_what_is_not_offered_is_asked_once(self):
        series.Book(self.file).note(JOBS[0], Outcome("not offered", "by the server"), "abc", 1)
        self.run_all()
        self.assertEqual(Pretended.seeds, [])

    def test_a_late_run_does_not_count_and_goes_again(self):
        outcomes = {0: [Outcome("failed", "slow", late=0.3), Outcome("passed", late=0.001)], 1: [Outcome("passed", late=0.5)] * 3}

        def what(run, seed):
            return outcomes[seed].pop(0) if seed in outcomes else Outcome("passed")

        with mock.patch.object(Pretended, "what", what):
            one, _ = self.run_all()
        self.assertEqual((one.counted("passed"), one.counted("failed"), one.counted("late")), (3, 0, 1))
        runs = {run["seed"]: run for run in json.loads(self.file.read_text())["handshake"]["tercel/quinn"]}
        self.assertEqual(runs[0]["result"], "passed")
        self.assertEqual([(late["result"], late["late_ms"]) for late in runs[0]["late"]], [("failed", 300)])
        self.assertEqual((runs[1]["result"], len(runs[1]["late"])), ("late", 3))
        Pretended.seeds.clear()
        outcomes[1] = [Outcome("passed")]
        self.run_all()
        self.assertEqual(Pretended.seeds, [1])
        runs = {run["seed"]: run for run in json.loads(self.file.read_text())["handshake"]["tercel/quinn"]}
        self.assertEqual((runs[1]["result"], len(runs[1]["late"])), ("passed", 3))

    def test_no_run_begins_after_the_time_is_over(self):
        def slow(run, seed):
            time.sleep(0.3)
            return Outcome("passed")

        with mock.patch.object(Pretended, "what", slow):
            one, complete = self.run_all(workers=1, minutes=0.1 / 60)
        self.assertFalse(complete)
        self.assertEqual(Pretended.seeds, [0])
        self.assertEqual([job[3] for job in one.progress.left], [1, 2, 3])

    def test_an_interrupted_run_counts_as_not_begun(self):
        begun = threading.Event()

        def endless(run, seed):
            if seed == 0:
                return Outcome("passed")
            begun.set()
            Processes.no_more.wait(20)
            return Outcome("failed", "killed")

        def interrupt():
            begun.wait(20)
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=interrupt).start()
        with mock.patch.object(Pretended, "what", endless):
            one, complete = self.run_all(workers=1)
        self.assertFalse(complete)
        self.assertTrue(one.interrupted.is_set())
        self.assertEqual(Pretended.seeds, [0, 1])
        cell = json.loads(self.file.read_text())["handshake"]["tercel/quinn"]
        self.assertEqual([(run["seed"], run["result"]) for run in cell], [(0, "passed")])

    def test_the_time_left_is_by_the_means_of_what_was_run(self):
        book = series.Book(None)
        progress = series.Progress(book, JOBS, 2)
        self.assertEqual(progress.time_left(), "16 s")
        book.note(JOBS[0], Outcome("passed", seconds=600), "abc", 2)
        progress.note(JOBS[0], Outcome("passed", seconds=600))
        self.assertEqual(progress.time_left(), "15 min")


class StrainTest(unittest.TestCase):
    def test_a_process_that_is_kept_waiting_is_noticed(self):
        with Strain() as strain:
            time.sleep(0.3)
            began = time.monotonic()
            strain.process.send_signal(signal.SIGSTOP)
            time.sleep(0.2)
            strain.process.send_signal(signal.SIGCONT)
            deadline = time.monotonic() + 10
            while strain.worst_since(began) < 0.1 and time.monotonic() < deadline:
                time.sleep(0.01)
            self.assertGreaterEqual(strain.worst_since(began), 0.1)
            self.assertEqual(strain.worst_since(time.monotonic() + 60), 0.0)


class FaultTest(unittest.TestCase):
    def test_only_the_words_of_a_peers_fault_excuse_a_cell(self):
        for said in ("the server has sent 7251 bytes after 2400 received", "the server has sent 7252 bytes after 2400 received"):
            self.assertTrue(faults.is_a_peers_fault("amplificationlimit", "quinn", "tercel", said))
        for cell in [("quinn", "tercel", "timed out"), ("tercel", "quinn", said), ("tercel", "tercel", said)]:
            self.assertFalse(faults.is_a_peers_fault("amplificationlimit", *cell), cell)
        for fault in faults.FAULTS:
            self.assertFalse(fault.is_a_peers() and fault.whose in ("tercel's", "The machine's", "Open", "No rule broken"), fault)


class IntervalTest(unittest.TestCase):
    def test_the_interval_is_wilsons(self):
        # By hand: n = 100, 95 passed, z = 1.96: centre (0.95 + 0.019208) / 1.038416, half-width 0.0429.
        low, high = table.interval(95, 100)
        self.assertAlmostEqual(low, 0.8882, places=3)
        self.assertAlmostEqual(high, 0.9785, places=3)
        self.assertEqual(table.interval(10, 10)[1], 1.0)
        self.assertEqual(table.interval(0, 0), (0.0, 1.0))


if __name__ == "__main__":
    unittest.main()
