"""test_models.py - tasks that build a model of a library: its configuration travels to the candidate as plain data,
and a local model cache is readable in the jail while the folder around it, where a token may lie, is not."""

import os
import subprocess
import sys
import tempfile
import types
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXE = os.environ.get("MUSACODER_EXE", os.path.join(ROOT, "build", "musacoder"))
SLOWDOWN = float(os.environ.get("TEST_SLOWDOWN", 1))
sys.path.insert(0, os.path.join(ROOT, "runner"))

try:
    import values
except ImportError:
    values = None

TASK = """
import os
import torch
hub = os.environ["HF_HUB_CACHE"]
size = int(open(os.path.join(hub, "model.txt")).read())
if os.path.exists(os.path.join(hub, "..", "token")):
    raise RuntimeError("the token can be seen")
if os.environ.get("HF_HUB_OFFLINE") != "1":
    raise RuntimeError("not told that there is no network")

class Model(torch.nn.Module):
    def forward(self, x):
        return x + 1

def get_inputs():
    return [torch.rand(size)]

def get_init_inputs():
    return []
"""


class FakeConfig:
    def __init__(self, **fields):
        self.fields = fields

    def to_dict(self):
        return dict(self.fields, model_type="fake")


@unittest.skipIf(values is None, "PyTorch is not installed")
class Configurations(unittest.TestCase):
    def setUp(self):
        lib = types.ModuleType("transformers")
        lib.PretrainedConfig = FakeConfig
        lib.AutoConfig = types.SimpleNamespace(for_model=self.for_model)
        self.was = sys.modules.get("transformers")
        sys.modules["transformers"] = lib

    def tearDown(self):
        if self.was is None:
            del sys.modules["transformers"]
        else:
            sys.modules["transformers"] = self.was

    def for_model(self, kind, **fields):
        self.assertEqual(kind, "fake")
        return FakeConfig(**fields)

    def test_a_configuration_travels_as_data(self):
        sent = FakeConfig(vocab_size=512, scale=0.5, nested={"a": [1, None]}, name="x")
        packer = values.Packer()
        tree = packer.tree(["gpt", sent])
        got = values.decode(tree, b"".join(packer.parts))
        self.assertEqual(got[0], "gpt")
        self.assertIsInstance(got[1], FakeConfig)
        self.assertEqual(got[1].to_dict(), sent.to_dict())

    def test_other_objects_are_refused(self):
        with self.assertRaises(values.NotSendable):
            values.Packer().tree([object()])


@unittest.skipUnless(os.path.exists(EXE) and values is not None, "musacoder is not built or PyTorch is not installed")
class Cache(unittest.TestCase):
    def test_the_jail_shows_models_and_no_token(self):
        with tempfile.TemporaryDirectory(dir="/tmp") as home:
            os.chmod(home, 0o755)
            hub = os.path.join(home, "hub")
            os.mkdir(hub)
            for path, text in ((os.path.join(hub, "model.txt"), "32"), (os.path.join(home, "token"), "secret"),
                               (os.path.join(home, "task.py"), TASK)):
                with open(path, "w") as f:
                    f.write(text)
            env = dict(os.environ, HF_HOME=home)
            env.pop("HF_HUB_CACHE", None)
            done = subprocess.run([EXE, "shrink", os.path.join(home, "task.py")], env=env, capture_output=True,
                                  text=True, timeout=270 * SLOWDOWN)
            if "no jail" in done.stderr:
                self.skipTest("no jail here")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("class Model", done.stdout)


if __name__ == "__main__":
    unittest.main()
