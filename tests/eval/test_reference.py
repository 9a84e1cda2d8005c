"""test_reference.py - the reference side on its own: regimes, parameters, seeds, values in frames."""
import os
import subprocess
import sys
import textwrap
import unittest
import unittest.mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "runner"))
import torch  # noqa: E402

import reference  # noqa: E402
import shrink  # noqa: E402
import values  # noqa: E402

FORK = "torch"
HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"


def task(forward, inputs="[torch.randn(4, 6)]", init="pass", sizes=""):
    return (HEAD + sizes + "\nclass Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n        " +
            init +
            "\n    def forward(self, x, *rest):\n        return " + forward +
            f"\n\ndef get_inputs():\n    return {inputs}\n\ndef get_init_inputs():\n    return []\n")


def run(source, protocol="strict", params="random", trials=2, seed=0, **more):
    t = reference.Task({"source": source, "protocol": protocol, "params": params, "trials": trials, "seed": seed,
                        "max_elements": 1 << 20, **more})
    head = t.answer()
    return head, b"".join(t.parts)


def value(section, blob):
    return values.decode(section["tree"], blob[section["at"]:section["at"] + section["nbytes"]])


class Noise(unittest.TestCase):
    def test_beyond_one_rounding(self):
        """An answer that is rounded once to its own type has no error that counts."""
        o = torch.randn(1000, dtype=torch.float64)
        for dtype in (torch.bfloat16, torch.float16, torch.float32):
            self.assertEqual(reference.beyond_rounding(o.to(dtype), o), 0)
            self.assertAlmostEqual(reference.beyond_rounding((o + 0.5).to(dtype), o), 0.5, delta=0.05)
        self.assertEqual(reference.beyond_rounding(torch.tensor([1, 2]), torch.tensor([1, 3])), 0)

    def test_a_single_number_is_shaken_often(self):
        head, _ = run(task("x.sum()", "[torch.randn(300)]"), trials=1)
        row = head["draws"][0]["noise"][0]
        self.assertEqual((row["dtype"], row["out"]), ("float32", "float32"))
        self.assertGreater(row["n2"], 0.3 * 2.0**-24 * 17 / 3**0.5)  # eight tries: none of them is near 0 by chance
        self.assertEqual(reference.tries_of(torch.zeros(()), [torch.zeros(9)]), 8)
        self.assertEqual(reference.tries_of([torch.zeros(3), torch.zeros(99)], []), 3)
        self.assertEqual(reference.tries_of(torch.zeros(99), []), 1)

    def test_precisions_are_told_apart(self):
        head, _ = run(task("(x @ x.T).float()", "[torch.randn(4, 6).bfloat16()]"), trials=1)
        self.assertEqual([(r["dtype"], r["out"]) for r in head["draws"][0]["noise"]], [("bfloat16", "float32")])


class Cheap(unittest.TestCase):
    """What each of a thousand runs of a task does beside the task's own work."""

    def test_seeds_are_torchs_and_ask_no_device(self):
        torch.manual_seed(11)
        want = torch.rand(3)
        with unittest.mock.patch("traceback.format_stack", side_effect=AssertionError("the stack was written down")):
            reference.seed_all(11)
        self.assertTrue(torch.equal(torch.rand(3), want))

    def test_copies_of_models_are_deep(self):
        model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
        model[0].register_forward_hook(lambda m, x, y: y + 1)
        model[1].kept = {"rows": [torch.ones(2)]}
        twin, x = reference.copy_of(model), torch.randn(5, 3)
        self.assertTrue(torch.equal(twin.eval()(x), model.eval()(x)))
        twin[0].weight.data.zero_(), twin[1].kept["rows"][0].zero_()
        twin[1].register_forward_hook(lambda m, x, y: y * 0)
        self.assertTrue(model[0].weight.any() and model[1].kept["rows"][0].all() and model(x).any())
        self.assertFalse(twin(x).any())


def of_distributions(head):
    return [(d["regime"], d["trial"]) for d in head["draws"] if d["regime"] in reference.REGIMES]


