"""test_agent.py - 'musacoder agent' against a server of the test's own that streams recorded answers: the first
program is wrong, the second is right; the server is busy at first, and breaks one answer off."""

import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXE = os.path.join(os.environ.get("B", os.path.join(ROOT, "build")), "musacoder")
TASK = os.path.join(ROOT, "docs/example/task.py")
sys.path[:0] = [os.path.join(ROOT, "tests/eval"), os.path.join(ROOT, "tests/lib")]
import judges  # noqa: E402
from fake_openai import Server, fenced  # noqa: E402
from slow import slow  # noqa: E402

judges.share_owner()


def read(path):
    with open(path) as f:
        return f.read()


RIGHT = read(os.path.join(ROOT, "docs/example/kernel.py"))
WRONG = RIGHT.replace("0.5f", "0.25f")
SOURCE = RIGHT.split('"""')[1].split("\n")
LINE = next(f"{i} | {line}\n" for i, line in enumerate(SOURCE, 1) if "0.5f" in line)


class Bench(unittest.TestCase):
    def test_a_server_is_sampled_and_judged(self):
        server = Server([(fenced(RIGHT), True), 429, (fenced(WRONG), True), (fenced(RIGHT), True)])
        with tempfile.TemporaryDirectory() as folder:
            tasks, out = os.path.join(folder, "tasks"), os.path.join(folder, "run")
            os.mkdir(tasks)
            with open(os.path.join(tasks, "tanh.py"), "w") as f:
                f.write(read(TASK))
            argv = [EXE, "bench", "--model", server.url(), "--tasks", tasks, "--samples", "2", "--turns", "2",
                    "--out", out,
                    "--parallel", "1", "--trials", "1", "--json"]
            r = subprocess.run(argv, capture_output=True, text=True, timeout=240)
            self.assertEqual(r.returncode, 0, r.stderr)
            result = json.loads(r.stdout)
            asked = len(server.asked)
            again = subprocess.run(argv, capture_output=True, text=True, timeout=240)
        server.shutdown()
        server.server_close()
        self.assertEqual((result["pass_at_8"], result["avg_at_8"], result["best_avg_at_8"]), (1, 0.5, 1))
        self.assertEqual(asked, 4)  # two samples, one busy answer, one second turn
        self.assertEqual(len(server.asked), 4, "a finished benchmark asks nothing again")
        self.assertEqual(again.returncode, 0)

    def test_an_answer_of_lines_is_judged_as_a_program(self):
        server = Server([(fenced(WRONG), True), (LINE, True)])
        with tempfile.TemporaryDirectory() as folder:
            tasks, out = os.path.join(folder, "tasks"), os.path.join(folder, "run")
            os.mkdir(tasks)
            with open(os.path.join(tasks, "tanh.py"), "w") as f:
                f.write(read(TASK))
            r = subprocess.run([EXE, "bench", "--model", server.url(), "--tasks", tasks, "--samples", "1",
                                "--turns", "2",
                                "--edits", "--out", out, "--trials", "1", "--json"], capture_output=True, text=True,
                               timeout=240)
        server.shutdown()
        server.server_close()
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertEqual(json.loads(r.stdout)["turns_to_success"], [0, 1])
        self.assertIn(LINE.replace("0.5f", "0.25f"), server.asked[1]["messages"][2]["content"])

    def test_a_server_is_asked_in_the_dialect_that_is_judged(self):
        """The queue has no worker: what the server was asked is all that is looked at."""
        env = {k: v for k, v in os.environ.items() if k not in ("MUSACODER_SECRET", "MUSACODER_PROFILE")}
        for dialect, name in (("musa", "MUSA"), ("cuda", "CUDA")):
            server = Server([(fenced(RIGHT), True)])
            with tempfile.TemporaryDirectory() as folder:
                tasks, queue = os.path.join(folder, "tasks"), os.path.join(folder, "queue.db")
                os.mkdir(tasks)
                with open(os.path.join(tasks, "tanh.py"), "w") as f:
                    f.write(read(TASK))
                p = subprocess.Popen([EXE, "bench", "--model", server.url(), "--tasks", tasks, "--samples", "1",
                                      "--queue",
                                      queue, "--dialect", dialect, "--out", os.path.join(folder, "run")],
                                     stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=env)
                while not server.asked and p.poll() is None:
                    time.sleep(0.02)
                p.kill()
                said = p.communicate()[1].decode()
            server.shutdown()
            server.server_close()
            self.assertTrue(server.asked, said)
            self.assertIn(f"in native {name}", server.asked[0]["messages"][0]["content"])


