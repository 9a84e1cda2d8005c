"""kv_waste.py - how much of the sampler's memory for keys and values holds tokens: contiguous slots as dev_sampler.c
has them, against pages with shared prompts. A simulation of its scheduling, no device.

Usage: kv_waste.py [--queued 4096] [--rows 1024] [--group 8] [--page 16]
Each case: prompts up to P tokens, answers up to N, lengths drawn from the named distribution. Slots are P + N + 4 long.
Printed: the share of the slots' memory that holds tokens, mean over steps while rows wait; and the rows that the same
memory would hold in pages.
"""
import argparse
import random


def geometric(r, mean, most):
    return min(most, 1 + int(r.expovariate(1 / mean)))


CASES = [  # name, longest prompt, longest answer, (prompt, answer) drawn
    ("128 + 256, all full length", 128, 256, lambda r: (128, 256)),
    ("512 + 1024, answers uniform", 512, 1024, lambda r: (r.randint(128, 512), r.randint(1, 1024))),
    ("2K + 4K, answers geometric, mean 1K", 2048, 4096,
     lambda r: (r.randint(256, 2048), geometric(r, 1024, 4096))),
    ("8K + 32K, answers geometric, mean 8K", 8192, 32768,
     lambda r: (r.randint(512, 8192), geometric(r, 8192, 32768))),
]


def simulate(case, a):
    _, P, N, draw = case
    r = random.Random(1)
    queue = []
    for g in range(a.queued // a.group):
        prompt = draw(r)[0]
        queue += [(g, prompt, draw(r)[1]) for _ in range(a.group)]
    queue.reverse()
    rows, used, paged, steps = [], 0, 0, 0
    stride = max(1, N // 256)  # of tokens a step, to be quick
    while queue or rows:
        while queue and len(rows) < a.rows:
            g, prompt, answer = queue.pop()
            rows.append([g, prompt, answer, 0])
        if not queue:
            break  # the tail has free slots whatever they look like
        pages = {}
        for g, prompt, _, n in rows:
            used += prompt + n
            paged += -(-n // a.page) * a.page
            pages[g] = -(-prompt // a.page) * a.page  # once a group
        paged += sum(pages.values())
        steps += len(rows)
        for x in rows:
            x[3] += stride
        rows = [x for x in rows if x[3] < x[2]]
    slot = P + N + 4
    return used / steps / slot, slot / (paged / steps)


p = argparse.ArgumentParser()
for name, value in (("queued", 4096), ("rows", 1024), ("group", 8), ("page", 16)):
    p.add_argument("--" + name, type=int, default=value)
a = p.parse_args()
for case in CASES:
    share, gain = simulate(case, a)
    print(f"{case[0]:40} {100 * share:5.1f} % of the slots' memory holds tokens; pages would hold {gain:.1f} times the "
          "rows")
