"""test_doctor.py - 'doctor' and 'setup.sh' where things are missing: one clear remedy each, never a crash."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXE = os.environ.get("MUSACODER_EXE", os.path.join(ROOT, "build", "musacoder"))
SLOWDOWN = float(os.environ.get("TEST_SLOWDOWN", 1))


def run(argv, **env):
    full = {k: v for k, v in os.environ.items() if not k.startswith("MUSACODER_")}
    full.update(env)
    return subprocess.run(argv, env=full, capture_output=True, text=True, timeout=120 * SLOWDOWN)


class Doctor(unittest.TestCase):
    def test_json(self):
        p = run([EXE, "doctor", "--json"])
        report = json.loads(p.stdout)
        self.assertEqual(p.returncode, 0 if report["fit"] else 3)
        names = [c["check"] for c in report["checks"]]
        for want in ("machine", "compiler", "python", "share", "data", "cache", "jail", "gpu"):
            self.assertIn(want, names)
        for c in report["checks"]:
            if c["state"] == "missing":
                self.assertTrue(c.get("remedy"), c)

    def test_missing_things(self):
        with tempfile.TemporaryDirectory() as empty:
            p = run([EXE, "doctor", "--json"], MUSACODER_DATA_DIR=empty, MUSACODER_CXX="/no/such/compiler")
            self.assertEqual(p.returncode, 3)
            state = {c["check"]: c["state"] for c in json.loads(p.stdout)["checks"]}
            self.assertEqual(state["python"], "missing")
            self.assertEqual(state["compiler"], "missing")
            p = run([EXE, "doctor"], MUSACODER_PYTHON="/bin/false")
            self.assertEqual(p.returncode, 3)
            self.assertIn("musacoder setup", p.stdout)


    def test_nvcc_outside_path(self):
        """Builds find a compiler that PATH does not name; so does 'doctor'."""
        with tempfile.TemporaryDirectory() as home:
            nvcc = os.path.join(home, "bin", "nvcc")
            os.makedirs(os.path.dirname(nvcc))
            with open(nvcc, "w") as f:
                f.write("#!/bin/sh\necho nvcc: a driver\necho Cuda compilation tools, release 99.1, V99.1.7\n")
            os.chmod(nvcc, 0o755)
            p = run([EXE, "doctor", "--json"], CUDA_HOME=home)
            check = [c for c in json.loads(p.stdout)["checks"] if c["check"] == "nvcc"][0]
            self.assertEqual(check["state"], "ok")
            self.assertIn("V99.1.7", check["text"])
            self.assertIn(home, check["text"])


class Setup(unittest.TestCase):
    script = os.path.join(ROOT, "setup", "setup.sh")

    def test_bad_python_is_one_line(self):
        with tempfile.TemporaryDirectory() as data:
            p = run(["sh", self.script], MUSACODER_PYTHON="/bin/false", MUSACODER_DATA_DIR=data)
            self.assertEqual(p.returncode, 3)
            self.assertIn("/bin/false", p.stderr)
            self.assertEqual(len(p.stderr.strip().splitlines()), 1)

    def test_full_disk_is_said_before_the_download(self):
        with tempfile.TemporaryDirectory() as data:
            fake = os.path.join(data, "bin")
            os.makedirs(fake)
            for name, text in (("df", "echo h; echo x 9 9 1048576 9% /"), ("python3", "exit 1"), ("python", "exit 1")):
                with open(os.path.join(fake, name), "w") as f:
                    f.write(f"#!/bin/sh\n{text}\n")
                os.chmod(f.name, 0o755)
            p = run(["sh", self.script], PATH=fake + ":" + os.environ["PATH"], MUSACODER_DATA_DIR=data, VIRTUAL_ENV="",
                    CONDA_PREFIX="")
            self.assertEqual(p.returncode, 3, p.stdout)
            self.assertIn("GB free", p.stderr)

    def test_an_installed_tree_needs_no_packages_for_building(self):
        with tempfile.TemporaryDirectory() as data:
            fake = os.path.join(data, "bin")
            os.makedirs(fake)
            os.makedirs(os.path.join(data, "share/setup"))
            for name in ("python3", "g++", "pkg-config"):
                with open(os.path.join(fake, name), "w") as f:
                    f.write("#!/bin/sh\nexit " + ("1" if name == "pkg-config" else "0; echo 2.11.0") + "\n")
                os.chmod(f.name, 0o755)
            script = shutil.copy(self.script, os.path.join(data, "share/setup"))
            p = run(["sh", script], PATH=fake + ":/usr/bin:/bin", MUSACODER_DATA_DIR=data)
            self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
            self.assertNotIn("packages", p.stdout + p.stderr)

    def test_idle_run_is_fast_and_silent(self):
        with tempfile.TemporaryDirectory() as data:
            for name, text in (("python", "/bin/sh\n"), ("setup.stamp", "torch\n")):
                with open(os.path.join(data, name), "w") as f:
                    f.write(text)
            p = run(["sh", self.script], MUSACODER_DATA_DIR=data)
            self.assertEqual((p.returncode, p.stdout, p.stderr), (0, "", ""))


if __name__ == "__main__":
    unittest.main()
