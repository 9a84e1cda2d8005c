"""interim_main.py - stands in for the fork server until runner/main.py lands: torch imported once, one forked child per
request, no jail. Control socket on fd 3: frames {"role","id"} with the child's socket attached; replies {"id","pid"}, and
{"id","status"} when a child has ended."""
import os
import select
import signal
import socket
import sys

import torch

import frame


def child(role, fd):
    import importlib
    import resource
    os.setpgid(0, 0)
    resource.setrlimit(resource.RLIMIT_DATA, (6 << 30, 6 << 30))
    null = os.open("/dev/null", os.O_RDWR)
    for i in (0, 1, 2):
        os.dup2(null, i)
    status = 1
    try:
        importlib.import_module(role).serve(socket.socket(fileno=fd), None)
        status = 0
    except BaseException:
        pass
    os._exit(status)


def main():
    control = socket.socket(fileno=3)
    try:
        import sim
        sim.preload()
    except ImportError:
        pass
    frame.send(control, {"torch": torch.__version__, "python": sys.version.split()[0], "jail": []})
    wake_r, wake_w = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake_w)
    signal.signal(signal.SIGCHLD, lambda *a: None)
    ids = {}
    while True:
        ready, _, _ = select.select([control, wake_r], [], [])
        if wake_r in ready:
            try:
                os.read(wake_r, 512)
            except BlockingIOError:
                pass
        while ids:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            frame.send(control, {"id": ids.pop(pid), "status": status})
        if control in ready:
            try:
                req, _, fds = frame.recv_fds(control)
            except frame.FrameError:
                os._exit(0)
            pid = os.fork()
            if pid == 0:
                control.close()
                signal.set_wakeup_fd(-1)
                child(req["role"], fds[0])
            os.close(fds[0])
            ids[pid] = req["id"]
            frame.send(control, {"id": req["id"], "pid": pid})


main()