class Draws(unittest.TestCase):
    def test_five_regimes(self):
        head, blob = run(task("torch.tanh(x)"))
        self.assertEqual(of_distributions(head), [(r, t) for r in reference.REGIMES for t in range(2)])
        x = {d["regime"]: value(d["inputs"], blob)[0] for d in head["draws"] if d["trial"] == 0}
        self.assertTrue((x["uniform"] >= 0).all() and (x["uniform"] < 1).all())
        self.assertTrue((x["signed"] < 0).any() and x["large"].abs().max() > 30)
        self.assertTrue(torch.equal(x["structured"], x["structured"].round()))
        for d in head["draws"]:
            eager, oracle = value(d["eager"], blob), value(d["oracle"], blob)
            self.assertEqual((eager.dtype, oracle.dtype), (torch.float32, torch.float64))
            self.assertTrue(torch.allclose(oracle, torch.tanh(value(d["inputs"], blob)[0].double()), atol=1e-15))

    def test_a_spike_ends_odd_draws(self):
        head, blob = run(task("x.mean()", "[torch.randn(40000)]"))
        draw = next(d for d in head["draws"] if d["regime"] == reference.SPIKED and d["trial"] == 1)
        x = value(draw["inputs"], blob)[0]
        self.assertGreaterEqual(float(x[-1]), 8.0)
        large = x[x.abs() > 3.01]
        self.assertEqual(len(large.unique()), reference.SPIKES)  # the others lie anywhere, and none ties with another

    def test_zeros_of_the_default_type(self):
        head, blob = run(task("torch.zeros(9).index_add(0, rest[0], x)",
                              "[torch.randn(60), torch.randint(0, 9, (60,))]"))
        self.assertLessEqual(set(reference.REGIMES), {d["regime"] for d in head["draws"]})
        self.assertEqual(torch.get_default_dtype(), torch.float32)

    def test_where_double_cannot_be_run(self):
        op = "torch.zeros(9, dtype=torch.float32).index_add(0, rest[0], x)"
        head, blob = run(task(op, "[torch.randn(60), torch.randint(0, 9, (60,))]"))
        self.assertTrue(all(d["noise"][0]["n2"] > 0 for d in head["draws"]))

    def test_tasks_that_only_copy(self):
        self.assertTrue(run(task("x.t().contiguous()", "[torch.randn(3, 5)]"))[0]["copies"])
        self.assertFalse(run(task("torch.relu(x.t())", "[torch.randn(3, 5)]"))[0]["copies"])
        self.assertTrue(run(task("x.t().contiguous()", "[torch.randn(3, 5)]"), "kernelbench")[0]["copies"])
        self.assertFalse(run(task("x.any(-1)", "[torch.rand(30, 5) < 0.5]"))[0]["copies"])
        chosen = task("torch.where(x, rest[0], 3)", "[torch.rand(30, 5) < 0.5, torch.arange(5)]")
        self.assertTrue(run(chosen)[0]["copies"])

    def test_terms_of_sums_on_the_way_count(self):
        """Each element of what a batch norm gives follows statistics of 2 x 600 elements."""
        op = "torch.nn.functional.avg_pool1d(torch.nn.functional.batch_norm(x, None, None, training=True), 4)"
        for fill, terms in ((op, 1200), ("x - x.mean()", 3600), ("x * 2", 1)):
            head, _ = run(task(fill, "[torch.randn(2, 3, 600)]"))
            self.assertEqual({d["noise"][0]["fan_in"] for d in head["draws"]}, {terms}, fill)

    def test_odd_structured_draws_exchange_elements(self):
        head, blob = run(task("x * 2", "[torch.randn(6, 40)]"), trials=4)
        x = [value(d["inputs"], blob)[0] for d in head["draws"] if d["regime"] == "structured"]
        for a, b in zip(x[::2], x[1::2]):
            self.assertFalse(torch.equal(a, b))
            self.assertTrue(torch.equal(a.sort(1).values, b.sort(1).values))

    def test_own_inputs_on_a_step_decide_where_nothing_is_rounded(self):
        for op, decides in (("torch.where(x >= 0.3, x, -x)", True), ("torch.where(x * 3 >= 0.9, x, -x)", False)):
            head, blob = run(task(op, "[torch.randint(0, 10, (16, 40)) / 10.0]"))
            own = [value(d["oracle"], blob) for d in head["draws"] if d["regime"] == "task"]
            self.assertEqual([bool((o == reference.ANY_VALUE).any()) for o in own], [not decides] * len(own), op)

    def test_an_index_among_equals_names_a_place(self):
        """Among ties of an input any place of the same value is right, and the judge is told which input that is."""
        for op, dim, unique in (("torch.topk(x, 2, dim=1)[1]", 1, True), ("x.argmax(0)", 0, False),
                                ("x.argmax()", -1, False), ("torch.sort(x, dim=1)[1]", 1, True)):
            head, blob = run(task(op, "[torch.randn(30, 20).bfloat16()]"))
            draws = [d for d in head["draws"] if d["regime"] == "structured"]
            self.assertEqual([d["noise"][0].get("places") for d in draws],
                             [{"input": 0, "dim": dim, "unique": unique}] * len(draws), op)
            for d in head["draws"]:
                e, o = value(d["eager"], blob), value(d["oracle"], blob)
                self.assertTrue("places" in d["noise"][0] or torch.equal(e[o >= 0], o[o >= 0]), (op, d["regime"]))

    def test_the_first_of_equals_in_the_tasks_own_inputs(self):
        """Where torch promises it; the judge's own draws, and other operators, leave the choice."""
        ties = "torch.randint(0, 9, (30, 40)).float()"
        for op, given, exact in (("x.argmax(1)", ties, True), ("x.min(dim=0)[1]", ties, True),
                                 ("torch.topk(x, 1)[1]", ties, False), ("x.argmax(1), x.sort(1)[1]", ties, False),
                                 ("x.argmax(1)", ties + ".bfloat16()", False)):
            head, _ = run(task(op, f"[{given}]"))
            free = {regime: {"places" in d["noise"][0] for d in head["draws"] if d["regime"] == regime}
                    for regime in ("task", "structured")}
            self.assertEqual(free, {"task": {not exact}, "structured": {True}}, op)

    def test_equal_values_keep_their_order_where_the_task_asks_for_it(self):
        head, blob = run(task("torch.sort(x, dim=1, stable=True)[1]", "[torch.randn(30, 20).bfloat16()]"))
        self.assertFalse(any("places" in d["noise"][0] for d in head["draws"]))

    def test_a_count_moves_in_its_range(self):
        head, blob = run(task("(x > 0).long().sum(1)", "[torch.randn(30, 20)]"))
        for d in head["draws"]:
            self.assertTrue(torch.equal(value(d["oracle"], blob), value(d["eager"], blob)), d["regime"])
        head, blob = run(task("(x * 3.3).floor().long()", "[torch.randn(60, 20).bfloat16()]"))
        d = head["draws"][0]
        o, e = value(d["oracle"], blob), value(d["eager"], blob)
        code = o[o < -(1 << 61)] + (1 << 62)
        low, most = (code >> reference.RANGE_SPAN) - reference.RANGE_LOW, code & ((1 << reference.RANGE_SPAN) - 1)
        self.assertTrue(len(code) and bool((most < 20).all()))
        self.assertTrue(bool(((e[o < -(1 << 61)] - low).abs() < 20).all()))

    def test_what_follows_from_the_order_of_equals_decides_nothing(self):
        """A table is gathered where a coarse input has its largest: equal ones are in every draw but the task's own."""
        body = "F.one_hot(x.topk(2).indices, 64).sum(-2).bool()"
        own = "[torch.stack([torch.randperm(64) for _ in range(32)]).half()]"
        head, _ = run(task(body, own), trials=3)
        kept = {d["regime"] for d in head["draws"]}
        self.assertIn("task", kept)
        self.assertIn("equal values decide in it", str(head["skipped"]))
        self.assertNotIn("equal values decide in it", str(run(task("x.topk(2).values", own), trials=1)[0]["skipped"]))

    def test_what_a_step_throws_is_left_out(self):
        """And it alone: all other values decide, also in half precision."""
        for op, given in (("torch.round(x * 4) / 4", "torch.randn(40, 50).bfloat16()"),
                          ("torch.floor(x)", "torch.randn(40, 50).half()"),
                          ("torch.round(x / 0.1) * 0.1", "torch.randn(40, 50)")):
            head, blob = run(task(op, f"[{given}]"))
            d = head["draws"][0]
            x, oracle = value(d["inputs"], blob)[0].double(), value(d["oracle"], blob)
            thrown = oracle == reference.ANY_VALUE
            self.assertLess(float(thrown.double().mean()), 0.2, op)
            self.assertLess(float(d["noise"][0]["n2"]), 1e-6, op)
        for op in ("torch.relu(x @ x.T)", "torch.clamp(x @ x.T, -1, 1)", "1 / x", "torch.softmax(x * 9, 1)",
                   "x.tanh()"):
            head, blob = run(task(op, "[torch.randn(40, 40)]"))
            for d in head["draws"]:
                share = float((value(d["oracle"], blob) == reference.ANY_VALUE).double().mean())
                self.assertLess(share, 0.01, (op, d["regime"]))

    def test_numbers_are_those_of_one_draw(self):
        head, _ = run(task("x * rest[0]", "[torch.randn(5), float(torch.rand(())), 3]"))
        self.assertEqual(len({str(d["inputs"]["tree"]["v"][1:]) for d in head["draws"]}), 1)

    def test_the_tasks_own_inputs_are_drawn(self):
        for scale in (4000, 1e-4, 1):
            head, blob = run(task("x * 2", f"[torch.randn(50) * {scale}]"), trials=5)
            own = [value(d["inputs"], blob)[0] for d in head["draws"] if d["regime"] == "task"]
            self.assertEqual(len(own), reference.OWN_TRIALS)
            self.assertTrue(all(scale / 3 < float(x.abs().mean()) < scale * 3 for x in own))

    def test_places_of_nan_infinity_and_minus_zero_stay(self):
        src = task("x.nan_to_num()", "[torch.where(torch.arange(24).reshape(4, 6) % 5 == 1, float('nan'), "
                   "torch.where(torch.arange(24).reshape(4, 6) % 5 == 2, -0.0, torch.randn(4, 6)))]")
        head, blob = run(src)
        self.assertLessEqual(set(reference.REGIMES), {d["regime"] for d in head["draws"]})
        at = torch.arange(24).reshape(4, 6) % 5
        for d in head["draws"]:
            x = value(d["inputs"], blob)[0]
            self.assertTrue(torch.equal(x.isnan(), at == 1), d["regime"])
            self.assertTrue(bool(((x == 0) & x.signbit())[at == 2].all()), d["regime"])

    def test_some_draws_are_small(self):
        head, blob = run(task("x * 2", "[torch.randn(50)]"))
        tops = [float(value(d["inputs"], blob)[0].abs().max()) for d in head["draws"] if d["regime"] == "uniform"]
        self.assertTrue(all(t > 0.5 for t in tops[0::2]) and all(t < 2e-3 for t in tops[1::2]), tops)

    def test_what_the_task_holds_itself(self):
        text = """
        import torch, torch.nn as nn
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("mask", torch.ones(8, 8), persistent=False)
                self.angles = [torch.arange(4.0)]
                HIDDEN
            def forward(self, x):
                CHANGE
                return x * self.mask + self.angles[0].sum()
        def get_inputs(): return [torch.randn(8, 8)]
        def get_init_inputs(): return []
        """
        text = textwrap.dedent(text).replace("CHANGE", "pass")
        self.assertEqual(run(text.replace("HIDDEN", "pass"))[0]["tables"], 8 * 8 * 4 + 4 * 4)
        self.assertEqual(run(text.replace("HIDDEN", "self.w = torch.randn(3)"))[0]["tables"], -1)
        self.assertFalse(run(text.replace("HIDDEN", "self.p = nn.Parameter(torch.ones(3))"))[0]["alters"])
        self.assertTrue(run(text.replace("HIDDEN", "self.p = nn.Parameter(torch.ones(3))")
                            .replace("pass", "self.p.data.mul_(0.5)"))[0]["alters"])

    def test_moving_is_known_by_what_it_does(self):
        """Not by the operators' names."""
        for op in ("torch.tril(x)", "x.repeat_interleave(3, 1)", "x[:, [2, 0, 1]]", "torch.where(x > 1e30, x * 2, x)",
                   "F.pad(x, (1, 1), mode='reflect')", "(x, torch.zeros(3))", "torch.tensor_split(x.rot90(), 2)"):
            self.assertTrue(run(task(op, "[torch.randn(4, 6)]"))[0]["copies"], op)
        for op in ("torch.sort(x).values", "x.clamp(-1, 1)", "x.max(1)", "(x.tril(), x * 2)", "x.argmax(1)", "x @ x.T",
                   "F.max_pool1d(x, 2)", "x.abs()", "F.leaky_relu(x)", "x * 1.0000001", "x - x.mean()", "x.cumsum(1)"):
            self.assertFalse(run(task(op, "[torch.randn(4, 6)]"))[0]["copies"], op)

    def test_what_is_left_in_inputs(self):
        head, blob = run(task("x.add_(1).sum()", "[torch.randn(9)]"))
        d = head["draws"][0]
        self.assertEqual(d["mutates"], [0])
        self.assertTrue(torch.equal(value(d["after"], blob)[0], value(d["inputs"], blob)[0] + 1))

    def test_where_a_spike_overflows_there_is_none(self):
        head, blob = run(task("torch.exp(x * 25)", "[torch.rand(40)]"))
        draw = next(d for d in head["draws"] if d["regime"] == reference.SPIKED and d["trial"] == 1)
        self.assertLess(float(value(draw["inputs"], blob)[0][-1]), 3.01)

    def test_a_large_task_has_one_oracle_for_each_regime(self):
        src = task("x @ self.w", "[torch.rand(4, 6)]", "self.w = nn.Parameter(torch.randn(6, 3))")
        each, blob = run(src, trials=3)
        with unittest.mock.patch.object(reference, "LARGE", 20):
            once, blob_once = run(src, trials=3)
        for a, b in zip(each["draws"], once["draws"], strict=True):
            self.assertEqual(str(value(a["inputs"], blob)), str(value(b["inputs"], blob_once)))
            eager, oracle = value(b["eager"], blob_once), value(b["oracle"], blob_once)
            self.assertEqual(oracle.dtype, torch.float32 if b["trial"] else torch.float64)
            self.assertEqual(b["trial"] > 0, torch.equal(oracle, eager))
            first = next(d for d in each["draws"] if d["regime"] == b["regime"])
            for r, r1 in zip(b["noise"], first["noise"]):  # of the first draw, more where answers are larger
                f = max(1.0, r["max_abs"] / r1["max_abs"])
                self.assertEqual((r["n1"], r["n2"]), (r1["n1"] * f, r1["n2"] * f))
            self.assertGreater(b["noise"][0]["n2"], 0)
            self.assertAlmostEqual(b["noise"][0]["max_abs"], float(eager.abs().max()),
                                   delta=1e-5 * float(eager.abs().max()))

    def test_what_is_not_finite_is_no_largest_value(self):
        nan, inf = float("nan"), float("inf")
        for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
            for v, want in (([], 0), ([nan], 0), ([-inf, inf], 0), ([0.0, -0.0], 0), ([1.0, -3.0, 2.0], 3),
                            ([1.0, nan, -2.0], 2), ([4.0, -inf], 4), ([[-5.0], [nan]], 5)):
                self.assertEqual(reference.top_of(torch.tensor(v, dtype=dtype)), want, (dtype, v))
            self.assertEqual(reference.top_of(torch.tensor(-7.0, dtype=dtype)), 7)
        self.assertEqual(reference.top_of(torch.tensor([3 + 4j, complex(nan, 1)])), 5)
        self.assertEqual(reference.top_of(torch.tensor([3, -9, 4])), 9)
        self.assertEqual(reference.top_of(torch.tensor([False, True])), 1)
        a, b = torch.tensor([1.0, inf, 2.0, nan]), torch.tensor([1.5, inf, -2.0, 3.0], dtype=torch.float64)
        self.assertEqual((reference.max_diff(a, b), reference.max_diff(b, a), reference.max_diff(a, b[:3])), (4, 4, 0))
        self.assertEqual(reference.max_diff(torch.tensor([1j, inf]), torch.tensor([4 + 5j, 1])), abs(4 + 4j))

    def test_a_huge_task_has_two_draws_of_each_regime(self):
        src = task("x @ self.w", "[torch.rand(4, 6)]", "self.w = nn.Parameter(torch.randn(6, 30))")
        for huge, trials in ((119, 2), (120, 4)):  # the output has 120 elements, the largest parameter 180
            with unittest.mock.patch.object(reference, "HUGE", huge):
                head, _ = run(src, trials=4)
            self.assertEqual(of_distributions(head), [(r, t) for r in reference.REGIMES for t in range(trials)])

    def test_a_large_parameter_is_drawn_in_parts(self):
        src = task("x @ self.w.t() + self.b", init="self.w = nn.Parameter(torch.randn(5, 6) * 3 + 1); self.b = "
                                                   "nn.Parameter(torch.zeros(5))")
        with unittest.mock.patch.object(reference, "PART", 7):
            head, blob = run(src)
        w, b = value(head["state_values"], blob)
        torch.manual_seed(0)
        old = torch.randn(5, 6) * 3 + 1
        self.assertEqual(len(set(w.flatten().tolist())), 30)
        self.assertLess(float((w - old.mean()).abs().max()), 3.01 * float(old.std()))
        self.assertTrue((b.abs() <= 0.5).all() and len(set(b.tolist())) == 5)

    def test_same_seed_same_bytes(self):
        self.assertEqual(run(task("x * 2")), run(task("x * 2")))
        self.assertNotEqual(run(task("x * 2"))[1], run(task("x * 2"), seed=1)[1])

    def test_regime_that_does_not_apply_is_skipped(self):
        head, _ = run(task("torch.log(x)"))
        self.assertEqual({r for r, _ in of_distributions(head)}, {"uniform"})
        self.assertEqual(set(head["skipped"]), {"normal", "signed", "large", "structured"})
        head, _ = run(task("torch.exp(x)"))
        self.assertIn("large", head["skipped"])

    def test_no_regime_applies(self):
        head, _ = run(task("torch.log(x - 5)", "[6 + torch.rand(3, 3)]"))
        self.assertEqual({d["regime"] for d in head["draws"]}, {"task"})

    def test_integers_labels_and_masks_keep_their_distribution(self):
        src = task("F.cross_entropy(x, rest[0]) + (rest[1] * x[:, 0]).sum()",
                   "[torch.randn(12, 5), torch.randint(0, 5, (12,)), torch.randint(0, 2, (12,)).float()]")
        head, blob = run(src)
        for d in head["draws"]:
            _, labels, mask = value(d["inputs"], blob)
            self.assertEqual(labels.dtype, torch.int64)
            self.assertTrue(((labels >= 0) & (labels < 5)).all())
            self.assertTrue(((mask == 0) | (mask == 1)).all())

    def test_layout_is_kept(self):
        head, blob = run(task("x + 1", "[torch.randn(6, 4).t()]"))
        x = value(head["draws"][0]["inputs"], blob)[0]
        self.assertEqual((tuple(x.shape), x.stride()), ((4, 6), (1, 4)))
        head, blob = run(task("x + 1", "[torch.randn(1, 4).expand(5, 4)]"))
        x = value(head["draws"][0]["inputs"], blob)[0]
        self.assertEqual((tuple(x.shape), x.stride()), ((5, 4), (0, 1)))

    def test_dropout_is_judged_in_eval_mode(self):
        head, _ = run(task("F.dropout(x, 0.5, self.training)"))
        self.assertEqual(head["mode"], "eval")
        self.assertEqual(run(task("x + 1"))[0]["mode"], "train")

    def test_refusals(self):
        with self.assertRaisesRegex(reference.Refused, "another result"):
            run(task("x + torch.rand(1)"))
        with self.assertRaisesRegex(reference.Refused, "index_copy writes one place with several values"):
            run(task("x.index_copy(0, torch.tensor([1, 1]), torch.rand(2, 6))"))  # as on a device
        with self.assertRaisesRegex(reference.Refused, "shrink"):
            run(task("x", "[torch.randn(2000, 2000)]"))
        with self.assertRaisesRegex(reference.Refused, "must return a list"):
            run(task("x", "torch.randn(2)"))


