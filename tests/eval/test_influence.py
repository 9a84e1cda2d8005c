"""test_influence.py - draws of runner/influence.py: constants vary in their domain, parameters come in regimes, and
parts of an input that random values leave undecided decide some draw."""
import os
import sys
import unittest
import unittest.mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "runner"))
import torch  # noqa: E402

import influence  # noqa: E402
import reference  # noqa: E402
from test_reference import run, task, value  # noqa: E402

FORK = "torch"


def inputs_of(head, blob):
    return [value(d["inputs"], blob) for d in head["draws"]]


class Constants(unittest.TestCase):
    def varied(self, forward, inputs, at=1):
        head, blob = run(task(forward, inputs))
        return [x[at] for x in inputs_of(head, blob)]

    def test_scales_masks_and_lengths_vary(self):
        scale = self.varied("F.layer_norm(x, (6,), rest[0])", "[torch.randn(4, 6), torch.ones(6)]")
        self.assertTrue(any(len(s.unique()) > 3 for s in scale) and any(bool((s < 0).any()) for s in scale))
        mask = self.varied("x.masked_fill(~rest[0], 0)", "[torch.randn(4, 6), torch.ones(4, 6, dtype=torch.bool)]")
        self.assertTrue(any(0 < int(m.sum()) < 24 for m in mask) and any(bool(m.all()) for m in mask))
        n = self.varied("x * (torch.arange(6)[None] < rest[0][:, None])", "[torch.randn(4, 6), torch.full((4,), 6)]")
        self.assertTrue(all(1 <= int(k.min()) and int(k.max()) <= 6 for k in n) and any(int(k.min()) < 6 for k in n))

    def test_a_domain_is_what_the_reference_stands(self):
        moments = self.varied("x / (rest[0].sqrt() + 1)", "[torch.randn(4, 6), torch.zeros(4, 6)]")
        self.assertTrue(any(bool((m > 0).any()) for m in moments) and all(bool((m >= 0).all()) for m in moments))
        rows = self.varied("torch.softmax(x.masked_fill(rest[0] == 0, -torch.inf), 1)",
                           "[torch.randn(40, 3), torch.ones(40, 3)]")
        self.assertTrue(all(bool(r.any(1).all()) for r in rows))

    def test_what_means_something_stays(self):
        for kept in ("torch.eye(6)", "torch.ones(6, 6).tril()", "torch.arange(6)"):
            other = self.varied("x @ rest[0].to(x.dtype) if rest[0].dim() == 2 else x[:, rest[0]]",
                                f"[torch.randn(6, 6), {kept}]")
            own = eval(kept)  # noqa: S307
            self.assertTrue(all(torch.equal(t, own) for t in other), kept)

    def test_a_triangle_is_none_by_chance(self):
        few = torch.zeros(8, 512, dtype=torch.bool)
        few[:, 20:60:3] = True  # nothing below the diagonal, as of one row of flags in four
        causal = torch.ones(2, 9, 9).tril()
        self.assertFalse(influence.is_triangle(few))
        self.assertTrue(influence.is_triangle(causal) and influence.is_triangle(causal.mT.bool()))
        self.assertFalse(influence.is_triangle(torch.ones(9, 9)))


class Parameters(unittest.TestCase):
    def sets(self, init, forward):
        head, blob = run(task(forward, "[torch.randn(4, 6)]", init))
        return head, [value(s, blob) for s in [head["state_values"], *head["other_states"]]]

    def test_signs_and_sizes(self):
        init = "self.g = nn.Parameter(1e-6 * torch.ones(6)); self.w = nn.Parameter(torch.ones(1))"
        head, (mild, wild) = self.sets(init, "x * self.g + self.w")
        self.assertTrue(bool((mild[0] > 0).all()) and float(wild[0].abs().max()) > 0.4)
        self.assertGreater(float(wild[1]), 1)
        self.assertEqual({d["parameters"] for d in head["draws"]}, {0, 1})
        for d in head["draws"]:
            self.assertEqual(d["parameters"], influence.parameters_of(d["regime"], d["trial"]), d["regime"])

    def test_only_where_the_reference_stands_them(self):
        _, sets = self.sets("self.g = nn.Parameter(torch.ones(66))", "x[:, :1] * self.g.sqrt()")
        self.assertEqual(len(sets), 1)


