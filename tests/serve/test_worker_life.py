"""test_worker_life.py - what a worker owes its queue, with the real judge on sim: a job that runs and is cancelled is
left within 2 s; SIGTERM gives back what the worker has; one that is drained finishes it first. And results are kept
for a day."""

import signal
import tempfile
import time
import unittest

import fleet
from fleet import honest

SWEEP_S = 60  # how often the server looks for old results


def sleeper(seconds, block):
    return f"import time\ntime.sleep({seconds})\n" + honest.relu(block)


class Life(unittest.TestCase):
    def setUp(self):
        self.fleet = fleet.Fleet({"first": self.cache, "second": self.cache})
        self.addCleanup(self.fleet.close)

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.cache = cls.folder.name

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def begin(self, seconds, block):
        """A job whose program sleeps by now."""
        job = self.fleet.ticket(sleeper(seconds, block))
        self.fleet.await_state(job, "running")
        time.sleep(3 * fleet.SLOW)
        self.assertEqual(self.fleet.http("GET", f"/v1/jobs/{job}")[1]["state"], "running")
        return job

    def test_cancel_reaches_a_job_that_runs(self):
        self.fleet.worker("both", {}, "--jobs", "1", name="first")
        job = self.begin(50, 32)
        self.fleet.http("DELETE", f"/v1/jobs/{job}")
        self.assertLess(self.fleet.await_state(job, "cancelled"), 2 * fleet.SLOW)
        self.assertEqual(self.fleet.judge(honest.relu(64))[0]["status"], "passed")  # the worker lives

    def test_sigterm_gives_jobs_back(self):
        first = self.fleet.worker("both", {}, "--jobs", "1", name="first")
        job = self.begin(5 + 3 * fleet.SLOW, 32)
        first.send_signal(signal.SIGTERM)
        self.assertEqual(first.wait(fleet.HANGS_S), 0)
        self.assertEqual(self.fleet.rows(f"SELECT state, attempt FROM job WHERE id = {job}"), [(0, 0)])
        self.assertEqual(self.fleet.rows("SELECT count(*) FROM worker"), [(0,)])
        self.fleet.worker("both", {}, "--jobs", "1", name="second")
        self.fleet.await_state(job, "done")
        self.assertEqual(self.fleet.rows(f"SELECT attempt, worker FROM job WHERE id = {job}"), [(1, "second")])

    def test_a_drained_worker_finishes_first(self):
        first = self.fleet.worker("both", {}, "--jobs", "1", name="first")
        job = self.begin(12, 32)
        self.assertEqual(self.fleet.http("POST", "/v1/workers/first/drain")[0], 202)
        self.assertEqual(first.wait(fleet.HANGS_S), 0)
        self.assertEqual(self.fleet.rows(f"SELECT state, attempt, worker FROM job WHERE id = {job}"), [(2, 1, "first")])
        later = self.fleet.ticket(honest.relu(64))
        time.sleep(2)
        self.assertEqual(self.fleet.http("GET", f"/v1/jobs/{later}")[1]["state"], "waiting")

    def test_results_are_kept_for_a_day(self):
        keys = []
        for name, age in (("old", 24 * 3600 + 5), ("young", 24 * 3600 - 300)):
            job = self.fleet.ticket(honest.relu(64) + f"# {name}\n")
            self.fleet.rows(f"UPDATE job SET state = 2, result = '{{\"status\":\"passed\"}}', ended = {fleet.NOW} - "
                            f"{age}"
                            f" WHERE id = {job}")
            keys += self.fleet.rows(f"SELECT key FROM job WHERE id = {job}")[0]
        looks = [self.fleet.http("GET", "/v1/verdicts/" + k) for k in keys]
        self.assertEqual([status for status, _ in looks], [200, 200])
        until = time.time() + (SWEEP_S + 15) * fleet.SLOW
        while self.fleet.http("GET", "/v1/verdicts/" + keys[0])[0] == 200 and time.time() < until:
            time.sleep(1)
        self.assertEqual([self.fleet.http("GET", "/v1/verdicts/" + k)[0] for k in keys], [404, 200])


if __name__ == "__main__":
    unittest.main()
