"""slow_faults.py - eight hostile candidates among honest ones on the emulator, and a fork server, a worker, an owner
and an executor are killed. long_faults.py is the
whole."""
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import faults  # noqa: E402


class Faults(unittest.TestCase):
    def test_mixed(self):
        argv = ["--hostile", "8", "--honest", "6", "--workers", "2", "--jobs", "2", "--kills", "4", "--quick",
                "--limit", str(260 * float(os.environ.get("TEST_SLOWDOWN", 1)))]
        e = faults.Experiment(faults.options(argv))
        self.assertEqual(e.run(), [])
        self.assertLessEqual(sum(e.infra.values()), 3)  # an owner's death alone makes none

    def test_order(self):
        """All kinds are there, each job once, and at the end nobody waits for who lasts until its limit."""
        jobs = faults.make_jobs(200, 200, "cuda", 1, False)
        self.assertEqual(len({j.key for j in jobs}), 400)
        self.assertEqual({j.kind for j in jobs if j.want}, {row[0] for row in faults.hostile.rows("cuda")})
        self.assertEqual({j.kind for j in jobs if not j.want}, {row[2] for row in faults.honest.KINDS})
        late = [j.kind for j in jobs[-40:] if j.want and faults.hostile.is_long(j.kind, j.want)]
        self.assertEqual(late, [])
        for j in jobs:
            if j.want and "timeout" not in j.want:  # it ends by itself: no limit may be taken for its end
                self.assertGreaterEqual(j.options["timeout"], 20)


if __name__ == "__main__":
    unittest.main()