class Parts(unittest.TestCase):
    def test_the_end_of_a_mean_decides(self):
        """Of bounded values: three of 70,000 move a mean by more than its tolerance only on a background."""
        head, blob = run(task("torch.sigmoid(x).mean()", "[torch.randn(100, 700)]"), trials=2)
        told = 0
        for d, (x,) in zip(head["draws"], inputs_of(head, blob)):
            n, whole = x.numel(), torch.sigmoid(x.double()).sum()
            cut = torch.sigmoid(x.double().reshape(-1)[:-3]).sum()
            told += float((whole - cut) / n) > 8 * (2e-5 * float(whole / n) + 32 * float(d["noise"][0]["n1"]))
        self.assertGreaterEqual(told, 1)

    def test_each_end_of_a_line_is_the_least_somewhere(self):
        head, blob = run(task("x.min(1).values", "[torch.randn(4, 900)]"))
        at = torch.cat([x.argmin(1) for (x,) in inputs_of(head, blob)])
        self.assertTrue(bool((at == 0).any()) and bool((at == 899).any()))

    def test_edges_are_there_where_the_reference_is_finite(self):
        head, blob = run(task("F.normalize(x, dim=1)", "[torch.randn(40, 6)]"))
        zero = [bool((x == 0).all(1).any()) for (x,) in inputs_of(head, blob)]
        self.assertTrue(any(zero))
        head, blob = run(task("x / x.norm(dim=1, keepdim=True)", "[torch.randn(40, 6)]"))
        self.assertFalse(any(bool((x == 0).all(1).any()) for (x,) in inputs_of(head, blob)))

    def test_no_draw_casts_what_a_type_does_not_hold(self):
        """What comes of NaN as a whole number C leaves open."""
        def zero_rows(forward):
            head, blob = run(task(forward, "[torch.randn(40, 6)]"))
            return any(bool((x == 0).all(1).any()) for (x,) in inputs_of(head, blob))
        scaled = "x / (x.abs().amax(1, keepdim=True){}) * 100"
        self.assertFalse(zero_rows("(%s).to(torch.int8)" % scaled.format("")))
        self.assertTrue(zero_rows("(%s).to(torch.int8)" % scaled.format(" + 1e-6")))
        self.assertTrue(zero_rows("x.clamp(-9, 9).to(torch.int8).float()"))

    def test_whole_numbers_grow(self):
        head, blob = run(task("x.sum(1)", "[torch.randint(-1000, 1000, (8, 50))]"))
        self.assertTrue(any(int(x.abs().max()) > 1 << 21 for (x,) in inputs_of(head, blob)))
        head, blob = run(task("torch.ones(99)[x]", "[torch.randint(0, 99, (8, 50))]"))
        self.assertTrue(all(int(x.max()) < 99 for (x,) in inputs_of(head, blob)))
        head, blob = run(task("x.sum(1)", "[torch.randint(0, 100, (8, 50), dtype=torch.int32)]"))
        self.assertTrue(any(int(x.sum(1).max()) > 1 << 32 for (x,) in inputs_of(head, blob)), "sums are of a wide type")
        head, blob = run(task("x.sum(1, dtype=x.dtype)", "[torch.randint(0, 100, (8, 50), dtype=torch.int32)]"))
        self.assertTrue(all(int(x.sum(1).max()) < 1 << 31 for (x,) in inputs_of(head, blob)))

    def test_whole_numbers_have_signs_and_many_bits(self):
        head, blob = run(task("torch.remainder(x, 7)", "[torch.randint(0, 1000, (8, 50))]"))
        draws = [x for (x,) in inputs_of(head, blob)]
        self.assertTrue(any(bool((x < 0).any()) for x in draws) and any(int(x.max()) > 1 << 33 for x in draws))
        for forward, inputs in (("x % 97 + x * x * x", "torch.randint(1, 1000, (8, 50))"),
                                ("x % 7", "torch.randint(20, 1000, (8, 50))"), ("x % 7", "torch.arange(400)"),
                                ("x % 7 if bool((x >= 0).all()) else x", "torch.randint(0, 1000, (8, 50))")):
            head, blob = run(task(forward, f"[{inputs}]"))
            draws = [x for (x,) in inputs_of(head, blob)]
            least = -(1 << 62) if "x * x" in forward else 0
            self.assertTrue(all(least <= int(x.min()) and (least or int(x.max()) < 1 << 41) for x in draws), forward)
            self.assertTrue(least == 0 or all(int(x.max()) < 1 << 33 for x in draws), forward)

    def test_selections_are_made_far_off(self):
        for forward, there in (("x.amax(1)", True), ("x.amax(1) * 2", False)):
            head, blob = run(task(forward, "[torch.randn(4, 6)]"))
            draws = [x for (x,) in inputs_of(head, blob)]
            self.assertEqual(any(float(x.max()) < -2e4 for x in draws), there)
            self.assertEqual(any(float(x.min()) > 2e4 for x in draws), there)

    def test_rows_whose_differences_count_lie_far_down(self):
        for forward, there in (("torch.softmax(x, 1)", True), ("torch.softmax(F.layer_norm(x, (6,)), 1)", False)):
            head, blob = run(task(forward, "[torch.randn(4, 6)]"))
            self.assertEqual(any(-300 < float(x.max()) < -150 for (x,) in inputs_of(head, blob)), there)
        scores = "torch.softmax(x @ rest[0].t(), 1)"
        head, blob = run(task(scores, "[torch.randn(9, 32), torch.randn(9, 32)]"))
        self.assertTrue(any(float((q @ k.t()).max()) < -100 for q, k in inputs_of(head, blob)))

    def test_several_of_the_largest_stand_a_multiple_of_32_apart(self):
        for forward, there in (("torch.topk(x, 8, 1).values", True), ("x.amax(1)", False)):
            head, blob = run(task(forward, "[torch.randn(10, 300)]"))
            tops = [x.topk(8, 1).indices % 32 for (x,) in inputs_of(head, blob)]
            self.assertEqual(any(bool((t[0] == t[0, 0]).all()) for t in tops), there)

    def test_arithmetic_is_done_far_out(self):
        for forward, most in (("x * 2 + 1", 1e7), ("F.layer_norm(x, (6,))", 1e7), ("x @ x.t()", 1e6),
                              ("x.exp() + x", 1e6), ("torch.tanh(x)", 1e6)):
            head, blob = run(task(forward, "[torch.randn(4, 6)]"))
            top = max(float(x.abs().max()) for (x,) in inputs_of(head, blob))
            self.assertEqual(top > 1e7, most == 1e7, forward)
        head, blob = run(task("x * 0.5", "[torch.randn(4, 6).half()]"))
        self.assertTrue(any(float(x.abs().min()) > 32768 for (x,) in inputs_of(head, blob)))

    def test_inputs_of_one_shape_begin_alike(self):
        head, blob = run(task("((x - rest[0]) ** 2).mean()", "[torch.randn(5, 6), torch.randn(5, 6)]"))
        alike = [torch.equal(x[0], y[0]) and not torch.equal(x, y) for x, y in inputs_of(head, blob)]
        self.assertTrue(any(alike))

    def test_floats_that_may_be_places_stay_such(self):
        head, blob = run(task("x * 2 + 1", "[torch.randint(0, 256, (9, 30)).float()]"))
        for (x,) in inputs_of(head, blob):
            self.assertTrue(bool((x == x.floor()).all()) and 0 <= float(x.min()) and float(x.max()) < 256)

    def test_zeros_stand_among_values(self):
        """Where the reference is finite; rows of probabilities still sum to one."""
        for forward, there in (("torch.xlogy(x, x).sum(1)", True), ("(x * x.log()).sum(1)", False)):
            head, blob = run(task(forward, "[torch.softmax(torch.randn(30, 9), 1)]"))
            draws = [x for (x,) in inputs_of(head, blob)]
            self.assertEqual(any(bool((x == 0).any()) for x in draws), there)
            self.assertTrue(all(torch.allclose(x.double().sum(1), torch.ones(30).double(), atol=1e-4) for x in draws))

    def test_bytes_grow(self):
        blend = "((x.int() + rest[0].int() + 1) // 2).to(torch.uint8)"
        inputs = "[torch.randint(0, 128, (40, 9), dtype=torch.uint8) for _ in range(2)]"
        head, blob = run(task(blend, inputs))
        self.assertTrue(any(int(x.max()) > 200 for x, _ in inputs_of(head, blob)))
        head, blob = run(task(blend, inputs.replace("128", "16")))
        self.assertTrue(all(int(x.max()) < 16 for x, _ in inputs_of(head, blob)))


