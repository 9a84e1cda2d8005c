"""test_deploy.py - the files of deploy/ as their own programs read them, and what can be played of them without a
cluster: the units' and the batch script's commands, with an srun that is this test's. A missing program is a named
skip; 'make test-deploy' brings the validators that PyPI has."""

import ast
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DEPLOY = os.path.join(ROOT, "deploy")
EXE = os.path.abspath(os.path.join(os.environ.get("B", os.path.join(ROOT, "build")), "musacoder"))
SLOW = float(os.environ.get("TEST_SLOWDOWN", "1"))
JAIL_NEEDS = {"clone", "clone3", "unshare", "setns", "mount", "umount2", "pivot_root", "seccomp", "prctl", "pidfd_open",
              "memfd_create", "landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"}


def path(name):
    return os.path.join(DEPLOY, name)


def text(name):
    with open(name if os.path.isabs(name) else path(name)) as f:
        return f.read()


def needs(program):
    return unittest.skipUnless(shutil.which(program), f"no {program}")


def run(*argv, **more):
    r = subprocess.run(argv, capture_output=True, text=True, timeout=60, **more)
    return r.returncode, r.stdout + r.stderr


def documents(name):
    try:
        import yaml
    except ImportError:
        raise unittest.SkipTest("no PyYAML; 'make test-deploy' installs it") from None
    return list(yaml.safe_load_all(text(name)))


class Deploy(unittest.TestCase):
    @needs("systemd-analyze")
    def test_units(self):
        names = ("musacoder-serve.service", "musacoder-worker.service")
        with tempfile.TemporaryDirectory() as folder:
            for name in names:
                with open(os.path.join(folder, name), "w") as f:
                    f.write(text(name).replace("/usr/local/bin/musacoder", "/bin/true"))
            rc, said = run("systemd-analyze", "verify", "--man=no", *(os.path.join(folder, n) for n in names))
            self.assertEqual([line for line in said.splitlines() if any(n in line for n in names)], [])
            self.assertEqual(rc, 0, said)
        self.assertRegex(text(names[1]), r"(?m)^After=.*musacoder-serve\.service")
        users = {re.search(r"(?m)^User=(.*)$", text(n)).group(1) for n in names}
        self.assertEqual(len(users), 1)  # or a queue that is a file is not the worker's to write

    def test_scripts(self):
        self.assertEqual(run("sh", "-n", path("slurm-worker.sh")), (0, ""))
        rc, said = run("sh", path("slurm-worker.sh"), env={"PATH": os.environ["PATH"]})
        self.assertNotEqual(rc, 0)
        self.assertIn("QUEUE=postgres://", said)
        ast.parse(text("ray_workers.py"))

    @needs("promtool")
    def test_alerts(self):
        for what, file in (("check", path("alerts.yml")), ("test", os.path.join(ROOT, "tests/deploy/alerts.yml"))):
            rc, said = run("promtool", what, "rules", file)
            self.assertEqual(rc, 0, said)

    def test_metrics_that_are_named_are_there(self):
        printed = text(os.path.join(ROOT, "src/serve/serve_metrics.c"))
        for name in ("alerts.yml", "grafana.json"):
            metrics = set(re.findall(r"musacoder_\w+", text(name)))
            self.assertTrue(metrics)
            for metric in metrics:
                self.assertIn(f'"{re.sub("_bucket$", "", metric)}"', printed)

    def test_dashboard(self):
        d = json.loads(text("grafana.json"))
        panels = d["panels"]
        self.assertEqual(len({p["id"] for p in panels}), len(panels))
        at = [(p["gridPos"]["x"], p["gridPos"]["y"]) for p in panels]
        self.assertEqual(len(set(at)), len(panels))
        self.assertTrue(all(p["targets"] and p["datasource"]["uid"] == "${source}" for p in panels))
        self.assertEqual([v["name"] for v in d["templating"]["list"]], ["source"])

    @needs("promtool")
    def test_the_dashboard_s_questions_are_questions(self):
        exprs = [t["expr"] for p in json.loads(text("grafana.json"))["panels"] for t in p["targets"]]
        with tempfile.TemporaryDirectory() as folder:
            rules = [{"record": f"x{i}", "expr": e} for i, e in enumerate(exprs)]
            with open(folder + "/rules.yml", "w") as f:
                json.dump({"groups": [{"name": "dashboard", "rules": rules}]}, f)  # JSON is YAML
            rc, said = run("promtool", "check", "rules", folder + "/rules.yml")
            self.assertEqual(rc, 0, said)

    def test_kubernetes(self):
        try:
            import kubernetes_validate as kv
        except ImportError:
            raise unittest.SkipTest("no kubernetes-validate; 'make test-deploy' installs it") from None
        manifests = documents("kubernetes.yaml")
        for m in manifests:
            kv.validate(m, kv.latest_version(), strict=True)
        with self.assertRaises(kv.ValidationError):
            broken = dict(manifests[0], spec=dict(manifests[0]["spec"], replicas="one"))
            kv.validate(broken, kv.latest_version(), strict=True)

    def test_kubernetes_runs_our_commands(self):
        known = {kind: run(EXE, kind, "-h")[1] for kind in ("serve", "worker")}
        found = {}
        for m in documents("kubernetes.yaml"):
            for c in m["spec"].get("template", {}).get("spec", {}).get("containers", []):
                found[m["metadata"]["name"]] = c
                for option in [w for w in c["command"] if w.startswith("--")]:
                    self.assertRegex(known[c["command"][1]], rf"(?m)^  {option}\b", c["command"])
        self.assertEqual(found["musacoder-run"]["resources"]["limits"]["nvidia.com/gpu"], 1)
        self.assertNotIn("nvidia.com/gpu", found["musacoder-build"]["resources"]["limits"])

    def test_the_seccomp_profile_lets_the_jail_be(self):
        profile = json.loads(text("seccomp.json"))
        denied = {n for s in profile["syscalls"] for n in s["names"]}
        self.assertEqual(profile["defaultAction"], "SCMP_ACT_ALLOW")
        self.assertEqual({s["action"] for s in profile["syscalls"]}, {"SCMP_ACT_ERRNO"})
        self.assertEqual(denied & JAIL_NEEDS, set())
        self.assertLess({"kexec_load", "init_module", "bpf"}, denied)

    @needs("nginx")
    @needs("openssl")
    def test_proxy(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(path("nginx.conf"), folder)
            run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", "2",
                "-keyout", folder + "/key.pem", "-out", folder + "/cert.pem")
            rc, said = run("nginx", "-t", "-c", folder + "/nginx.conf", "-g", f"pid {folder}/pid;")
            self.assertEqual(rc, 0, said)


