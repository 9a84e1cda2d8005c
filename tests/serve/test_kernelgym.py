"""test_kernelgym.py - 'serve --compat kernelgym' as KernelGYM's clients use it: post, poll, results, every category."""

import json
import os
import re
import sqlite3
import threading
import time
import unittest

import test_serve

REFERENCE = "import torch\nclass Model(torch.nn.Module):\n    pass\n"
# category: (status, code, compiled, correct, decoy), as their reward clients expect
TABLE = {"passed": ("completed", None, True, True, False),
         "extraction_error": ("failed", "VALIDATION_ERROR", False, False, False),
         "compile_error": ("failed", "COMPILATION_ERROR", False, False, False),
         "runtime_error": ("completed", "RUNTIME_ERROR", True, False, False),
         "correctness_error": ("completed", "CORRECTNESS_ERROR", True, False, False),
         "cheating": ("completed", None, True, True, True),
         "timeout": ("timeout", "TIMEOUT_ERROR", True, False, False)}
SECTIONS = """### CUDA_KERNELS
```cpp
// it's "quoted" \\ {k}
```
### APPLY_BINDINGS
```cpp
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}
```
### MODEL_NEW
```python
import cuda_extension
class ModelNew: pass
```
"""


class Judge(test_serve.Worker):
    """The verdict is the category that the program names."""

    def run(self):
        db = sqlite3.connect(self.path, timeout=30, isolation_level=None)
        while not self.stop:
            for at, payload in db.execute("SELECT id, payload FROM job WHERE state = 0").fetchall():
                text = json.loads(payload)["candidate"]
                kind = next((k for k in list(TABLE) + ["infra", "unsupported"] if k in text), None)
                if "never" in text:
                    continue
                v = {"task": "task", "status": kind if kind in ("passed", "infra", "unsupported") else "failed",
                     "category": None if kind == "passed" else kind, "backend": "sim", "feedback": "because",
                     "correctness": {"q": 1.0 if kind == "cheating" else 0.0}}
                if "fast" in text:
                    v["performance"] = {"trusted": True, "eager_ms": 3.0, "candidate_ms": 2.0, "speedup_eager": 1.5}
                db.execute(f"UPDATE job SET state = 2, result = ?, ended = {test_serve.NOW} WHERE id = ?",
                           (json.dumps(v, separators=(",", ":")), at))
            time.sleep(0.01)
        db.close()


