"""long_open.py - all of 'bench --suite open': every right program passes, and no answer without work would."""

import json
import os
import subprocess
import tempfile
import unittest

from test_open import EXE, RIGHT, ROOT, bench, verdicts


class Whole(unittest.TestCase):
    def test_right_programs_pass(self):
        with tempfile.TemporaryDirectory() as folder:
            done = bench(RIGHT, folder + "/run")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(verdicts(folder + "/run"), {t: ["passed"] for t in os.listdir(RIGHT)})

    def test_no_task_is_trivial(self):
        done = subprocess.run([EXE, "lint", "--json", os.path.join(ROOT, "suites/open")], capture_output=True,
                              text=True,
                              check=False)
        for r in map(json.loads, done.stdout.splitlines()):
            for f in r["findings"]:
                self.assertNotIn(f["rule"], ("broken", "not_judged", "nondeterministic", "zero_output"), r["task"])
                self.assertNotIn("strict", f["evidence"].get("passes", []), f"{r['task']}: {f['message']}")


if __name__ == "__main__":
    unittest.main()