class Played(unittest.TestCase):
    """Commands of the files, run as their programs would run them, over a queue that is a file."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.queue, self.made = os.path.join(self.folder.name, "q.db"), []
        self.env = dict(os.environ, MUSACODER_CACHE_DIR=os.path.join(self.folder.name, "cache"))

    def tearDown(self):
        for p in reversed(self.made):
            if p.poll() is None:
                p.send_signal(signal.SIGTERM)
            p.wait(60)
        self.folder.cleanup()

    def start(self, argv, **env):
        self.made.append(subprocess.Popen(argv, env=dict(self.env, **env), stderr=subprocess.DEVNULL))
        return self.made[-1]

    def unit(self, name, settings):
        """ExecStart as systemd spells it: ${X} is one word, $X any number."""
        unit = text(name)
        for line in re.findall(r"(?m)^Environment=(.*)$", unit):
            settings = dict((w.split("=", 1) for w in line.split()), **settings)
        line = re.search(r"(?m)^ExecStart=(.*)$", unit).group(1).replace("/usr/local/bin/musacoder", EXE)
        words = []
        for w in line.split():
            words += settings.get(w[1:], "").split() if re.fullmatch(r"\$\w+", w) else \
                [re.sub(r"\$\{(\w+)\}", lambda m: settings[m.group(1)], w)]
        return self.start(words)

    def workers(self):
        try:
            db = sqlite3.connect(f"file:{self.queue}?mode=ro", uri=True, timeout=30)
            try:
                return [json.loads(i) for i, in db.execute("SELECT info FROM worker")]
            finally:
                db.close()
        except sqlite3.OperationalError:
            return []

    def await_workers(self, n, seconds=90):
        until = time.time() + seconds * SLOW
        while len(self.workers()) != n:
            self.assertLess(time.time(), until, f"{len(self.workers())} workers instead of {n}")
            time.sleep(0.2)
        return self.workers()

    def test_units_in_the_wrong_order(self):
        worker = self.unit("musacoder-worker.service", {"QUEUE": self.queue, "KIND": "build"})
        time.sleep(2)
        self.assertIsNone(worker.poll())  # it waits for its queue
        self.unit("musacoder-serve.service", {"QUEUE": self.queue, "OPTIONS": "--port 0"})
        self.assertEqual([w["kind"] for w in self.await_workers(1)], ["build"])

    def test_slurm_drains_on_its_warning(self):
        bin_folder = os.path.join(self.folder.name, "bin")
        os.mkdir(bin_folder)
        with open(bin_folder + "/srun", "w") as f:
            f.write('#!/bin/sh\nwhile [ "${1#--}" != "$1" ]; do shift; done\nexec "$@"\n')
        os.chmod(bin_folder + "/srun", 0o755)
        self.start([EXE, "serve", "--queue", self.queue, "--port", "0", "--workers", "0"])
        script = self.start(["sh", path("slurm-worker.sh")], QUEUE=self.queue, BACKEND="sim", KIND="build",
                            MUSACODER=EXE, PATH=bin_folder + os.pathsep + os.environ["PATH"])
        self.await_workers(1)
        script.send_signal(signal.SIGTERM)  # --signal=B:TERM@120 reaches the script, not its steps
        self.assertEqual(script.wait(30 * SLOW), 0)
        self.assertEqual(self.workers(), [])


if __name__ == "__main__":
    unittest.main()
