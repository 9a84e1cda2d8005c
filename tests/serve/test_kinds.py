"""test_kinds.py - compiling and judging on two machines: a worker that builds and has no PyTorch, one that runs and has
no compiler, each with a cache of its own. What travels is checked: bytes that changed on the way are never loaded."""

import base64
import hashlib
import hmac
import http.server
import json
import os
import re
import signal
import sqlite3
import tempfile
import threading
import time
import unittest

from fleet import NO_COMPILER, NO_TORCH, SLOW, Fleet, honest


def large(block):
    """Two megabytes of the host's that nobody reads, so that the library is larger than an answer may be."""
    return honest.relu(block).replace("__global__", '__attribute__((used)) static const char filler[2 << 20] = "much";'
                                      "\n__global__", 1)


def digest(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


class Bucket(http.server.BaseHTTPRequestHandler):
    """A server of S3's protocol that checks signatures as AWS describes them (version 4), and forgets nothing."""
    SECRET, kept = "a secret of this test's", {}

    def signed_with(self, body):
        auth = self.headers["Authorization"]
        scope, names, given = (re.search(w + r"=([^, ]+)", auth).group(1) for w in ("Credential", "SignedHeaders",
                                                                                    "Signature"))
        who, day, region, service, end = scope.split("/")
        sums = self.headers["x-amz-content-sha256"]
        lines = [f"{n}:{self.headers[n].strip()}" for n in names.split(";")]
        canonical = "\n".join([self.command, self.path, "", *lines, "", names, sums])
        text = "\n".join(["AWS4-HMAC-SHA256", self.headers["x-amz-date"], f"{day}/{region}/{service}/{end}",
                          hashlib.sha256(canonical.encode()).hexdigest()])
        key = ("AWS4" + self.SECRET).encode()
        for word in (day, region, service, end, text):
            key = hmac.new(key, word.encode(), "sha256").digest()
        return (hmac.compare_digest(key.hex(), given) and sums == hashlib.sha256(body).hexdigest() and
                {"host", "x-amz-content-sha256", "x-amz-date"} <= set(names.split(";")))

    def answer(self, status, body=b""):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_PUT(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        fine = self.signed_with(body)
        if fine:
            self.kept[self.path] = body
        self.answer(200 if fine else 403)

    def do_GET(self):
        fine = self.signed_with(b"")
        self.answer(200 if fine and self.path in self.kept else 404 if fine else 403, self.kept.get(self.path, b""))

    def log_message(self, *a):
        pass


class Kinds(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.built = tempfile.TemporaryDirectory()  # builders come and go; their headers are precompiled once

    @classmethod
    def tearDownClass(cls):
        cls.built.cleanup()

    def setUp(self):
        self.fleet = Fleet({"build": self.built.name})
        self.addCleanup(self.fleet.close)
        self.worker, self.rows, self.judge = self.fleet.worker, self.fleet.rows, self.fleet.judge

    def files_of(self, name):
        found = []
        for folder, _, names in os.walk(self.fleet.cache(name)):
            found += [os.path.join(folder, n) for n in names if n in ("module.so", "device.so")]
        return found

    def test_built_there_and_run_here(self):
        self.worker("build", NO_TORCH)
        run = self.worker("run", NO_COMPILER, "--jobs", "1")
        right, wrong, broken = self.judge(honest.relu(128), honest.relu(64, value="x[i]"),
                                          honest.relu(32, value="no_such_name"))
        self.assertEqual((right["status"], right["compile"]["ok"]), ("passed", True), right)
        self.assertEqual(wrong["category"], "correctness_error", wrong)
        self.assertEqual(broken["category"], "compile_error", broken)
        self.assertIn("no_such_name", json.dumps(broken["compile"]["diagnostics"]))
        built, run_here = (sorted(map(digest, self.files_of(n))) for n in ("build", "run"))
        self.assertEqual(len(run_here), 4)  # two libraries, two images
        self.assertLessEqual(set(run_here), set(built))
        self.assertEqual(self.rows("SELECT count(*) FROM job WHERE lane = 'build:sim'"), [(0,)])  # read and forgotten
        self.assertEqual(len(self.rows("SELECT 1 FROM job WHERE lane = 'run:sim' AND state = 2")), 3)
        run.send_signal(signal.SIGTERM)
        self.assertEqual(run.wait(30), 0)

    def test_a_builder_that_dies_loses_nothing(self):
        first = self.worker("build", NO_TORCH)
        self.worker("run", NO_COMPILER, "--jobs", "1")
        got = []
        asking = threading.Thread(target=lambda: got.extend(self.judge(honest.relu(256))))
        asking.start()
        until = time.time() + 100 * SLOW
        while not self.rows("SELECT 1 FROM job WHERE lane = 'build:sim' AND state = 1 AND payload LIKE '%request%'"):
            self.assertLess(time.time(), until, "no build was begun")
            time.sleep(0.01)
        first.kill()
        first.wait()
        self.worker("build", NO_TORCH)
        asking.join(200 * SLOW)
        self.assertEqual([r["status"] for r in got], ["passed"], got)

    def test_changed_bytes_are_not_loaded(self):
        """A builder of the test's own, which answers with another library than it says, with none, and with a name of
        what is nowhere. None of it is the program's fault."""
        answered, a = [], {"sha256": hashlib.sha256(b"a").hexdigest(), "size": 1}
        lies = [dict(a, base64=base64.b64encode(b"b").decode()), dict(a, base64="%%%%"), a]

        def lie():
            db = sqlite3.connect(self.fleet.queue, timeout=30, isolation_level=None)
            while not self.enough:
                for at, payload in db.execute("SELECT id, payload FROM job WHERE lane = 'build:sim' AND state = 0"):
                    v = {"toolchain": "one of a test"}
                    if "request" in json.loads(payload):
                        v.update(build={"ok": True, "ms": 1, "log": ""}, files={"module.so": lies[len(answered) % 3]})
                        answered.append(at)
                    db.execute("UPDATE job SET state = 2, result = ?, ended = 1e10 WHERE id = ?", (json.dumps(v), at))
                time.sleep(0.02)
            db.close()

        self.enough = False
        liar = threading.Thread(target=lie)
        liar.start()
        try:
            self.worker("run", NO_COMPILER, "--jobs", "1", "--artefacts", self.fleet.path("shared"))
            self.fleet.client.patience_s = 60 * SLOW
            records = [self.judge(honest.relu(n))[0] for n in (32, 64, 128)]
        finally:
            self.enough = True
            liar.join()
        self.assertGreaterEqual(len(answered), 3)
        self.assertEqual([r["status"] for r in records], ["infra"] * 3, records)
        self.assertIn("damaged", json.dumps(self.rows("SELECT result FROM job WHERE lane = 'run:sim'")))
        self.assertEqual(self.files_of("run"), [])

    def test_large_builds_travel_through_a_bucket(self):
        bucket = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Bucket)
        threading.Thread(target=bucket.serve_forever, daemon=True).start()
        env = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{bucket.server_port}", "AWS_ACCESS_KEY_ID": "somebody",
               "AWS_SECRET_ACCESS_KEY": Bucket.SECRET, "AWS_REGION": "eu-central-1"}
        self.worker("build", dict(env, **NO_TORCH), "--artefacts", "s3://builds/of/all")
        self.worker("run", dict(env, **NO_COMPILER), "--artefacts", "s3://builds/of/all", "--jobs", "1")
        record = self.judge(large(512))[0]
        bucket.shutdown()
        bucket.server_close()
        self.assertEqual(record["status"], "passed", record)
        (name, body), = Bucket.kept.items()
        self.assertEqual(name, "/builds/of/all/" + hashlib.sha256(body).hexdigest())
        self.assertGreater(len(body), 1 << 20)

    def test_what_cannot_be_is_said(self):
        theirs = self.fleet.path("theirs")  # a store of hashes of somebody else, in which nothing is swept
        os.makedirs(theirs + "/ab")
        with open(f"{theirs}/ab/{62 * '0'}", "w"):
            pass
        for argv, env, word in ((("--kind", "build"), NO_COMPILER, "compiler"), (("--kind", "run"), NO_TORCH, "ython"),
                                (("--artefacts", "ftp://x"), {}, "s3://"), (("--artefacts", "s3://x"), {}, "AWS_"),
                                (("--artefacts", theirs), {}, "not of these artefacts"),
                                (("--kind", "both"), NO_COMPILER, "compiler")):
            p = self.fleet.start("refused", env, "worker", *argv)
            said = p.communicate(timeout=60)[1]
            self.assertNotEqual(p.returncode, 0, argv)
            self.assertIn(word, said)


if __name__ == "__main__":
    unittest.main()