class Parameters(unittest.TestCase):
    INIT = ("self.bn = nn.BatchNorm1d(6); self.fc = nn.Linear(6, 6); self.register_buffer('table', torch.arange(6.0)); "
            "self.register_buffer('step', torch.tensor(3)); "
            "self.register_buffer('codes', torch.randint(-7, 8, (6, 6)))")

    def state(self, params):
        head, blob = run(task("self.bn(self.fc(x)) * self.table", init=self.INIT), params=params)
        self.init_seed = head["init_seed"]
        return dict(zip([s["name"] for s in head["state"]], value(head["state_values"], blob)))

    def test_buffers_that_each_construction_makes_alike_are_told(self):
        init = self.INIT + ("; self.register_buffer('noise', torch.randn(6))"
                            "; self.register_buffer('starts', torch.tensor([0, 2, 6]))")
        head, _ = run(task("self.bn(self.fc(x)) * self.table", init=init))
        self.assertEqual([s["name"] for s in head["state"] if s["alike"]], ["table", "starts"])

    def test_random(self):
        s = self.state("random")
        self.assertTrue((s["bn.running_var"] >= 0.5).all())
        self.assertFalse(torch.equal(s["bn.weight"], torch.ones(6)))
        self.assertFalse(torch.equal(s["bn.bias"], torch.zeros(6)))
        self.assertTrue(torch.equal(s["table"], torch.arange(6.0)))
        self.assertEqual(int(s["step"]), 3)

    def test_integers_of_a_seed_are_of_another_one(self):
        """A candidate knows the seed of its construction: integers that it decides are none of the draw's."""
        s = self.state("random")
        torch.manual_seed(self.init_seed)
        torch.nn.Linear(6, 6)
        self.assertFalse(torch.equal(s["codes"], torch.randint(-7, 8, (6, 6))))
        self.assertTrue(bool(((s["codes"] >= -7) & (s["codes"] < 8)).all()))
        self.assertNotEqual(self.init_seed, 0)

    def test_seed(self):
        s = self.state("seed")
        torch.manual_seed(self.init_seed)
        fc = torch.nn.Linear(6, 6)
        self.assertTrue(torch.equal(s["fc.weight"], fc.weight))
        self.assertTrue(torch.equal(s["bn.weight"], torch.ones(6)))