class Compat(test_serve.Serve):
    def extra(self):
        return ["--compat", "kernelgym"]

    def setUp(self):
        super().setUp()
        self.worker.stop = True
        self.worker.join()
        self.worker = Judge(self.queue)
        self.worker.start()

    def post(self, given_id, program, **more):
        asked = {"task_id": given_id, "reference_code": REFERENCE, "backend": "triton",
                 "kernel_code": f"class ModelNew: pass # {program}"}
        return self.ask("POST", "/evaluate", dict(asked, **more))

    def test_every_category(self):
        for kind, (status, code, compiled, correct, decoy) in TABLE.items():
            http, v = self.post("id-" + kind, kind)
            self.assertEqual((http, v["status"], v["error_code"], v["compiled"], v["correctness"], v["decoy_kernel"]),
                             (200, status, code, compiled, correct, decoy), kind)
            self.assertEqual((v["speedup"], v["kernel_runtime"], v["reference_runtime"]), (0.0, -1.0, -1.0))
            self.assertIsInstance(v["metadata"], dict)
            self.assertEqual(self.ask("GET", "/results/id-" + kind)[1], v)
            polled = self.ask("GET", "/status/id-" + kind)[1]
            self.assertEqual((polled["status"], polled["task_id"]), (status, "id-" + kind))
        self.assertTrue(self.ask("GET", "/status/id-compile_error")[1]["error_message"]
                        .startswith("Kernel compilation failed: "))

    def test_the_table_is_as_long_as_the_record_s(self):
        """A category that a record may have and that this file does not know would be told as SYSTEM_ERROR."""
        with open(os.path.join(test_serve.ROOT, "src/eval/verdict/record.c")) as f:
            order = re.search(r"precedence\[\] = \{([^}]*)\}", f.read())[1]
        self.assertEqual(set(re.findall(r"\w+", order)), set(TABLE) - {"passed"} | {"infra", "unsupported"})

    def test_times_that_are_trusted(self):
        v = self.post("f", "passed fast")[1]
        self.assertEqual((v["speedup"], v["kernel_runtime"], v["reference_runtime"]), (1.5, 2.0, 3.0))

    def test_what_is_not_scored_is_later(self):
        for kind in ("infra", "unsupported"):
            status, v = self.post("i-" + kind, kind)
            self.assertEqual((status, v["error_code"]), (503, "SYSTEM_ERROR"))
            self.assertEqual(self.ask("GET", "/status/i-" + kind)[1]["status"], "failed")

    def test_what_is_wrong(self):
        for more, says in (({"task_id": ""}, "task_id"), ({"kernel_code": "x"}, "kernel_code"),
                           ({"timeout": 1}, "timeout"), ({"entry_point": "Net"}, "entry_point"),
                           ({"reference_code": None}, "reference_code")):
            status, v = self.post("w", "passed", **more)
            self.assertEqual((status, v["error_code"]), (400, "VALIDATION_ERROR"))
            self.assertEqual(sorted(v), ["error", "error_code", "message", "task_id", "timestamp"])
            self.assertIn(says, v["message"])
        for path in ("/status/none", "/results/none"):
            status, v = self.ask("GET", path)
            self.assertEqual((status, list(v)), (404, ["detail"]))

    def test_poll_while_it_waits_then_cancel(self):
        got = []
        t = threading.Thread(target=lambda: got.append(self.post("n", "never", timeout=10)))
        t.start()
        time.sleep(1)
        self.assertEqual(self.ask("GET", "/status/n")[1]["status"], "pending")
        for part in ("n_kernel", "n_ref"):  # the fork's clients ask after the halves of a task
            self.assertEqual(self.ask("GET", "/status/" + part)[1]["status"], "pending")
        self.assertEqual(self.ask("GET", "/status/n_other")[0], 404)
        t.join()
        self.assertEqual((got[0][0], got[0][1]["status"]), (200, "processing"))
        self.assertEqual(self.ask("DELETE", "/tasks/n")[1]["status"], "cancelled")
        for path in ("/status/n", "/results/n"):
            v = self.ask("GET", path)[1]
            self.assertEqual((v["status"], v["error_message"]), ("cancelled", "Task cancelled"))

    def test_the_same_id_with_other_content_is_judged_anew(self):
        self.assertEqual(self.post("s", "passed")[1]["status"], "completed")
        self.assertEqual(self.post("s", "compile_error")[1]["status"], "failed")
        self.assertEqual(self.ask("GET", "/results/s")[1]["status"], "failed")

    def test_sections_become_a_program(self):
        self.assertEqual(self.post("k", "", kernel_code=SECTIONS.replace("{k}", "never"), timeout=10)[1]["status"],
                         "processing")
        db = sqlite3.connect(self.queue)
        program = json.loads(db.execute("SELECT payload FROM job").fetchone()[0])["candidate"]
        db.close()
        self.assertIn("class ModelNew: pass", program)
        compile(program, "program", "exec")
        space = {"load_inline": lambda **k: k}
        exec(program.split("import load_inline\n")[1].split("sys.modules")[0], space)  # noqa: S102
        self.assertEqual(space["cuda_extension"]["cuda_sources"], "// it's \"quoted\" \\ never\n")

    def test_a_reference_makes_its_inputs_on_the_host(self):
        """On 'sim' there is no GPU, and their references ask for one; our judge lays inputs on the device itself."""
        code = (REFERENCE + "def get_inputs():\n"
                "    return [torch.randn(4, device=\"cuda\"), torch.ones(1, device='cuda:0')]\n")
        self.post("h", "never", reference_code=code, timeout=10)
        db = sqlite3.connect(self.queue)
        task = json.loads(db.execute("SELECT payload FROM job").fetchone()[0])["task_code"]
        db.close()
        self.assertEqual(task, code.replace('"cuda"', '"cpu"').replace("'cuda:0'", '"cpu"'))

    def test_health_and_lists(self):
        v = self.ask("GET", "/health")[1]
        self.assertEqual((v["status"], v["gpu_status"]), ("healthy", {}))
        self.assertEqual(self.ask("GET", "/queue/status")[1]["pending"], 0)
        self.assertEqual(self.ask("GET", "/workers/status")[1], {"workers": []})


class Without(test_serve.Serve):
    def test_without_the_option_there_is_nothing(self):
        self.assertEqual(self.ask("POST", "/evaluate", {})[0], 404)


class Retry(test_serve.Serve):
    def setUp(self):
        super().setUp()
        self.worker.stop = True
        self.worker.join()
        self.worker = Judge(self.queue)
        self.worker.start()

    def test_a_group_that_failed_entirely_comes_back(self):
        draw = lambda p: self.ask("POST", "/v1/retry/draw", {"probability": p})[1]["retry"]  # noqa: E731
        self.ask("POST", "/v1/eval", self.request("runtime_error 1", "passed", group="a"))
        self.ask("POST", "/v1/eval", self.request("compile_error 2", "infra", group="b"))
        time.sleep(0.5)
        self.assertIsNone(draw(1))
        self.ask("POST", "/v1/eval", self.request("timeout 3", group="c", group_size=2, prompt_id="p"))
        time.sleep(0.5)
        self.assertIsNone(draw(1))
        self.ask("POST", "/v1/eval", self.request("timeout 4", group="c", group_size=2, prompt_id="p"))
        time.sleep(0.5)
        self.assertIsNone(draw(0))
        self.assertEqual(draw(1), {"prompt_id": "p", "response": "timeout 3", "feedback": "because"})
        self.assertIsNone(draw(1))
        self.assertEqual(self.ask("POST", "/v1/retry/draw", {"probability": 2})[0], 400)

    def test_jobs_are_listed(self):
        self.ask("POST", "/v1/eval?wait=0", self.request("never 1", "never 2", priority=1000))
        got = self.ask("GET", "/v1/jobs?state=waiting&limit=1")[1]["jobs"]
        self.assertEqual([(j["state"], j["priority"]) for j in got], [("waiting", 100)])
        self.assertEqual(len(self.ask("GET", "/v1/jobs")[1]["jobs"]), 2)
        for bad in ("limit=0", "limit=x", "state=odd"):
            self.assertEqual(self.ask("GET", "/v1/jobs?" + bad)[0], 400)


del test_serve.Calls, test_serve.Tokens, test_serve.Refusals  # they run in their own file

if __name__ == "__main__":
    unittest.main()
