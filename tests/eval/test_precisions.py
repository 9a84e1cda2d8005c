"""test_precisions.py - half precision, large sums, outputs near zero, and a task that zeros would pass."""
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import candidates as corpus  # noqa: E402
import test_verdicts as base  # noqa: E402


class Precisions(base.Judge):
    def test_precisions(self):
        for task, rows in corpus.PRECISIONS:
            verdicts, _ = self.judge(task, rows, "--trials", "2", "--timeout", base.PATIENCE_S)
            self.expect(rows, verdicts)

    def test_a_task_that_zeros_pass_accuses_nobody(self):
        task = self.write("task.py", corpus.ZERO_TASK)
        path = self.write("c.py", corpus.row_kernel("for (int j = 0; j < n; j++) y[j] = r[j] * 0.0f;"))
        p = base.musacoder("eval", "--task", task, "--json", "--no-cache", path)
        self.assertEqual((p.returncode, json.loads(p.stdout)["category"]), (2, "infra"), p.stderr)
        self.assertRegex(p.stderr, r"none of its \d\d draws tells a right answer from zeros")


if __name__ == "__main__":
    unittest.main()
