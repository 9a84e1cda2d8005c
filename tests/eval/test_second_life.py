"""test_second_life.py - protocol kernelbench publishes its seeds. Behind them come draws of a secret one, and where a
task has weights another life of them, too. What passes the published draws alone is an answer book: it has shown
nothing."""
import json
import os
import subprocess
import unittest

import judges

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXE = os.environ.get("MUSACODER_EXE", os.path.join(ROOT, os.environ.get("B", "build"), "musacoder"))
SLOWDOWN = float(os.environ.get("TEST_SLOWDOWN", 1))
judges.share_owner()
CORPUS = os.path.join(ROOT, "tests", "corpus")


def verdict(task, candidate, *more):
    p = subprocess.run([EXE, "eval", "--task", os.path.join(CORPUS, "tasks", task), "--backend", "sim", "--json",
                        "--no-cache", "--protocol", "kernelbench", "--timeout", f"{60 * SLOWDOWN:g}",
                        os.path.join(CORPUS, candidate), *more], capture_output=True, text=True, timeout=240 * SLOWDOWN)
    return json.loads(p.stdout)


class SecondLife(unittest.TestCase):
    def test_weights_of_the_published_seed_are_an_answer_book(self):
        v = verdict("linear.py", "correctness_error/155_brings_the_published_weights.py")
        self.assertEqual((v["category"], v["correctness"]["q"], v["reward"]), ("correctness_error", 0, -1))
        self.assertEqual(v["correctness"]["worst"]["regime"], "secret")

    def test_answers_to_the_published_inputs_are_one_too(self):
        v = verdict("gram.py", "correctness_error/141_knows_the_published_seeds.py")
        self.assertEqual((v["category"], v["reward"]), ("correctness_error", -1))

    def test_weights_that_any_seed_draws_pass(self):
        v = verdict("linear.py", "passed/155_draws_its_own_weights.py")
        self.assertEqual((v["category"], v["correctness"]["q"], v["correctness"]["trials"]), (None, 1, 5))
        self.assertEqual(v["correctness"]["regimes"]["secret"]["passed"], 3)

    def test_each_life_is_judged_on_its_own_draws(self):
        """A life has three to five calls: with as many published draws one replay takes them all, and the next one
        must take them again, none of the other life's."""
        for trials in "345":
            v = verdict("linear.py", "passed/155_draws_its_own_weights.py", "--trials", trials)
            self.assertIsNone(v["category"], v["feedback"])


if __name__ == "__main__":
    unittest.main()