class Places(unittest.TestCase):
    def draws(self, forward, index, rest=""):
        head, blob = run(task(forward, f"[torch.randn(40, 4), {index}{rest}]"))
        return [x[1] for x in inputs_of(head, blob)]

    def test_some_are_named_nowhere(self):
        index = "torch.cat([torch.arange(9), torch.randint(0, 9, (31,))])"
        forward = "torch.zeros(9, 4).to(x).index_add(0, rest[0], x) / (1 + torch.bincount(rest[0])[:, None])"
        self.assertTrue(any(len(i.unique()) < 9 for i in self.draws(forward, index)))
        self.assertTrue(all(int(i.min()) == 0 and int(i.max()) == 8 for i in self.draws(forward, index)))
        ascending = self.draws(forward, f"{index}.sort().values")
        self.assertTrue(all(bool((i.diff() >= 0).all()) for i in ascending))
        self.assertTrue(any(len(i.unique()) < 9 for i in ascending))

    def test_what_other_arguments_follow_from_stays(self):
        index = "torch.cat([torch.arange(9), torch.arange(31) % 9])"
        offsets = f"torch.cat([torch.zeros(1).long(), torch.bincount({index}).cumsum(0)])"
        for rest in (f", {index}.argsort()", f", {offsets}"):
            for i in self.draws("x[rest[0] % 9] * rest[1].sum()", index, rest):
                self.assertEqual(len(i.unique()), 9)
        experts = "torch.stack([torch.randperm(9)[:3] for _ in range(40)])"
        for i in self.draws("x[rest[0] % 9].sum(1)", experts):
            self.assertTrue(bool((i.sort(1).values.diff(dim=1) > 0).all()))

    def test_places_move_between_their_ends(self):
        for forward, index in (("x[rest[0]]", "torch.arange(40)"), ("x * rest[0][:, None]", "torch.arange(0, 80, 2)")):
            draws = self.draws(forward, index)
            self.assertTrue(all(bool((i.diff() >= 0).all()) and i[0] == 0 for i in draws))
            self.assertTrue(any(bool((i.diff() == 0).any()) for i in draws), forward)
        means = "torch.stack([x[a:b].mean(0) for a, b in zip(rest[0][:-1].tolist(), rest[0][1:].tolist())])"
        offsets = self.draws(means, "torch.arange(0, 41, 10)")
        self.assertTrue(any(bool((i.diff() != 10).any()) for i in offsets))
        self.assertTrue(all(bool((i.diff() > 0).all()) and i[-1] == 40 for i in offsets))
        other = self.draws("x[rest[0]] * rest[1]", "torch.arange(40)", ", 7")
        self.assertTrue(any(bool((i.diff() == 0).any()) for i in other))
        longest = self.draws("x[rest[0]] * rest[1]", "torch.arange(40)", ", 40")
        self.assertTrue(all(bool((i.diff() > 0).all()) for i in longest))
        written = self.draws("torch.zeros_like(x).index_copy(0, rest[0], x)", "torch.arange(40)")
        self.assertTrue(all(bool((i.diff() > 0).all()) for i in written))

    def test_one_place_may_be_named_by_nearly_all(self):
        counts = "torch.zeros(9).index_add(0, rest[0], torch.ones(40))"
        for index in ("torch.randint(9, (40,))", "torch.randint(9, (40,)).sort().values"):
            draws = self.draws(counts, index)
            self.assertTrue(any(int(i.bincount().max()) >= 24 for i in draws), index)
            self.assertTrue(all(0 <= int(i.min()) and int(i.max()) < 9 for i in draws))
        ordered = self.draws(counts, "torch.randint(9, (40,)).sort().values")
        self.assertTrue(all(bool((i.diff() >= 0).all()) for i in ordered))

    def test_a_table_has_its_places_in_another_order(self):
        looked_up = "x[rest[0]].sum(1)"
        for table in ("torch.arange(40).view(8, 5)", "torch.randperm(40).view(8, 5)"):
            draws = self.draws(looked_up, table)
            self.assertTrue(all(len(i.unique()) == 40 for i in draws), table)
            self.assertTrue(any(not torch.equal(i, draws[0]) for i in draws), table)
        self.assertTrue(all(bool((i.diff(dim=1) > 0).all())
                            for i in self.draws(looked_up, "torch.arange(40).view(8, 5)")))
        turned = self.draws("x[rest[0]]", "torch.arange(39, -1, -1)")
        self.assertTrue(any(not torch.equal(i, turned[0]) for i in turned))
        order = self.draws("x[rest[0]] * rest[1][:, None]", "torch.arange(39, -1, -1)",
                           ", torch.randint(0, 9, (40,))")
        self.assertEqual(len({str(i) for i in order}), 1)  # it may sort the others
        back = ", torch.arange(40)"  # may follow from the table
        self.assertEqual(len({str(i) for i in self.draws(looked_up, "torch.arange(40).view(8, 5)", back)}), 1)

    def test_minus_one_where_the_task_singles_it_out(self):
        index = "torch.randint(0, 40, (50,))"
        guarded = "torch.where((rest[0] >= 0)[:, None], x[rest[0].clamp(min=0)], 0.0)"
        self.assertTrue(any(bool((i == -1).any()) for i in self.draws(guarded, index)))
        for other in ("x[rest[0]]", "x[rest[0] % 40].relu().clamp(max=1)", "x[rest[0]].clamp(min=0)"):
            self.assertTrue(all(bool((i >= 0).all()) for i in self.draws(other, index)), other)


    def test_a_label_that_the_task_leaves_out_by_name(self):
        loss = "F.cross_entropy(x, rest[0], reduction='none'%s)"
        label = "torch.randint(0, 4, (40,))"
        self.assertTrue(any(bool((i == -7).any()) for i in self.draws(loss % ", ignore_index=-7", label)))
        self.assertTrue(all(bool((i >= 0).all()) for i in self.draws(loss % "", label)))


