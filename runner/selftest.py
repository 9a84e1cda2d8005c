"""selftest.py - a child that does what it is asked, so that tests and 'doctor' can see a jail from the inside."""

import os
import sys
import time

import frame


def _attempt(f):
    try:
        return {"ok": True, "value": f()}
    except BaseException as e:
        return {"ok": False, "error": f"{type(e).__name__}: {e}"}


def serve(sock, args):
    """Requests: {"do":"echo"|"eval"|"exit"|"abort"|"print"|"eat"|"sleep"|"fds"|"torch", ...}; one answer each."""
    for head, blob in frame.requests(sock):
        do = head["do"]
        if do == "echo":
            frame.send(sock, {"ok": True, "args": args, "head": head}, blob)
        elif do == "exec":
            scope = {}
            answer = _attempt(lambda: exec(head["code"], scope))
            answer["value"] = repr(scope.get("value"))
            frame.send(sock, answer)
        elif do == "exit":
            sys.exit(head["code"])
        elif do == "abort":
            os.abort()
        elif do == "print":
            sys.stdout.write("x" * head["n"])
            sys.stdout.flush()
            frame.send(sock, {"ok": True})
        elif do == "eat":
            keep = []
            while True:
                keep.append(bytearray(b"1") * (1 << 22))
        elif do == "sleep":
            time.sleep(head["s"])
            frame.send(sock, {"ok": True})
        elif do == "fds":
            frame.send(sock, {"ok": True, "fds": sorted(int(f) for f in os.listdir("/proc/self/fd"))})
        elif do == "torch":
            import torch

            x = torch.ones(1000, 100)
            frame.send(sock, {"ok": True, "sum": float((x @ x.t()).sum()), "threads": torch.get_num_threads()})
