"""Replays of torch's graphs: what torch.cuda.CUDAGraph.replay launches passes through none of the candidate's
libraries, whose counters see a kernel once, when it is recorded. So the graph's own methods count: each replay is a
launch of every kernel of the candidate's that was recorded into it. Graphs without one count for nothing.

Evidence against a candidate like every count here, not for it: what a graph's kernels are worth, the ablation says.
"""
import collections
import functools


class Graphs:
    def __init__(self, captured, launched):
        """captured() -> kernels that were recorded so far, by anybody; launched() -> {kernel: launches}, recorded ones
        included."""
        self.captured, self.launched = captured, launched
        self.begun = {}  # id(graph): both, before it was recorded
        self.held = {}   # id(graph): [replays, {kernel: launches in each}]; graphs with kernels of the candidate's
        self.gone = collections.Counter()  # {kernel: launches} of replays of graphs that were since recorded anew

    def watch(self, cls):
        """cls: torch._C._CUDAGraph, the base of torch.cuda.CUDAGraph."""
        begin, end, replay, held = cls.capture_begin, cls.capture_end, cls.replay, self.held

        @functools.wraps(begin)
        def capture_begin(graph, *args, **kwargs):
            self.forget(id(graph))  # another graph may have had this address
            self.begun[id(graph)] = self.captured(), self.launched()
            return begin(graph, *args, **kwargs)

        @functools.wraps(end)
        def capture_end(graph):
            result = end(graph)
            self.keep(id(graph))
            return result

        @functools.wraps(replay)
        def counted(graph):  # in timed calls too: one lookup
            replay(graph)
            mine = held.get(id(graph))
            if mine:
                mine[0] += 1

        cls.capture_begin, cls.capture_end, cls.replay = capture_begin, capture_end, counted

    def forget(self, graph):
        replays, kernels = self.held.pop(graph, (0, {}))
        for name, n in kernels.items():
            self.gone[name] += replays * n

    def keep(self, graph):
        captured, before = self.begun.pop(graph, (self.captured(), {}))
        if self.captured() > captured:
            new = {name: n - before.get(name, 0) for name, n in self.launched().items()}
            self.held[graph] = [0, {name: n for name, n in new.items() if n > 0}]

    def replayed(self):
        """{kernel: launches by replays}; never less than before."""
        out = collections.Counter(self.gone)
        for replays, kernels in list(self.held.values()):
            for name, n in kernels.items():
                out[name] += replays * n
        return +out
