"""test_compare_stages.py - lab/compare_stages.py: a known difference of both measures, and what is not there."""

import io
import json
import os
import sys
import tempfile
import unittest
from contextlib import redirect_stdout

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../lab"))
import compare_stages  # noqa: E402


def rows(passed, whole=4, n=4):
    return {f"t{i}": {"task": f"t{i}", "family": "ab"[i % 2], "n": n, "passed": p, "whole": whole, "whole_passed": p}
            for i, p in enumerate(passed)}


class CompareStages(unittest.TestCase):
    def test_a_difference_is_of_tasks_or_of_whole_answers(self):
        a, b = rows([4, 2, 2, 0]), rows([2, 1, 1, 0], whole=2)
        d = compare_stages.compared([a], [b], "all answers")
        self.assertAlmostEqual(d[0], 0.25)
        self.assertTrue(0 <= d[1] < d[0] < d[2] and d[4] == 4)
        whole = compare_stages.compared([a], [b], "given a complete program")
        self.assertAlmostEqual(whole[0], 0.0)  # of those that are whole as many pass
        self.assertEqual(whole[3], 1)
        self.assertAlmostEqual(compare_stages.compared([a, a], [b, a], "all answers", "a")[0], (0.375 + 0) / 2)
        self.assertIsNone(compare_stages.compared([a], [b], "all answers", "c"))
        self.assertIsNone(compare_stages.compared([], [], "all answers"))

    def test_tables_leave_out_what_is_not_there(self):
        with tempfile.TemporaryDirectory() as out:
            for run, stage, passed in (("1", "sft", [1, 1]), ("1", "rft", [3, 3]), ("2", "sft", [1, 1])):
                path = os.path.join(out, run, "bench", stage)
                os.makedirs(path)
                given = list(rows(passed).values())
                for r in given if run == "2" else []:
                    del r["whole"]  # older results
                with open(os.path.join(path, "bench.json"), "w", encoding="utf-8") as f:
                    json.dump({"per_task": given}, f)
            text = io.StringIO()
            with redirect_stdout(text):
                compare_stages.main([os.path.join(out, "1"), os.path.join(out, "2")])
        self.assertIn("| all answers | sft | 25.0, 25.0 |", text.getvalue())
        self.assertIn("| given a complete program | sft | 25.0, - |", text.getvalue())
        self.assertIn("| rft above sft | all | 1 | 2 | +50.0 | +50.0 to +50.0 | < 0.001 |", text.getvalue())


if __name__ == "__main__":
    unittest.main()