class KernelBench(unittest.TestCase):
    def test_published_seeds(self):
        head, blob = run(task("torch.relu(x)", "[torch.rand(3, 5)]"), protocol="kernelbench", params="seed", trials=3)
        torch.manual_seed(42)
        seeds = [torch.randint(0, 2**32 - 1, (1,)).item() for _ in range(3)]
        self.assertEqual([d["regime"] for d in head["draws"]], ["kernelbench"] * 3 + [reference.SECRET])
        for d, s in zip(head["draws"], seeds):
            torch.manual_seed(s)
            self.assertTrue(torch.equal(value(d["inputs"], blob)[0], torch.rand(3, 5)))

    def test_one_draw_depends_on_the_secret(self):
        x = []
        for seed in (1, 2):
            head, blob = run(task("torch.relu(x)", "[torch.rand(3, 5)]"), protocol="kernelbench", params="seed",
                             seed=seed)
            x.append([value(d["inputs"], blob)[0] for d in head["draws"]])
        same = [torch.equal(a, b) for a, b in zip(*x)]
        self.assertEqual(same, [True] * (len(same) - 1) + [False])

    def test_casts(self):
        head, blob = run(task("x * rest[0]", "[torch.rand(3), torch.randint(0, 9, (3,))]"), protocol="kernelbench",
                         params="seed")
        self.assertEqual(value(head["draws"][0]["inputs"], blob)[1].dtype, torch.float32)
        head, blob = run(task("F.embedding(rest[0], x)", "[torch.rand(9, 2), torch.randint(0, 9, (3,))]"),
                         protocol="kernelbench", params="seed")
        self.assertEqual(value(head["draws"][0]["inputs"], blob)[1].dtype, torch.int64)


