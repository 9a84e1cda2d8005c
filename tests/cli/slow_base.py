"""slow_base.py - the recipe of test_base.py: every stage runs, the second call finds all done, and what it leaves asks
what was trained."""
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import test_base as base  # noqa: E402


class Stages(base.Folder):
    def test_every_stage_runs_and_says_what_it_asks(self):
        p = base.run(self.base, self.out)
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        with open(os.path.join(self.out, "summary.json")) as f:
            self.assertEqual([s["name"] for s in json.load(f)["stages"]], ["sft", "rft", "rl_single", "rl_multi"])
        for stage in ("sft", "rft", "rl_single", "rl_multi"):
            model = os.path.join(self.out, stage, "model")
            with open(os.path.join(model, "chat_template.jinja")) as f:
                self.assertNotIn("Help.", f.read(), stage)
            with open(os.path.join(model, "generation_config.json")) as f:
                generation = json.load(f)
            self.assertGreater(generation["max_new_tokens"], 300, stage)
            self.assertTrue(generation["eos_token_id"], stage)
        with open(os.path.join(self.out, "rl_single", "options.json")) as f:
            self.assertEqual(json.load(f)["asked"], os.path.join(self.out, "rft", "groups.jsonl"))
        with open(os.path.join(self.out, "rft", "groups.jsonl")) as f:
            self.assertTrue(all(json.loads(line)["scored"] >= 0 for line in f))
        again = base.run(self.base, self.out)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(again.stderr.count("done before"), 9, again.stderr)


if __name__ == "__main__":
    unittest.main()
