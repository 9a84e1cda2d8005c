#!/usr/bin/env python3
"""How many CUDA contexts a machine makes and ends in a second, by how many processes do it at once, and by how many
queues of the device each asks for (CUDA_DEVICE_MAX_CONNECTIONS; 8 where nobody does): what a judge with a process for
each candidate cannot be faster than. Driver API only; needs a GPU and its driver. Standard library only."""
import ctypes
import os
import time


def child():
    cuda = ctypes.CDLL("libcuda.so.1")
    device, context = ctypes.c_int(), ctypes.c_void_p()
    rc = cuda.cuInit(0) or cuda.cuDeviceGet(ctypes.byref(device), 0)
    rc = rc or cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
    os._exit(rc != 0)


def ended():
    return os.waitstatus_to_exitcode(os.wait()[1]) == 0


def run(at_once, n):
    live, good, start = 0, 0, time.monotonic()
    for _ in range(n):
        if live == at_once:
            good, live = good + ended(), live - 1
        if os.fork() == 0:
            child()
        live += 1
    for _ in range(live):
        good += ended()
    seconds = time.monotonic() - start
    if good < n:
        raise SystemExit(f"{n - good} of {n} contexts could not be made; is there a GPU?")
    print(f"{at_once:3} at once: {n} in {seconds:.2f} s, {n / seconds:.1f} a second", flush=True)


if __name__ == "__main__":
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError as e:
        raise SystemExit(f"no driver: {e}") from e
    for queues in (None, "2", "1"):
        if queues:
            os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = queues
        print(f"queues: {queues or 'as many as the driver makes'}")
        for k in (1, 4, 6, 8, 16):
            run(k, max(4, 3 * k))