class Masks(unittest.TestCase):
    def some_row_is_empty(self, forward, mask="torch.rand(40, 9) < 0.7"):
        head, blob = run(task(forward, f"[torch.randn(40, 9), {mask}]"))
        return any(bool((x[1].double().sum(-1) == 0).any()) for x in inputs_of(head, blob))

    def test_rows_allow_nothing_where_the_reference_stands_it(self):
        mean = "(x * rest[0]).sum(1) / rest[0].sum(1).clamp(min=1)"
        self.assertTrue(self.some_row_is_empty(mean))
        self.assertTrue(self.some_row_is_empty(mean, "(torch.rand(40, 9) < 0.7).float()"))
        self.assertFalse(self.some_row_is_empty("x.masked_fill(~rest[0], -torch.inf).softmax(1)"))

    def test_a_triangle_has_holes_and_keeps_its_diagonal(self):
        mask = "torch.ones(9, 9, dtype=torch.bool).%s"
        inputs = f"[torch.randn(9, 9), {mask % 'tril()'}]"
        head, blob = run(task("x.masked_fill(~rest[0], -torch.inf).softmax(1)", inputs))
        masks = [x[1] for x in inputs_of(head, blob)]
        self.assertTrue(any(int(m.sum()) < 45 for m in masks) and all(bool(m.diagonal().all()) for m in masks))
        self.assertTrue(all(not bool(m.triu(1).any()) for m in masks))
        for kept in (mask % "tril(-1)", mask % "triu(1)"):
            out = influence.thinned(eval(kept), torch.Generator().manual_seed(1))  # noqa: S307
            self.assertTrue(torch.equal(out.any(1), eval(kept).any(1)), kept)  # noqa: S307

    def test_a_square_one_may_be_a_chain(self):
        for mask, ones in (("torch.rand(9, 9) < 0.4", 9), ("torch.rand(9, 9).add(torch.eye(9)) > 0.6", 17)):
            head, blob = run(task("(x * rest[0]).sum(1)", f"[torch.randn(9, 9), {mask}]"))
            masks = [x[1] for x in inputs_of(head, blob)]
            self.assertTrue(any(bool(m.diagonal(1).all()) and int(m.sum()) == ones for m in masks), mask)

    def test_some_rows_hold_a_single_one_behind_their_half(self):
        head, blob = run(task("rest[0].any(1) * x", "[torch.randn(1), torch.rand(40, 90) < 0.3]"))
        self.assertTrue(any(bool(((x[1].sum(1) == 1) & x[1][:, 45:].any(1)).any()) for x in inputs_of(head, blob)))

    def test_rows_without_zeros_where_zeros_lie_at_random(self):
        def rows_are_full(given):
            head, blob = run(task("x.sum(1)", f"[{given}]"))
            return any(bool((x[0] != 0).all(1).any()) for x in inputs_of(head, blob))
        thin = "torch.randn(20, 40) * (torch.rand(20, 40) < 0.2)"
        self.assertTrue(rows_are_full(thin))
        for kept in ("torch.randn(20, 20).tril(-1)", "(torch.rand(20, 40) < 0.2).float()",
                     "torch.randn(20, 40) * torch.rand(20, 40).argsort(1).lt(9)"):
            self.assertFalse(rows_are_full(kept), kept)

    def test_one_hot_rows_and_orders_stay(self):
        self.assertFalse(self.some_row_is_empty("x * rest[0]", "F.one_hot(torch.randint(0, 9, (40,)), 9).float()"))
        self.assertFalse(self.some_row_is_empty("x * rest[0]", "torch.ones(40, 9).tril()"))


