"""defects.py - which known defects of KernelBench's published algorithm touch this task. Only those that apply are
named.

Each is decided by behaviour where that is possible (two modes, two seeds, the operators that really ran), not by names
in the source. Sources: eval.py of KernelBench (get_tolerance_for_precision, eval_kernel_against_ref).
"""
import torch

import ops
import values

TOLERANCE = 1e-4  # fp32


def differ(a, b):
    la, lb = values.leaves(a), values.leaves(b)
    return len(la) != len(lb) or any(x.shape != y.shape or not torch.equal(values.comparable(x), values.comparable(y))
                                     for x, y in zip(la, lb))


def integer_inputs(task, raw, inputs, eager, cast):
    ints = [i for i, t in enumerate(values.leaves(raw)) if not t.is_floating_point() and not t.is_complex()]
    if ints and cast:
        return f"the published algorithm casts every input to float; inputs {ints} are integers or booleans"
    if ints:
        return (f"the published cast of inputs {ints} from integers to float makes the reference raise, so no "
                f"candidate "
                "can pass there; integers are kept here")
    return None


def allclose(task, raw, inputs, eager, cast):
    if not any(t.is_floating_point() for t in values.leaves(eager)):
        return None
    return f"the tolerance is {TOLERANCE:g} + {TOLERANCE:g} * |candidate|: it grows with the candidate's own values"


def small_outputs(task, raw, inputs, eager, cast):
    top = max([float(t.abs().max()) for t in values.leaves(eager) if t.is_floating_point() and t.numel()] + [0.0])
    if not any(t.is_floating_point() for t in values.leaves(eager)) or top > TOLERANCE:
        return None
    return f"the largest output is {top:.3g}, not above the absolute tolerance {TOLERANCE:g}: zeros pass"


def tf32(task, raw, inputs, eager, cast):
    names = sorted(n for n in ops.record(lambda: task.run(task.model, inputs))[0] if n in ops.CONVOLUTIONS)
    if not names:
        return None
    return ("on a GPU the reference runs " + ", ".join(names) + " in TF32 (cuDNN's default), so its own error may "
                                                                "exceed "
            f"{TOLERANCE:g} and exact candidates fail")


def train_mode(task, raw, inputs, eager, cast):
    was, other = task.model.training, task.model
    try:
        changed = differ(task.run(task.model.train(), inputs), task.run(other.eval(), inputs))
    except Exception:
        changed = False
    finally:
        task.model.train(was)
    return "the model is judged in train mode, where it computes something else than in eval mode" if changed else None


def random_forward(task, raw, inputs, eager, cast):
    if not differ(task.run(task.model, inputs, 1), task.run(task.model, inputs, 2)):
        return None
    return "forward draws random numbers and the two sides draw different ones"


def seed_parameters(task, raw, inputs, eager, cast):
    other = dict(task.another(task.init_seed + 1).named_parameters())
    names = [n for n, p in task.model.named_parameters()
             if p.is_floating_point() and n in other and differ(p.detach(), other[n].detach().to(p.dtype))]
    if not names:
        return None
    return (f"{len(names)} parameters ({names[0]}{' ..' if len(names) > 1 else ''}) match only if ModelNew draws "
            f"random "
            "numbers in the same order as Model")


def constant_parameters(task, raw, inputs, eager, cast):
    names = [n for n, p in task.model.named_parameters()
             if p.is_floating_point() and p.numel() > 1 and bool((p == 0).all() or (p == 1).all())]
    return f"{', '.join(names[:6])} are all 0 or all 1 as constructed: a candidate may ignore them" if names else None


def several_outputs(task, raw, inputs, eager, cast):
    if isinstance(eager, torch.Tensor):
        return None
    return (f"the reference returns a {type(eager).__name__}, which the published comparison cannot take: "
            "no candidate passes")


TABLE = {"integer_inputs_cast": integer_inputs, "allclose_scaled_by_candidate": allclose, "zeros_pass": small_outputs,
         "tf32_reference": tf32, "train_mode": train_mode, "random_forward": random_forward,
         "seed_dependent_parameters": seed_parameters, "constant_parameters": constant_parameters,
         "several_outputs": several_outputs}


def known(task, raw, inputs, eager, cast):
    """[{"name","detail"}]. raw: what get_inputs gave; inputs: after the cast; cast: integers were cast too."""
    found = []
    for name, test in TABLE.items():
        detail = test(task, raw, inputs, eager, cast)
        if detail:
            found.append({"name": name, "detail": detail})
    return found