class Values(unittest.TestCase):
    def test_round_trip(self):
        for v in (None, True, 3, 2.5, float("inf"), "text", (1, [2, {"a": torch.ones(2, 3).t(), 4: None}]),
                  torch.float16,
                  torch.tensor(7), torch.zeros(0, 3), torch.randn(3).bfloat16(), torch.tensor([True, False]),
                  torch.randn(2, dtype=torch.complex64), torch.randn(4, 4)[::2, 1:3], 2**70):
            p = values.Packer()
            tree = p.tree(v)
            self.assertEqual(str(values.decode(tree, b"".join(p.parts))), str(v))

    def test_foreign_values_are_refused(self):
        with self.assertRaises(values.NotSendable):
            values.Packer().tree(object())


class InSharedMemory(unittest.TestCase):
    """The same draws, one at a time, through a file in memory."""

    def ask(self, server, **req):
        fds = [os.dup(self.fd)] if req.get("area") and req["op"] == "fill" else []
        head, parts = server.answer(req, fds)
        self.assertTrue(head["ok"], head)
        return head, b"".join(parts)

    def setUp(self):
        self.size = 1 << 16
        self.fd = os.memfd_create("area")
        os.ftruncate(self.fd, self.size)
        self.spec = {"kind": "host", "size": self.size, "capacity": self.size}

    def tearDown(self):
        os.close(self.fd)

    def all(self, **change):
        req = dict({"source": task("torch.log(x)"), "protocol": "strict", "params": "random", "trials": 2, "seed": 0,
                    "max_elements": 1 << 20, "op": "task", "area": True}, **change)
        server, draws, spec = reference.Server(None, None), [], self.spec
        self.ask(server, **req)
        while True:
            head, blob = self.ask(server, op="next")
            if head.get("end"):
                facts, blob = self.ask(server, op="facts", bytes=True)
                return server, draws, dict(facts, skipped=head["skipped"]), blob
            self.ask(server, op="fill", area=spec)
            spec = None
            draws.append((head["draw"], os.pread(self.fd, head["size"], 0)))

    def test_as_with_bytes(self):
        for change in {}, {"protocol": "kernelbench"}:
            want, blob = run(task("torch.log(x)"), **change)
            server, draws, head, rest = self.all(**change)
            self.assertEqual({k: head[k] for k in ("skipped", "mode", "state", "init_seed")},
                             {k: want[k] for k in ("skipped", "mode", "state", "init_seed")})
            self.assertEqual(len(draws), len(want["draws"]))
            for (draw, mine), w in zip(draws, want["draws"]):
                self.assertEqual([draw[k] for k in ("regime", "trial", "mutates")],
                                 [w[k] for k in ("regime", "trial", "mutates")])
                for k in "inputs", "eager", "oracle":
                    self.assertEqual(str(value(draw[k], mine)), str(value(w[k], blob)))

    def told(self, source, **change):
        server = reference.Server(None, None)
        head, _ = self.ask(server, **dict({"op": "task", "source": source, "protocol": "strict", "params": "random",
                                           "trials": 1, "seed": 0, "max_elements": 1 << 20, "area": True}, **change))
        return server, head["state_bytes"], head["input_bytes"]

    def test_what_memory_it_will_need(self):
        layer = ("self.l = nn.Linear(6, 3); self.m = self.l; "
                 "self.h = nn.Parameter(torch.zeros(5, dtype=torch.float16)); "
                 "self.register_buffer('b', torch.zeros(2, dtype=torch.int64), persistent=False)")
        inputs = "[torch.randn(4, 6), [torch.randint(3, (7,))], 2, torch.rand(3, 2).double()]"
        _, state, draw = self.told(task("self.l(x)", inputs, layer))
        self.assertEqual(state, (6 * 3 + 3) * 4 + 5 * 2 + 2 * 8)
        self.assertEqual(draw, 4 * 6 * 4 + 7 * 8 + 6 * 8)
        _, state, draw = self.told(task("self.l(x)", inputs, layer), variant={"dtype": "float16"})
        self.assertEqual((state, draw), ((6 * 3 + 3) * 2 + 5 * 2 + 2 * 8, 4 * 6 * 2 + 7 * 8 + 6 * 2))

    def test_inputs_that_need_values(self):
        for inputs in ("[torch.randn(int(torch.randint(3, 5, (1,))), 6)]", "[torch.randn(4, 6, device='cpu')]",
                       "[torch.from_numpy(__import__('numpy').ones((4, 6), 'float32'))]"):
            server, state, draw = self.told(task("x * 2", inputs))
            self.assertEqual((state, draw), (0, None), inputs)
            self.assertIn("draw", self.ask(server, op="next")[0])

    def test_the_sizes_leave_random_numbers_alone(self):
        import random
        inputs = "[torch.randn(random.randint(1, 9), 6), torch.randn(4).to('cpu')]"
        module = reference.load("import random\n" + task("x", inputs))
        reference.seed_all(3)
        want = random.random(), torch.rand(3).tolist()
        reference.seed_all(3)
        reference.input_bytes(module, reference.Variant({}))
        self.assertEqual((random.random(), torch.rand(3).tolist()), want)

    def test_the_sizes_import_no_algebra(self):
        code = ("import sys; sys.path.insert(0, sys.argv[1]); import reference\n"
                "task = reference.load(sys.argv[2])\n"
                "print(reference.input_bytes(task, reference.Variant({})), 'sympy' in sys.modules)")
        inputs = "[torch.randn(4, 6), torch.empty(3).normal_(0, 2), torch.rand(2)]"
        out = subprocess.run([sys.executable, "-c", code, os.path.dirname(reference.__file__), task("x", inputs)],
                             capture_output=True, text=True, check=True)
        self.assertEqual(out.stdout.split(), [str((24 + 3 + 2) * 4), "False"])

    def test_nothing_is_on_the_device_before_the_first_draw(self):
        arrive = reference.Task.arrive
        with unittest.mock.patch.object(reference.Task, "arrive", autospec=True, side_effect=arrive) as arrive:
            server, _, _ = self.told(task("x @ self.w", init="self.w = nn.Parameter(torch.ones(6, 3))"))
            arrive.assert_not_called()
            self.assertTrue((server.task.model.w == 1).all())
            self.ask(server, op="next")
            arrive.assert_called()
        w = server.task.model.w.clone()
        self.assertFalse((w == 1).any())
        self.ask(server, op="next")
        self.assertTrue(torch.equal(server.task.model.w, w))

    def test_parameters_in_shared_memory(self):
        source = task("x @ self.w", init="self.w = nn.Parameter(torch.randn(6, 3)); self.v = "
                                         "nn.Parameter(torch.randn(2))")
        server, _, head, blob = self.all(source=source)
        want = value(head["state_values"], blob)
        facts, rest = self.ask(server, op="facts", bytes=False)
        self.ask(server, op="fill", area=None)
        s = facts["state_values"]
        self.assertEqual(str(value(s, os.pread(self.fd, s["nbytes"], 0))), str(want))
        self.assertEqual((facts["state"], rest), (head["state"], b"".join([])))
        self.assertEqual(facts["init"], {"tree": {"t": "list", "v": []}, "at": 0, "nbytes": 0})

    def test_a_draw_is_made_again(self):
        server, draws, _, _ = self.all(source=task("x * 2"))
        for i in 3, 0, 7:
            draw, want = draws[i]
            head, _ = self.ask(server, op="again", regime=draw["regime"], trial=draw["trial"])
            self.assertEqual(str(head["draw"]), str(draw))
            self.ask(server, op="fill", area=None)
            for k in "inputs", "eager", "oracle":
                at, n = draw[k]["at"], draw[k]["nbytes"]
                self.assertEqual(str(value(draw[k], os.pread(self.fd, head["size"], 0))), str(value(draw[k], want)),
                                 (k, at, n))

    def test_what_does_not_fit_is_left_out(self):
        p = values.Collector()
        p.tree([torch.ones(100), torch.full((3,), 7.0)])
        class Small:
            size, seen = 450, []
            def write(self, at, t, packer):
                self.seen.append((at, len(packer.elements(t))))
        self.assertEqual(p.write(Small()), [])
        self.assertEqual(Small.seen, [(0, 400)])
        p.items[1][1].resize_(2)
        self.assertEqual(p.write(Small()), [1])