class Steps(unittest.TestCase):
    def eighths(self, forward, inputs="[torch.randn(30, 32)]"):
        head, blob = run(task(forward, inputs))
        at = influence.EDGES.index(influence.EXACT)
        return [(d, value(d["oracle"], blob)) for d in head["draws"] if (d["regime"], d["trial"]) == ("edges", at)]

    def test_where_arithmetic_is_exact_each_value_decides(self):
        for forward in ("torch.round(x * 4)", "torch.clamp((x + 1.5).floor() / 2, -1, 1)", "torch.sign(x - 0.5)",
                        "(x > 0.25).to(x.dtype)"):
            (draw, answer), = self.eighths(forward)
            self.assertLess(draw["noise"][0]["n1"], 1e-6)
            self.assertEqual(draw["noise"][0]["n2"], 0)
            self.assertFalse(bool((answer == reference.ANY_VALUE).any()), forward)

    def test_where_a_scale_is_one_halves_decide(self):
        """Of the usual ways to scale none makes another number of them."""
        seen, kinds = 0, [("edges", influence.EDGES.index(k)) for k in influence.HALVED]
        for levels in (127, 7):
            for head, blob in (run(task(f"torch.round(x / (x.abs().amax({axis}, keepdim=True) / {levels}))",
                                        "[torch.randn(30, 130)]")) for axis in (0, 1, "(0, 1)")):
                for d in head["draws"]:
                    if (d["regime"], d["trial"]) not in kinds:
                        continue
                    x, = value(d["inputs"], blob)
                    answer, = reference.values.leaves(value(d["oracle"], blob))
                    self.assertTrue(torch.equal(answer, x.double().round()))
                    self.assertTrue(torch.equal((x / levels * levels).round(), x.round()))
                    self.assertTrue(torch.equal((x * (1 / levels) * levels).round(), x.round()))
                    self.assertGreater(int((x != x.round()).sum()), 500)
                    seen += 1
        self.assertEqual(seen, 6)

    def test_nowhere_else(self):
        for forward in ("torch.round(x / 3)", "torch.round(x * 0.3)", "torch.round(x.exp())", "x * 2",
                        "torch.round(x / x.abs().amax())", "torch.floor(x.mean(1) * 4)"):
            self.assertEqual(self.eighths(forward), [], forward)


