"""test_compare_seeds.py - the statistics of lab/compare_seeds.py: known p values, Holm, a known difference."""

import io
import json
import math
import os
import sys
import tempfile
import unittest
from contextlib import redirect_stdout

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "lab"))
import compare_seeds  # noqa: E402


def tasks(shares):
    return {f"same_{i}": ("same", p, p > 0) for i, p in enumerate(shares)}


class Statistics(unittest.TestCase):
    def test_t_has_the_values_of_tables(self):
        for n, t, p in ((5, 2.776445, 0.05), (8, 2.364624, 0.05), (3, 9.924843, 0.01), (5, 0.740697, 0.5)):
            x = [0.0] * n  # mean 1, and a deviation that makes t
            sd = math.sqrt(n) / t
            step = sd * math.sqrt((n - 1) / (2 if n > 1 else 1))
            x[0], x[1] = step, -step
            x = [v + 1 for v in x]
            self.assertAlmostEqual(compare_seeds.t_test(x), p, places=4)

    def test_holm(self):
        self.assertEqual([round(p, 6) for p in compare_seeds.holm([0.01, 0.04, 0.03, 0.005])], [0.03, 0.06, 0.06, 0.02])
        self.assertTrue(math.isnan(compare_seeds.holm([math.nan, 0.5])[0]))

    def test_a_difference_over_seeds_and_tasks(self):
        a = {s: tasks([1, 1, 0.5, 0.5 + 0.1 * int(s)]) for s in ("1", "2")}
        b = {s: tasks([0.5, 1, 0, 0.5]) for s in ("1", "2", "3")}
        d = compare_seeds.difference(a, b)
        self.assertAlmostEqual(d[0], (1 + 0.15) / 4)
        self.assertEqual(d[4], 2)
        self.assertTrue(d[1] < d[0] < d[2] and d[1] >= 0)
        self.assertIsNone(compare_seeds.difference(a, {}))
        self.assertIsNone(compare_seeds.difference(a, b, "style"))

    def test_tables_count_the_seeds_that_are_there(self):
        with tempfile.TemporaryDirectory() as out:
            for folder, bench, passed in (("seed1", "sft", 1), ("seed1", "rft", 3), ("seed2", "sft", 1)):
                path = os.path.join(out, folder, "bench", bench)
                os.makedirs(path)
                rows = [{"task": "same_1", "family": "same", "n": 4, "passed": passed}]
                with open(os.path.join(path, "bench.json"), "w", encoding="utf-8") as f:
                    json.dump({"per_task": rows}, f)
            text = io.StringIO()
            with redirect_stdout(text):
                compare_seeds.main(out, ["1", "2"])
        self.assertIn("| SFT | 2 | 25.0 ± 0.0 |", text.getvalue())
        self.assertIn("| RFT | 1 | 75.0 ± 0.0 |", text.getvalue())
        self.assertIn("| rft above sft | +50.0 |", text.getvalue())


if __name__ == "__main__":
    unittest.main()
