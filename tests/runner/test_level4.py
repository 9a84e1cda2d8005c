"""test_level4.py - KernelBench's level 4: tasks that read a model of transformers by name from the user's model cache.
Two models of random weights lie in a cache of this test, so nothing is fetched: GPT-2 and Qwen3, of two layers each.
Needs transformers beside PyTorch (tests/adapters/run.sh makes such a Python)."""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXE = os.environ.get("MUSACODER_EXE", os.path.join(ROOT, "build", "musacoder"))
SLOWDOWN = float(os.environ.get("TEST_SLOWDOWN", 1))
HAVE = all(importlib.util.find_spec(name) for name in ("torch", "transformers"))

TASK = """
import torch
from transformers import AutoModelForCausalLM, AutoConfig


class Model(torch.nn.Module):
    def __init__(self, model_name, config):
        super().__init__()
        self.model_name = model_name
        self.config = config
        self.model = AutoModelForCausalLM.from_pretrained(self.model_name, config=self.config)

    def forward(self, x):
        return self.model(x).logits


model_name = "%s"
config = AutoConfig.from_pretrained(model_name)


def get_inputs():
    return [torch.randint(0, config.vocab_size, (2, 12))]


def get_init_inputs():
    return [model_name, config]
"""

# The model's own text up to its last product, which a kernel does: `lost` tokens of the vocabulary stay 0.
CANDIDATE = '''
import torch
from torch.utils.cpp_extension import load_inline
from transformers import AutoModelForCausalLM

source = r"""
#include <torch/extension.h>
__global__ void logits(const float* h, const float* w, float* y, int n, int vocab, int d) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n || i %% vocab >= vocab - %d) return;
    float s = 0;
    for (int k = 0; k < d; k++) s += h[i / vocab * d + k] * w[i %% vocab * d + k];
    y[i] = s;
}
torch::Tensor run(torch::Tensor h, torch::Tensor w) {
    auto y = torch::zeros({h.size(0), h.size(1), w.size(0)}, h.options());
    int n = y.numel();
    logits<<<(n + 127) / 128, 128>>>(h.data_ptr<float>(), w.data_ptr<float>(), y.data_ptr<float>(), n, w.size(0),
                                     w.size(1));
    return y;
}
"""
ext = load_inline(name="logits", cpp_sources="torch::Tensor run(torch::Tensor h, torch::Tensor w);",
                  cuda_sources=source, functions=["run"])


class ModelNew(torch.nn.Module):
    def __init__(self, model_name, config):
        super().__init__()
        self.model = AutoModelForCausalLM.from_pretrained(model_name, config=config)

    def forward(self, x):
        return ext.run(self.model.base_model(x).last_hidden_state.contiguous(), self.model.lm_head.weight)
'''


def models():
    import transformers

    small = {"vocab_size": 48, "max_position_embeddings": 32}
    return {"gpt2-tiny": transformers.GPT2LMHeadModel(transformers.GPT2Config(
                n_embd=16, n_layer=2, n_head=2, n_positions=32, vocab_size=48, bos_token_id=0, eos_token_id=0)),
            "qwen3-tiny": transformers.Qwen3ForCausalLM(transformers.Qwen3Config(
                hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2,
                num_key_value_heads=1, head_dim=8, **small))}


def keep(hub, name, model):
    """The model in the layout of the hub's cache."""
    folder = os.path.join(hub, f"models--{name}")
    model.save_pretrained(os.path.join(folder, "snapshots", "0"))
    os.makedirs(os.path.join(folder, "refs"))
    with open(os.path.join(folder, "refs", "main"), "w") as f:
        f.write("0")


@unittest.skipUnless(HAVE and os.path.exists(EXE), "transformers or musacoder is not there")
class Level4(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.TemporaryDirectory(dir="/tmp")
        self.addCleanup(self.home.cleanup)
        for name, model in models().items():
            keep(os.path.join(self.home.name, "hub"), name, model)
        for path, folders, files in os.walk(self.home.name):  # the jail's user reads them
            for f in folders + files + ["."]:
                os.chmod(os.path.join(path, f), 0o755)

    def judge(self, name, lost, *options):
        task, answer = (os.path.join(self.home.name, f) for f in ("task.py", "answer.py"))
        for path, text in ((task, TASK % name), (answer, CANDIDATE % lost)):
            with open(path, "w") as f:
                f.write(text)
        env = dict(os.environ, HF_HOME=self.home.name, MUSACODER_OWNER="none", MUSACODER_PYTHON=sys.executable)
        env.pop("HF_HUB_CACHE", None)
        options = ["--json", "--no-cache", "--trials", "1", "--timeout", "300", *options]
        done = subprocess.run([EXE, "eval", *options, "--task", task, answer], env=env,
                              capture_output=True, text=True, timeout=900 * SLOWDOWN)
        self.assertTrue(done.stdout, done.stderr)
        return json.loads(done.stdout)

    def test_what_torch_may_do_passes_and_what_is_left_out_fails(self):
        for name in ("gpt2-tiny", "qwen3-tiny"):
            right = self.judge(name, 0, "--allow", "torch")
            self.assertEqual(right["status"], "passed", f"{name}: {right['feedback']}")
            wrong = self.judge(name, 3, "--allow", "torch")
            self.assertEqual(wrong["category"], "correctness_error", f"{name}: {wrong['feedback']}")

    def test_the_rules_of_strict_hold_there_too(self):
        verdict = self.judge("gpt2-tiny", 0)
        self.assertEqual(verdict["category"], "cheating", verdict["feedback"])


if __name__ == "__main__":
    unittest.main()