class Shrinking(unittest.TestCase):
    def test_relations_hold(self):
        src = task("self.c(x)", "[torch.rand(batch, channels, size, size)]",
                   "self.c = nn.Conv2d(channels, channels, kernel_size, groups=groups)",
                   "batch, channels, size = 64, 128, 256\nkernel_size, groups = 9, 16\n")
        out = shrink.Shrinker(src, 4096).run()
        self.assertLessEqual(out["largest"], 4096)
        new = {c["name"]: c["to"] for c in out["changes"]}
        self.assertEqual(new.get("channels", 128) % 16, 0)
        self.assertGreaterEqual(new["size"], 9)
        self.assertIn("kernel_size, groups = 9, 16", out["source"])

    def test_impossible(self):
        with self.assertRaisesRegex(reference.Refused, "module-level"):
            shrink.Shrinker(task("x", "[torch.rand(int('100'), 100)]"), 50).run()

    def sizes_of(self, src, limit):
        return {c["name"]: c["to"] for c in shrink.Shrinker(src, limit).run()["changes"]}

    def test_tiles_stay_and_the_batch_goes(self):
        """Multiples of 32 stay multiples while the batch can give way, and no longer than that."""
        src = task("self.c(x)", "[torch.rand(batch, channels, size, size)]",
                   "self.c = nn.Conv2d(channels, channels, 3, padding=1)", "batch, channels, size = 16, 64, 256\n")
        self.assertEqual(self.sizes_of(src, 65536), {"batch": 2, "channels": 32, "size": 32})
        self.assertLess(self.sizes_of(src, 4096)["size"], 32)
        src = task("x * 2", "[torch.rand(96, rows)]", sizes="rows = 768\n")
        self.assertEqual(self.sizes_of(src, 96 * 64), {"rows": 64})

    def test_integers_inside_get_inputs(self):
        """They give way only where the module-level sizes do not suffice."""
        src = task("self.c(x)", "[torch.rand(batch, 3, 224, 224)]", "self.c = nn.Conv2d(3, 96, 11, stride=4)",
                   "batch = 256\n")
        out = shrink.Shrinker(src, 65536).run()
        self.assertLessEqual(out["largest"], 65536)
        self.assertIn("torch.rand(batch, 3, 32, 32)", out["source"])
        src = task("x", "[torch.rand(batch, 40)]", sizes="batch = 4096\n")
        self.assertEqual(self.sizes_of(src, 2560), {"batch": 64})

    def test_task_that_names_a_device(self):
        """Its shapes are tried on the meta device too: no tensor of its real size is made."""
        src = task("x * rest[0]", "[torch.rand(n, n, device='cuda', generator=torch.Generator(device='cuda')), "
                   "torch.rand(n, n).cuda()]", sizes="n = 1 << 20\n")
        self.assertEqual(self.sizes_of(src, 4096), {"n": 64})

    def test_kernel_that_no_longer_fits(self):
        """The meta device gives a convolution without elements where a real device refuses."""
        src = task("self.c(x)", "[torch.rand(8, 32, width, height)]",
                   "self.c = nn.Conv2d(32, 16, (5, 9), padding=(2, 4), dilation=(2, 3))", "width = 512\nheight = 512\n")
        out = shrink.Shrinker(src, 65536).run()
        self.assertLessEqual(out["largest"], 65536)

    def test_already_small(self):
        src = task("x")
        self.assertEqual(shrink.Shrinker(src, 50).run()["source"], src)


if __name__ == "__main__":
    unittest.main()