class Ties(unittest.TestCase):
    def test_a_router_may_name_any_of_equal_experts(self):
        """Rows of zeros too, whose exp is 1: the index is one among equal values there."""
        head, _ = run(task("torch.topk(torch.softmax(x, 1), 2).indices", "[torch.randn(40, 8)]"))
        rows = [d["noise"][0] for d in head["draws"] if (d["regime"], d["trial"]) == ("edges", 0)]
        self.assertEqual([("places" in r) for r in rows], [True])


class Rounds(unittest.TestCase):
    HALVES = ("def halved(x, n, way):\n    y = torch.ones_like(x)\n    for _ in range(n):\n"
              "        y = (y + way(x, y)) / 2\n    return y\n")

    def amplified(self, forward):
        head, _ = run(task(forward, "[torch.rand(6, 9) + 0.5]", sizes=self.HALVES))
        return [d["trial"] for d in head["draws"] if d["trial"] >= influence.AMPLIFIED]

    def test_inputs_grow_until_the_last_ones_matter(self):
        """Heron's square root has converged after six rounds; of larger numbers it has not."""
        self.assertEqual(len(self.amplified("halved(x.abs() + 0.5, 7, lambda x, y: x / y)")), 1)

    def test_none_where_they_matter_anyway_or_never(self):
        self.assertEqual(self.amplified("halved(x, 3, lambda x, y: x / (1 + y))"), [])
        self.assertEqual(self.amplified("halved(x, 60, lambda x, y: torch.zeros_like(x))"), [])
        self.assertEqual(self.amplified("torch.stack([x * i for i in range(5)])"), [])


