"""musacoder - rewards for GPU kernels from a running judge ('musacoder serve'), and the objective functions in C.

    import musacoder
    records = musacoder.judge([{"task": {"name": "relu", "code": TASK}, "code": PROGRAM}])
    rewards = [musacoder.reward(r) for r in records]   # None: not scored; leave the sample out, do not count it as 0
"""

from . import data
from .client import Client, JudgeError, ajudge, is_scored, judge
from .objective import MirrorPop, RetryBuffer, advantage, mirrorpop, primeecho, reward

__all__ = ["Client", "JudgeError", "MirrorPop", "RetryBuffer", "advantage", "ajudge", "data", "is_scored", "judge",
           "mirrorpop", "primeecho", "reward"]
__version__ = "0.2.0"
