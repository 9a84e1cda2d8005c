"""test_abi.py - libmusacoder.so through ctypes, against the formulas written out in Python."""

import ctypes
import json
import math
import os
import random
import statistics
import subprocess
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PATH = os.path.join(ROOT, os.environ.get("B", "build"), "lib", "libmusacoder.so")
D, F, P = ctypes.c_double, ctypes.c_float, ctypes.POINTER


def library():
    lib = ctypes.CDLL(PATH)
    lib.mc_error.restype = ctypes.c_char_p
    lib.mc_reward.argtypes = [ctypes.c_char_p, D, D, ctypes.POINTER(D)]
    lib.mc_advantage.argtypes = [ctypes.c_char_p, D, P(D), ctypes.c_char_p, ctypes.c_size_t, P(D)]
    lib.mc_primeecho.argtypes = [D, D, D, ctypes.POINTER(D), ctypes.c_int, ctypes.c_int, ctypes.POINTER(D)]
    lib.mc_mirrorpop.argtypes = [P(F), P(F), ctypes.c_size_t, D, P(D), P(D)]
    lib.mc_bdr_new.argtypes, lib.mc_bdr_new.restype = [ctypes.c_size_t, ctypes.c_uint64], ctypes.c_void_p
    lib.mc_bdr_free.argtypes = [ctypes.c_void_p]
    lib.mc_bdr_size.argtypes, lib.mc_bdr_size.restype = [ctypes.c_void_p], ctypes.c_size_t
    lib.mc_bdr_push.argtypes, lib.mc_bdr_push.restype = [ctypes.c_void_p] + [ctypes.c_char_p] * 3, None
    lib.mc_bdr_draw.argtypes = [ctypes.c_void_p, D] + [ctypes.POINTER(ctypes.c_char_p)] * 3
    lib.mc_bdr_save.argtypes, lib.mc_bdr_save.restype = [ctypes.c_void_p], ctypes.c_char_p
    lib.mc_bdr_load.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    return lib


LIB = library()


def reward(record, lam=0.5, nu_max=4):
    out = D(math.nan)
    rc = LIB.mc_reward(json.dumps(record).encode(), lam, nu_max, out)
    return rc, out.value


def advantage(kind, rewards, valid=None):
    n = len(rewards)
    adv = (D * n)(*[math.nan] * n)
    rc = LIB.mc_advantage(kind.encode(), 1e-6, (D * n)(*rewards), None if valid is None else bytes(valid), n, adv)
    return rc, list(adv)


def draw(b, p):
    out = [ctypes.c_char_p() for _ in range(3)]
    return tuple(x.value for x in out) if LIB.mc_bdr_draw(b, p, *out) else None


class Abi(unittest.TestCase):
    def test_only_the_abi_is_exported(self):
        out = subprocess.run(["nm", "-D", "--defined-only", PATH], capture_output=True, text=True, check=True).stdout
        names = {line.split()[-1] for line in out.splitlines()}
        self.assertTrue(names)
        self.assertEqual({n for n in names if not n.startswith("mc_")}, set())
        self.assertEqual(LIB.mc_abi(), 1)

    def test_reward(self):
        fast = {"status": "passed", "performance": {"trusted": True, "speedup_eager": 2.5}}
        self.assertEqual(reward(fast), (1, 1.75))
        self.assertEqual(reward(fast, 1, 1), (1, 2.0))
        self.assertEqual(reward({"status": "passed", "performance": None}), (1, 1.0))
        part = {"status": "failed", "category": "correctness_error", "correctness": {"q": 0.5}}
        self.assertEqual(reward(part), (1, -0.25))
        self.assertEqual(reward(dict(part, category="cheating")), (1, -1.0))
        for status in ("infra", "unsupported"):
            rc, value = reward({"status": status, "category": status})
            self.assertEqual(rc, 0)
            self.assertTrue(math.isnan(value))

    def test_what_is_no_record_is_refused_with_words(self):
        self.assertEqual(reward([1])[0], -1)
        self.assertIn(b"status", LIB.mc_error())
        self.assertEqual(LIB.mc_reward(b"{", 0.5, 4, D()), -1)
        self.assertEqual(advantage("ppo", [1, 2])[0], -1)
        self.assertIn(b"'ppo'", LIB.mc_error())

    def test_advantage(self):
        rng = random.Random(1)
        for _ in range(50):
            r = [rng.uniform(-1, 3) for _ in range(8)]
            keep = [rng.random() < 0.7 for _ in r]
            rc, adv = advantage("grpo", r, keep)
            used = [x for x, k in zip(r, keep) if k]
            if len(used) < 2:
                self.assertEqual((rc, set(adv)), (0, {0.0}))
                continue
            mean, std = statistics.mean(used), statistics.stdev(used)
            self.assertEqual(rc, len(used))
            for x, k, a in zip(r, keep, adv):
                self.assertAlmostEqual(a, (x - mean) / (std + 1e-6) if k else 0, places=9)

    def test_equal_rewards_are_no_signal(self):
        for value in (-0.3, 0.1, 1 / 3, 1.7):
            for kind in ("grpo", "rloo", "dr_grpo"):
                self.assertEqual(advantage(kind, [value] * 8), (8, [0.0] * 8))

    def test_primeecho(self):
        out = D()
        self.assertEqual(LIB.mc_primeecho(0.75, 0.15, 0.08, (D * 2)(-1, 1), 2, 2, out), 0)
        self.assertAlmostEqual(out.value, 0.75 * -1 + 0.25 * 1 + 0.08)
        self.assertEqual(LIB.mc_primeecho(0.75, 0.15, 0.08, (D * 1)(1), 0, 0, out), -1)

    def test_mirrorpop(self):
        signed, mirror = D(), D()
        logp, behav = (F * 2)(-1.0, -2.0), (F * 2)(-1.5, -1.5)
        self.assertEqual(LIB.mc_mirrorpop(logp, behav, 2, 0.1, signed, mirror), 0)
        self.assertAlmostEqual(signed.value, 0)
        self.assertAlmostEqual(mirror.value, 0.5)
        self.assertEqual(LIB.mc_mirrorpop(logp, behav, 2, 0.6, None, None), 1)
        self.assertEqual(LIB.mc_mirrorpop(logp, behav, 0, 0.6, None, None), -1)

    def test_buffer_continues_from_its_state(self):
        a, b = LIB.mc_bdr_new(3, 7), LIB.mc_bdr_new(3, 1)
        for i in range(5):
            LIB.mc_bdr_push(a, b"p%d" % i, b"code", "é\n".encode())
        self.assertEqual(LIB.mc_bdr_size(a), 3)
        self.assertIsNone(draw(a, 0))
        self.assertEqual(LIB.mc_bdr_load(b, LIB.mc_bdr_save(a)), 0)
        drawn = [draw(a, 0.5) for _ in range(20)]
        self.assertEqual([draw(b, 0.5) for _ in range(20)], drawn)
        self.assertEqual([d[0] for d in drawn if d], [b"p2", b"p3", b"p4"])
        self.assertEqual(LIB.mc_bdr_load(b, b'{"items":[]}'), -1)
        LIB.mc_bdr_free(a)
        LIB.mc_bdr_free(b)


if __name__ == "__main__":
    unittest.main()