class Bounds(unittest.TestCase):
    def amplified(self, forward):
        head, _ = run(task(forward, "[torch.randn(6, 40)]"))
        return [d["trial"] for d in head["draws"] if d["trial"] >= influence.AMPLIFIED]

    def test_inputs_grow_until_both_are_reached(self):
        for forward in ("torch.clamp(x, -90, 100)", "x.clamp(max=100, min=-90)", "F.hardtanh(x, -90, 100)"):
            (trial,) = self.amplified(forward)
            self.assertGreater(2.0 ** (trial % influence.AMPLIFIED), 30, forward)

    def test_none_where_they_are_or_cannot_be(self):
        for forward in ("x.clamp(-1, 1)", "x.clamp(min=-90)", "x.sigmoid().clamp(-3, 3)", "F.relu(x)"):
            self.assertEqual(self.amplified(forward), [], forward)


class Numbers(unittest.TestCase):
    def other(self, forward, inputs):
        """(may numbers be others?, the numbers of the variant's draws)"""
        source = task(forward, inputs)
        head, _ = run(source)
        changed, blob = run(source, variant={"numbers": True}, regimes=["normal", "task"]) if head["numbers"] else \
            ({"draws": []}, b"")
        return head["numbers"], {tuple(x[1:]) for x in inputs_of(changed, blob)}

    def test_others_that_matter(self):
        self.assertEqual(self.other("x / rest[0] + rest[1]", "[torch.randn(4, 6), 1.0, 0]"), (True, {(0.75, 1)}))
        self.assertEqual(self.other("x * 2", "[torch.randn(4, 6), 1.0]"), (False, set()))

    def test_what_is_changed_is_said(self):
        source = task("x / scale + rest[0]", "[torch.randn(4, 6), 1.0, 0]").replace("(self, x, *rest)",
                                                                                    "(self, x, scale, *rest)")
        head, _ = run(source, variant={"numbers": True}, regimes=["task"])
        self.assertEqual(head["changed"], "scale = 0.75 (was 1.0), rest = 1 (was 0)")
        self.assertIsNone(run(source)[0]["changed"])

    def test_flags_and_whole_numbers(self):
        self.assertEqual(self.other("x * 2 if rest[0] else x", "[torch.randn(4, 6), True]"), (True, {(False,)}))
        self.assertEqual(self.other("torch.roll(x, rest[0], 1)", "[torch.randn(4, 6), 3]"), (True, {(1,)}))
        self.assertEqual(self.other("x[rest[0] : rest[0] + 1]", "[torch.randn(4, 6), 0]"), (True, {(1,)}))

    def test_parts_stay_parts_and_windows_odd(self):
        """A number of heads still divides the width, and a window has a middle."""
        heads = "torch.cat([torch.softmax(p, 1) for p in x.split(x.shape[1] // rest[0], 1)], 1)"
        for number, other in ((8, 4), (3, 1), (2, 1)):
            self.assertEqual(self.other(heads, f"[torch.randn(5, 24), {number}]"), (True, {(other,)}))
        self.assertEqual(self.other("F.avg_pool1d(x, rest[0], 1, rest[0] // 2)", "[torch.randn(4, 32), 5]"),
                         (True, {(3,)}))

    def test_sizes_stay_whatever_they_are_called(self):
        """A reference may read a size as a scale; a program strides by it."""
        self.assertFalse(self.other("x / rest[0]", "[torch.randn(4, 6), 6]")[0])
        self.assertFalse(self.other("x / (rest[0] + rest[1])", "[torch.randn(24), 4, 6]")[0])
        self.assertTrue(self.other("x / rest[0]", "[torch.randn(4, 6), 6.0]")[0])
        self.assertTrue(self.other("x / rest[0]", "[torch.randn(4, 6), 5]")[0])

    def test_what_the_task_is_stays(self):
        self.assertEqual(self.other("x[:, : rest[0]]", "[torch.randn(4, 6), 3]"), (False, set()))
        self.assertEqual(self.other("x.log() if rest[0] < 1 else x", "[torch.randn(4, 6) - 9, 1.0]"), (False, set()))
        over = task("x.sum(dim)", "[torch.randn(6, 6), 0]").replace("(self, x, *rest)", "(self, x, dim)")
        self.assertFalse(run(over)[0]["numbers"])


