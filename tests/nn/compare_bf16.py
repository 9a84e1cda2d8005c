"""compare_bf16.py - our bf16 error beside PyTorch's, against Transformers in fp32 with the same weights.

    compare_bf16.py FOLDER TABLE [--device cuda]

FOLDER is one of make_model_golden.py's, whose weights are numbers of bf16; TABLE has our lines 'bf16 TENSOR ERROR',
as test_model_dev writes them to $NN_TEST_TABLE. Error, of the logits and of every gradient: root of the summed
squares of the difference over those of the truth. Prints each tensor, and how often ours is above 1.2 times
PyTorch's; exits 1 if the sum over all tensors is, or the logits are. Needs torch and transformers.
"""
import argparse
import json
import os
import sys

import torch
import transformers
from safetensors.torch import load_file


def error(x, truth):
    return ((x.double() - truth.double()).norm() / truth.double().norm()).item()


def theirs(folder, truth, device):
    config = json.load(open(os.path.join(folder, "config.json")))
    model = getattr(transformers, config["architectures"][0]).from_pretrained(
        folder, dtype=torch.bfloat16, attn_implementation="eager").to(device).eval()
    temperature, loss, logits = truth["temperature"].to(device), 0, []
    for a, b in zip(truth["cu"].tolist(), truth["cu"].tolist()[1:]):
        z = model(truth["tokens"][None, a:b].long().to(device)).logits[0].float()
        logits.append(z.detach())
        lp = torch.log_softmax(z / temperature, -1)
        target = truth["targets"][a:b].long().to(device)
        on = target >= 0
        picked = lp.gather(1, target.clamp(min=0)[:, None])[:, 0] * on
        entropy = -(lp.exp() * lp).sum(-1) * on
        loss = loss - (truth["weight"][a:b].to(device) * picked).sum() + (truth["coef"][a:b].to(device) * entropy).sum()
    loss.backward()
    errors = {"logits": error(torch.cat(logits).cpu(), truth["logits"])}
    for name, p in model.named_parameters():
        if p.grad is not None:
            errors["grad." + name] = error(p.grad.cpu(), truth["grad." + name])
    return errors


def main():
    a = argparse.ArgumentParser()
    a.add_argument("folder")
    a.add_argument("table")
    a.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    args = a.parse_args()
    lines = [line.split() for line in open(args.table)]
    ours = {name: float(x) for folder, dtype, name, x in lines if dtype == "bf16" and folder == args.folder}
    truth = load_file(os.path.join(args.folder, "golden.safetensors"))
    other = theirs(args.folder, truth, args.device)
    above = [n for n in other if not ours[n] <= 1.2 * other[n]]
    for n in sorted(other, key=lambda n: -ours[n] / other[n]):
        print(f"{ours[n] / other[n]:6.2f}  ours {ours[n]:.2e}  PyTorch {other[n]:.2e}  {n}")
    mean = [sum(e[n] for n in other) / len(other) for e in (ours, other)]
    print(f"{args.folder}: {len(other)} tensors, {len(above)} above 1.2 times PyTorch's error;",
          f"logits {ours['logits'] / other['logits']:.2f}, mean {mean[0]:.2e} against {mean[1]:.2e},",
          f"ratio {mean[0] / mean[1]:.2f}")
    sys.exit("logits" in above or mean[0] > 1.2 * mean[1])


main()
