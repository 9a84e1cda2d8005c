"""objective.py - the objective functions of src/objective through libmusacoder.so: one implementation, two users.

The library is found at $MUSACODER_LIB, beside this file (a wheel), in a checkout's build/lib, or in an
installed tree's lib/musacoder.
"""

import ctypes
import json
import os

ABI = 1
_HERE = os.path.dirname(os.path.abspath(__file__))
_FOLDERS = (".", "../../build/lib", "../../../../lib/musacoder")
_PLACES = tuple(os.path.join(_HERE, p, "libmusacoder.so") for p in _FOLDERS)
_lib = None


def _load():
    global _lib
    if _lib:
        return _lib
    named = os.environ.get("MUSACODER_LIB")
    path = named or next((p for p in _PLACES if os.path.exists(p)), None)
    if not path:
        raise OSError("libmusacoder.so is not there; run 'make' in a checkout, or set MUSACODER_LIB")
    lib = ctypes.CDLL(path)
    if lib.mc_abi() != ABI:
        raise OSError(f"{path} speaks version {lib.mc_abi()} of the interface, this package {ABI}")
    text, real, size, pointer = ctypes.c_char_p, ctypes.c_double, ctypes.c_size_t, ctypes.c_void_p
    lib.mc_error.restype = text
    lib.mc_reward.argtypes = [text, real, real, ctypes.POINTER(real)]
    lib.mc_advantage.argtypes = [text, real, ctypes.POINTER(real), ctypes.POINTER(ctypes.c_uint8), size,
                                 ctypes.POINTER(real)]
    lib.mc_primeecho.argtypes = [real, real, real, ctypes.POINTER(real), ctypes.c_int, ctypes.c_int,
                                 ctypes.POINTER(real)]
    lib.mc_mirrorpop.argtypes = [pointer, pointer, size, real, ctypes.POINTER(real), ctypes.POINTER(real)]
    lib.mc_bdr_new.restype, lib.mc_bdr_new.argtypes = pointer, [size, ctypes.c_uint64]
    lib.mc_bdr_free.argtypes = [pointer]
    lib.mc_bdr_size.restype, lib.mc_bdr_size.argtypes = size, [pointer]
    lib.mc_bdr_push.argtypes = [pointer, text, text, text]
    lib.mc_bdr_draw.argtypes = [pointer, real] + [ctypes.POINTER(text)] * 3
    lib.mc_bdr_save.restype, lib.mc_bdr_save.argtypes = text, [pointer]
    lib.mc_bdr_load.argtypes = [pointer, text]
    _lib = lib
    return lib


def _checked(rc):
    if rc < 0:
        raise ValueError(_lib.mc_error().decode())
    return rc


def reward(record, speed_weight=0.5, speed_max=4.0):
    """Reward of a verdict record, or None: 'infra' and 'unsupported' are never scored.

    speed_weight: weight of the speed term; speed_max: the largest speedup over eager that it counts.
    """
    out = ctypes.c_double()
    got = _checked(_load().mc_reward(json.dumps(record).encode(), speed_weight, speed_max, ctypes.byref(out)))
    return out.value if got else None


def advantage(rewards, kind="grpo", eps=1e-6):
    """Advantages of one group; entries that are None leave the group and get 0."""
    n, lib = len(rewards), _load()
    out = (ctypes.c_double * n)()
    values = (ctypes.c_double * n)(*[0.0 if r is None else r for r in rewards])
    _checked(lib.mc_advantage(kind.encode(), eps, values, (ctypes.c_uint8 * n)(*[r is not None for r in rewards]), n,
                              out))
    return list(out)


def primeecho(scores, passed_turn, alpha=0.75, bonus_first=0.15, bonus_second=0.08):
    """Reward of a trajectory: one score a turn; passed_turn: 1-based, 0 = it never passed."""
    out = ctypes.c_double()
    values = (ctypes.c_double * len(scores))(*scores)
    _checked(_load().mc_primeecho(alpha, bonus_first, bonus_second, values, len(scores), passed_turn,
                                  ctypes.byref(out)))
    return out.value


class MirrorPop:
    """keep: stays the sequence in the loss? signed: mean log-ratio; mirror: mean |log-ratio|, which decides."""

    def __init__(self, keep, signed, mirror):
        self.keep, self.signed, self.mirror = keep, signed, mirror


def mirrorpop(logp, behav, delta):
    """logp (policy) and behav (rollout): natural log-probs of a response's tokens, sequences of the same length."""
    n = len(logp)
    if n != len(behav):
        raise ValueError(f"{n} log-probs of the policy, {len(behav)} of the rollout")
    a, b = (ctypes.c_float * n)(*logp), (ctypes.c_float * n)(*behav)
    signed, mirror = ctypes.c_double(), ctypes.c_double()
    keep = _checked(_load().mc_mirrorpop(a, b, n, delta, ctypes.byref(signed), ctypes.byref(mirror)))
    return MirrorPop(bool(keep), signed.value, mirror.value)


class RetryBuffer:
    """Buffered Dynamic Retry in this process; a server has one for all (Client.retry_draw)."""

    def __init__(self, cap=256, seed=0):
        self._b = _load().mc_bdr_new(cap, seed)

    def __del__(self):
        if _lib and getattr(self, "_b", None):
            _lib.mc_bdr_free(self._b)

    def __len__(self):
        return _lib.mc_bdr_size(self._b)

    def push(self, prompt_id, response, feedback):
        _lib.mc_bdr_push(self._b, prompt_id.encode(), response.encode(), feedback.encode())

    def draw(self, probability=0.1):
        """(prompt_id, response, feedback) of the oldest entry, or None."""
        out = [ctypes.c_char_p() for _ in range(3)]
        if not _lib.mc_bdr_draw(self._b, probability, *[ctypes.byref(o) for o in out]):
            return None
        return tuple(o.value.decode() for o in out)

    def save(self):
        return _lib.mc_bdr_save(self._b).decode()

    def load(self, state):
        _checked(_lib.mc_bdr_load(self._b, state.encode()))