class Refusals(unittest.TestCase):
    def test_shapes_that_vary_are_those_of_the_first_draw(self):
        """And the numbers beside them, which may tell how large they are."""
        head, blob = run(task("x / rest[0]", "(lambda n: [torch.randn(n, 3), n])(int(torch.randint(4, 99, ())))"))
        drawn = [value(d["inputs"], blob) for d in head["draws"]]
        self.assertEqual({(len(x), n) for x, n in drawn}, {(len(drawn[0][0]), len(drawn[0][0]))})
        self.assertGreater(len({float(x[0, 0]) for x, _ in drawn}), 9)

    def test_a_task_whose_answers_lie_in_what_it_keeps_is_told(self):
        """No program need give them memory of their own then."""
        kept = "self.register_buffer('b', torch.zeros(4, 6))"
        for forward, init, keeps in (("x * 2", "pass", False), ("x[1:]", "pass", True), ("self.b + x", kept, False),
                                     ("self.b.add_(x)", kept, True)):
            self.assertEqual(run(task(forward, init=init))[0]["keeps"], keeps, forward)

    def test_labels_of_0_and_1_stay_such(self):
        """A task that asks for them does not stand others: those are no draws."""
        head, _ = run(task("F.binary_cross_entropy(x, rest[0])",
                           "[torch.rand(9, 60), torch.randint(0, 2, (9, 60)).float()]"))
        self.assertLessEqual({"task", "uniform"}, {d["regime"] for d in head["draws"]})

    def test_a_task_that_counts_in_python_is_told(self):
        self.assertFalse(run(task("x * 2"))[0]["counts"])
        count = "(setattr(self, 'n', getattr(self, 'n', 0) + 1), x * self.n)[1]"
        self.assertTrue(run(task(count))[0]["counts"])

    def test_a_task_whose_second_answer_does_not_fit_counts_nothing(self):
        seen = []

        def tight(*args, **more):
            seen.append(1)
            if len(seen) > 1:
                raise torch.OutOfMemoryError("no room")
            return [torch.zeros(2)], None

        made = reference.Task.__new__(reference.Task)
        made.model = torch.nn.Identity()
        with unittest.mock.patch.object(reference, "run", tight):
            self.assertFalse(made.keeps_count([torch.zeros(2)]))
        self.assertEqual(len(seen), 2)


class Tolerances(unittest.TestCase):
    def test_one_output_does_not_lend_to_another(self):
        head, _ = run(task("(x * 2, x.mean())", "[torch.randn(100, 60)]"))
        self.assertEqual([n["fan_in"] for n in head["draws"][0]["noise"]], [1, 6000])

    def test_bytes_are_compared_as_numbers(self):
        a = torch.randn(8).to(torch.float8_e4m3fn)
        with unittest.mock.patch.object(reference, "PLACE", torch.device("cuda")):  # where allclose stands no bytes
            self.assertFalse(reference.alike([a], [(-a.float()).to(a.dtype)]))
            self.assertTrue(reference.alike([a], [a.clone()]))

    def test_what_is_made_on_the_way_counts_among_the_terms(self):
        wide = "torch.nn.functional.conv_transpose2d(x, torch.ones(1, 8, 2, 2), stride=2).mean()"
        head, _ = run(task(wide, "[torch.randn(1, 1, 16, 16)]"))
        self.assertEqual([n["fan_in"] for n in head["draws"][0]["noise"]], [8 * 32 * 32])

    def test_a_low_argument_does_not_loosen_single_precision(self):
        head, _ = run(task("x @ x.T + rest[0].float()", "[torch.randn(6, 6), torch.randn(6).bfloat16()]"))
        row = head["draws"][0]["noise"][0]
        self.assertEqual(row["dtype"], "float32")
        self.assertLess(float(row["n2"]), 1e-5)


if __name__ == "__main__":
    unittest.main()
