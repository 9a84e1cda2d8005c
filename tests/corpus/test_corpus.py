"""test_corpus.py - a few candidates of each kind of the adversarial corpus; 'make test-corpus' judges all of them."""
import os
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
EXE = os.environ.get("MUSACODER_EXE", os.path.join(HERE, "..", "..", os.environ.get("B", "build"), "musacoder"))
SLOWDOWN = float(os.environ.get("TEST_SLOWDOWN", 1))
sys.path.insert(0, os.path.join(HERE, "..", "eval"))
import judges  # noqa: E402

judges.share_owner()
os.environ.setdefault("MUSACODER_CACHE_DIR", os.path.join(os.path.dirname(EXE), "test-cache"))


class Corpus(unittest.TestCase):
    def test_fast_subset(self):
        p = subprocess.run([sys.executable, os.path.join(HERE, "run.py"), "--fast", "--jobs", "1"], capture_output=True,
                           text=True, timeout=270 * SLOWDOWN)
        self.assertEqual(p.returncode, 0, p.stdout[-3000:] + p.stderr[-1000:])

    def test_every_cheat_has_a_twin(self):
        twins = {n.split("_")[0] for n in os.listdir(os.path.join(HERE, "passed"))}
        for folder in sorted(os.listdir(HERE)):
            path = os.path.join(HERE, folder)
            if not os.path.isdir(path) or folder in ("passed", "tasks", "__pycache__"):
                continue
            for name in sorted(os.listdir(path)):
                self.assertIn(name.split("_")[0].rstrip("bcdef"), twins, f"{folder}/{name} has no twin in passed/")

    def test_all_classes_are_there(self):
        names = [n for _, _, names in os.walk(HERE) for n in names if n[0].isdigit()]
        numbers = {int(n.split("_")[0].rstrip("bcdef")) for n in names}
        self.assertEqual([n for n in range(1, 63) if n not in numbers], [])


if __name__ == "__main__":
    unittest.main()
