#!/usr/bin/env python3
"""NNSmith (PyPI: nnsmith) beside 'make bench-synth': valid models per CPU second, no text made, by number of operators.

usage: bench_synth_nnsmith.py [SECONDS]      needs 'pip install nnsmith' beside PyTorch"""
import sys
import time

try:
    from nnsmith.graph_gen import model_gen
    from nnsmith.materialize import Model
except ImportError:
    sys.exit("nnsmith is not installed; 'pip install nnsmith' in an environment with PyTorch")


def models(operators, nodes, seconds):
    """Valid models and CPU seconds, by the default method."""
    begin, made, seed = time.process_time(), 0, 0
    while time.process_time() - begin < seconds:
        seed += 1
        try:
            model_gen(opset=operators, method="symbolic-cinit", seed=seed, max_nodes=nodes,
                      timeout_ms=10000).make_concrete()
            made += 1
        except Exception:  # pylint: disable=broad-except
            pass  # an invalid model: not counted
    return made, time.process_time() - begin


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 10
    operators = Model.init("torch").operators()
    print(f"nnsmith: {len(operators)} operators")
    for nodes in (4, 10):
        made, took = models(operators, nodes, seconds)
        print(f"nnsmith: {made / took:.1f} models of {nodes} operators a second and core")


if __name__ == "__main__":
    main()