class Agent(unittest.TestCase):
    def run_agent(self, plan, *more, key=None):
        server = Server(plan)
        env = dict(os.environ)
        env.pop("OPENAI_API_KEY", None)
        if key:
            env["OPENAI_API_KEY"] = key
        with tempfile.TemporaryDirectory() as folder:
            log, out = os.path.join(folder, "log.json"), os.path.join(folder, "best.py")
            r = subprocess.run([EXE, "agent", "--task", TASK, "--model", server.url(), "--log", log, "--out", out,
                                *more],
                               capture_output=True, text=True, env=env, timeout=240)
            turns = json.loads(read(log)) if os.path.exists(log) else []
            best = read(out) if os.path.exists(out) else None
        server.shutdown()
        server.server_close()
        return r, server.asked, turns, best

    def test_it_repairs_with_what_the_judge_says(self):
        plan = [503, (fenced(WRONG), True), (fenced(RIGHT), False), (fenced(RIGHT), True)]
        r, asked, turns, best = self.run_agent(plan, "--no-faster", key="secret-key")
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertEqual(best, RIGHT)
        self.assertEqual([t["verdict"]["status"] for t in turns], ["failed", "passed"])
        self.assertEqual(len(asked), 4)  # busy, turn 1, an answer that broke off, turn 2
        self.assertEqual([m["role"] for m in asked[3]["messages"]], ["user", "assistant", "user"])
        self.assertIn("Wrong result", asked[3]["messages"][2]["content"])
        self.assertEqual({a["key"] for a in asked}, {"Bearer secret-key"})
        self.assertEqual((asked[0]["temperature"], asked[0]["top_p"], asked[0]["max_tokens"]), (0.7, 0.95, 32000))
        self.assertNotIn("secret-key", r.stderr + r.stdout)

    def test_it_may_answer_with_the_lines_that_change(self):
        r, asked, turns, best = self.run_agent([(fenced(WRONG), True), (LINE, True)], "--no-faster", "--edits")
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertEqual(best, RIGHT)
        self.assertEqual([t["verdict"]["status"] for t in turns], ["failed", "passed"])
        self.assertIn(LINE.replace("0.5f", "0.25f"), asked[1]["messages"][2]["content"])

    def test_an_answer_of_several_files(self):
        """The first one's source has a name that is no plain path: it is left out, and the model is told. The best
        program is one text that 'eval' takes."""
        here = "import os\nhere = os.path.dirname(os.path.abspath(__file__))\n"
        head, body = RIGHT.split('source = r"""\n')
        source, rest = body.split('"""\n', 1)
        program = here + head + "source = open(os.path.join(here, 'src/kernel.cu')).read()\n" + rest
        answer = "```cuda %s\n" + source + "```\n```python main.py\n" + program + "```\n"
        r, asked, turns, best = self.run_agent([(answer % "../src/kernel.cu", True), (answer % "src/kernel.cu", True)],
                                               "--no-faster")
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertEqual([t["verdict"]["status"] for t in turns], ["failed", "passed"])
        self.assertEqual(len(turns[0]["verdict"]["extraction"]["left_out"]), 1)
        self.assertIn("'../src/kernel.cu' is no path", asked[1]["messages"][2]["content"])
        with tempfile.TemporaryDirectory() as folder:
            kept = os.path.join(folder, "best.py")
            with open(kept, "w") as f:
                f.write(best)
            p = subprocess.run([EXE, "eval", "--json", "--task", TASK, kept], capture_output=True, text=True)
        self.assertEqual(json.loads(p.stdout)["status"], "passed", p.stderr)

    def test_an_answer_of_sources_alone(self):
        source = RIGHT.split('source = r"""\n')[1].split('"""\n')[0]
        r, _, turns, best = self.run_agent([("```cuda kernel.cu\n" + source + "```\n", True)], "--no-faster")
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertEqual([t["verdict"]["status"] for t in turns], ["passed"])
        self.assertIn("#@file: kernel.cu\n", best)

    def test_after_a_pass_it_asks_for_speed_and_keeps_the_best(self):
        r, asked, turns, best = self.run_agent([(fenced(RIGHT), True), (fenced(WRONG), True)], "--turns", "2")
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertEqual(best, RIGHT)
        self.assertIn("faster", asked[1]["messages"][2]["content"])
        self.assertEqual([t["verdict"]["status"] for t in turns], ["passed", "failed"])

    def test_a_kill_takes_no_turn_that_was_judged(self):
        server = Server([(fenced(RIGHT), True), None])
        with tempfile.TemporaryDirectory() as folder:
            log, out = os.path.join(folder, "log.json"), os.path.join(folder, "best.py")
            p = subprocess.Popen([EXE, "agent", "--task", TASK, "--model", server.url(), "--log", log, "--out", out],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            while len(server.asked) < 2 and p.poll() is None:
                time.sleep(0.02)
            p.kill()
            said = p.communicate()[1].decode()
            self.assertEqual((len(server.asked), read(out)), (2, RIGHT), said)
            self.assertEqual([t["verdict"]["status"] for t in json.loads(read(log))], ["passed"])
        server.shutdown()
        server.server_close()

    @slow
    def test_it_ends_with_verdict_and_speed(self):
        r, _, _, _ = self.run_agent([(fenced(WRONG), True), (fenced(RIGHT), True)], "--no-faster")
        lines = r.stderr.strip().split("\n")
        self.assertRegex(lines[-3], r"^turn 1: failed, correctness_error - ")
        self.assertRegex(lines[-2], r"^turn 2: passed")
        self.assertEqual(lines[-1], "best: turn 2 of 2, passed, no speed: 'sim' measures none")

    def test_retry_bounds_the_wait_for_a_server_that_is_busy(self):
        began = time.monotonic()
        r, asked, _, _ = self.run_agent([503] * 50, "--retry", "2")
        self.assertEqual(r.returncode, 3, r.stderr)
        self.assertLess(time.monotonic() - began, 30)
        self.assertLess(len(asked), 10)

    def test_a_refusal_is_one_line(self):
        r, _, _, _ = self.run_agent([400])
        self.assertEqual(r.returncode, 2)
        errors = [line for line in r.stderr.splitlines() if line.startswith("error: ")]
        self.assertEqual(errors, ["error: the server refuses each dialogue, the last with 400: no more"])


if __name__ == "__main__":
    unittest.main()
