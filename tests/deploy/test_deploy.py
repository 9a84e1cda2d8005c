"""test_deploy.py - the files of deploy/ as their own programs read them; a missing program is a named skip."""

import ast
import os
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DEPLOY = os.path.join(ROOT, "deploy")


def path(name):
    return os.path.join(DEPLOY, name)


def needs(program):
    return unittest.skipUnless(shutil.which(program), f"no {program}")


def run(*argv, **more):
    r = subprocess.run(argv, capture_output=True, text=True, timeout=60, **more)
    return r.returncode, r.stdout + r.stderr


class Deploy(unittest.TestCase):
    @needs("systemd-analyze")
    def test_units(self):
        for name in ("musacoder-serve.service", "musacoder-worker.service"):
            with tempfile.TemporaryDirectory() as folder:
                with open(path(name)) as f, open(os.path.join(folder, name), "w") as g:
                    g.write(f.read().replace("/usr/local/bin/musacoder", "/bin/true"))
                rc, said = run("systemd-analyze", "verify", "--man=no", os.path.join(folder, name))
                self.assertEqual([l for l in said.splitlines() if name in l], [])
                self.assertEqual(rc, 0, said)

    def test_scripts(self):
        self.assertEqual(run("sh", "-n", path("slurm-worker.sh")), (0, ""))
        rc, said = run("sh", path("slurm-worker.sh"), env={"PATH": os.environ["PATH"]})
        self.assertNotEqual(rc, 0)
        self.assertIn("QUEUE=postgres://", said)
        with open(path("ray_workers.py")) as f:
            ast.parse(f.read())

    @needs("promtool")
    def test_alerts_name_metrics_that_there_are(self):
        rc, said = run("promtool", "check", "rules", path("alerts.yml"))
        self.assertEqual(rc, 0, said)
        with open(path("alerts.yml")) as f, open(os.path.join(ROOT, "src/serve/metrics.c")) as g:
            rules, printed = f.read(), g.read()
        for metric in set(re.findall(r"musacoder_\w+", rules)):
            self.assertIn(f'"{metric}"', printed)

    @needs("nginx")
    @needs("openssl")
    def test_proxy(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(path("nginx.conf"), folder)
            run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", "2",
                "-keyout", folder + "/key.pem", "-out", folder + "/cert.pem")
            rc, said = run("nginx", "-t", "-c", folder + "/nginx.conf", "-g", f"pid {folder}/pid;")
            self.assertEqual(rc, 0, said)


if __name__ == "__main__":
    unittest.main()
