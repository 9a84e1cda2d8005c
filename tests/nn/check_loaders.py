"""check_loaders.py - would vLLM's and SGLang's loaders take a model folder? Names and shapes only; neither is run.

    check_loaders.py FOLDER SOURCE...

SOURCE is a project's own file that loads the model (sglang/srt/models/qwen3_5.py,
vllm/model_executor/models/qwen3_5.py; for Qwen3 qwen2.py of the same folder). Its 'stacked_params_mapping' says which
tensors of a checkpoint become which parameter; the parameters and the shapes of their parts are computed here from
config.json. Every tensor must find its place with its shape, every part of every parameter must be filled, and what
is left over must be what the loaders skip (visual, mtp, a tied classifier). Prints one line a source; exits 1 with
the names where one does not fit. Standard library only.
"""
import ast
import glob
import json
import os
import struct
import sys


def headers(folder):
    """name -> shape, of all shards; an index must name exactly these."""
    shapes, where = {}, {}
    for path in glob.glob(os.path.join(folder, "model*.safetensors")):
        with open(path, "rb") as f:
            head = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        for name, t in head.items():
            if name != "__metadata__":
                shapes[name], where[name] = t["shape"], os.path.basename(path)
    index = os.path.join(folder, "model.safetensors.index.json")
    if os.path.exists(index):
        assert json.load(open(index))["weight_map"] == where, "the index names other tensors or files"
    return shapes


def stacked(source):
    """(parameter, tensor, part) of every list that is assigned to or extends stacked_params_mapping."""
    rows = []
    for node in ast.walk(ast.parse(open(source).read())):
        if isinstance(node, ast.Assign):
            hit, value = any(getattr(t, "id", "") == "stacked_params_mapping" for t in node.targets), node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "extend":
            hit, value = getattr(node.func.value, "id", "") == "stacked_params_mapping", node.args[0]
        else:
            continue
        for row in value.elts if hit and isinstance(value, ast.List) else []:
            try:
                rows.append(ast.literal_eval(row))
            except ValueError:
                pass
    return list(dict.fromkeys(rows))


def parameters(c):
    """parameter -> {part: shape}; part None: the whole. As the projects lay a layer out: fused where they fuse."""
    h, f, d = c["hidden_size"], c["intermediate_size"], c.get("head_dim") or c["hidden_size"] // c[
        "num_attention_heads"]
    q, kv, new = c["num_attention_heads"] * d, c["num_key_value_heads"] * d, c["model_type"] != "qwen3"
    p = {"embed_tokens.weight": {None: [c["vocab_size"], h]}, "norm.weight": {None: [h]}}
    every = c.get("full_attention_interval", 4)
    kinds = c.get("layer_types") or [
        "linear_attention" if new and (i + 1) % every else "full_attention" for i in range(c["num_hidden_layers"])]
    for i, kind in enumerate(kinds):
        at = f"layers.{i}."
        p[at + "input_layernorm.weight"] = p[at + "post_attention_layernorm.weight"] = {None: [h]}
        p[at + "mlp.gate_up_proj.weight"] = {0: [f, h], 1: [f, h]}
        p[at + "mlp.down_proj.weight"] = {None: [h, f]}
        if kind == "full_attention":
            p[at + "self_attn.qkv_proj.weight"] = {"q": [q * (2 if new else 1), h], "k": [kv, h], "v": [kv, h]}
            p[at + "self_attn.o_proj.weight"] = {None: [h, q]}
            p[at + "self_attn.q_norm.weight"] = p[at + "self_attn.k_norm.weight"] = {None: [d]}
            continue
        nk, nv = c["linear_num_key_heads"], c["linear_num_value_heads"]
        k, v = nk * c["linear_key_head_dim"], nv * c["linear_value_head_dim"]
        at += "linear_attn."
        p[at + "in_proj_qkvz.weight"] = {(0, 1, 2): [2 * k + v, h], 3: [v, h]}
        p[at + "in_proj_ba.weight"] = {0: [nv, h], 1: [nv, h]}
        p[at + "conv1d.weight"] = {None: [2 * k + v, 1, c["linear_conv_kernel_dim"]]}
        p[at + "A_log"] = p[at + "dt_bias"] = {None: [nv]}
        p[at + "norm.weight"] = {None: [c["linear_value_head_dim"]]}
        p[at + "out_proj.weight"] = {None: [h, v]}
    return p


def place(name, rows, params):
    """The parameter and part that a tensor fills, as the loaders' loop finds them."""
    for param, weight, part in rows:
        if weight in name and name.replace(weight, param) in params:
            return name.replace(weight, param), part
    return (name, None) if name in params else None


def check(shapes, config, rows):
    text = config.get("text_config", config)
    tied = config.get("tie_word_embeddings", text.get("tie_word_embeddings", False))
    params, filled, wrong = parameters(text), set(), []
    params = {"model." + k: v for k, v in params.items()}
    if not tied:
        params["lm_head.weight"] = {None: [text["vocab_size"], text["hidden_size"]]}
    for full, shape in shapes.items():
        name = full.replace("model.language_model.", "model.")
        if "visual" in full or full.startswith("mtp.") or (tied and full == "lm_head.weight"):
            continue
        found = place(name, rows, params)
        if not found or found[1] not in params[found[0]]:
            wrong.append(f"{full}: no parameter")
        elif params[found[0]][found[1]] != shape:
            wrong.append(f"{full}: {shape}, wants {params[found[0]][found[1]]}")
        else:
            filled.add(found)
    wrong += [f"{k} part {part}: nothing fills it" for k, parts in params.items() for part in parts
              if (k, part) not in filled]
    return wrong, len(filled)


def main():
    folder, *sources = sys.argv[1:]
    shapes, config, bad = headers(folder), json.load(open(os.path.join(folder, "config.json"))), False
    for source in sources:
        rows = stacked(source)
        assert rows, f"{source} has no stacked_params_mapping"
        wrong, n = check(shapes, config, rows)
        print(f"{source}: {len(shapes)} tensors, {n} parts filled,", "\n  ".join(wrong[:20]) if wrong else "all fit")
        bad |= bool(wrong)
    sys.exit(bad)


main()
