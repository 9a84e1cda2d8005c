"""forks.py - tests that import PyTorch, in forks of one process which has imported it: an import is 2 s of CPU.
A test file asks for that by a line FORK = "torch". It gets its own arguments, environment, output, process group and
exit code, as if Python had been started for it; run.py uses Forks, 'forks.py SOCKET' is the process that forks."""
import gc
import json
import os
import re
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

START_S = 300  # for a socket to appear: PyTorch is imported before


def asks(path):
    """Whether this test says that it runs in a fork."""
    if not path.endswith(".py"):
        return False
    with open(path) as f:
        return bool(re.search(r'^FORK = "torch"', f.read(), re.MULTILINE))


class Fork:
    """A test that runs in a fork: pid of its process group; wait() gives its exit status as Popen's and CPU seconds."""

    def __init__(self, path, argv, cwd, env, out):
        self.answers = socket.socket(socket.AF_UNIX)
        self.answers.connect(path)
        socket.send_fds(self.answers, [b"{"], [out])
        self.answers.sendall(json.dumps({"argv": argv, "cwd": cwd, "env": env}).encode()[1:])
        self.answers.shutdown(socket.SHUT_WR)
        self.pid, = self.read("i")

    def read(self, form):
        return struct.unpack(form, self.answers.recv(struct.calcsize(form), socket.MSG_WAITALL))

    def wait(self):
        with self.answers:
            status, cpu = self.read("=id")
        return os.waitstatus_to_exitcode(status), cpu


class Forks:
    """The process that forks, started by the first test that asks. 'running' keeps its Popen while it lives."""

    def __init__(self, python, folder, env, running):
        self.argv, self.path = [python, "-B", os.path.abspath(__file__)], os.path.join(folder, "forks")
        self.env, self.running, self.process, self.lock = env, running, None, threading.Lock()

    def fork(self, argv, cwd, env, out):
        """A Fork, or None where PyTorch cannot be imported."""
        with self.lock:
            if not self.process:
                self.process = subprocess.Popen([*self.argv, self.path], env=self.env, stdin=subprocess.DEVNULL,
                                                start_new_session=True)
                self.running.add(self.process)
            until = time.monotonic() + START_S
            while not os.path.exists(self.path) and self.process.poll() is None and time.monotonic() < until:
                time.sleep(0.05)
        return Fork(self.path, argv, cwd, env, out) if os.path.exists(self.path) else None

    def close(self):
        if self.process:
            self.process.terminate()
            self.process.wait()
            self.running.discard(self.process)


def tell_ended(running):
    """Sends how each child ended, and its CPU seconds, to who asked for it."""
    while running:
        pid, status, used = os.wait4(-1, os.WNOHANG)
        if not pid:
            return
        with running.pop(pid) as asker:
            try:
                asker.sendall(struct.pack("=id", status, used.ru_utime + used.ru_stime))
            except OSError:
                pass  # it was interrupted


def serve(path):
    """Forks for each that connects, for ever; returns in the forks, with the connection."""
    listener, running = socket.socket(socket.AF_UNIX), {}
    listener.bind(path + ".new")
    listener.listen(64)
    os.rename(path + ".new", path)
    woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        ready = select.select([listener, woken], [], [])[0]
        if woken in ready:
            os.read(woken, 4096)
        tell_ended(running)
        if listener not in ready:
            continue
        asker, _ = listener.accept()
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for s in (listener, *running.values()):
                s.close()
            os.close(woken)
            os.close(wake)
            return asker
        running[pid] = asker


def become(asker):
    """Takes the test's output, process group, folder and environment; returns its arguments."""
    text, fds, _, _ = socket.recv_fds(asker, 1 << 16, 1)
    while part := asker.recv(1 << 16):
        text += part
    asked = json.loads(text)
    os.dup2(fds[0], 1)
    os.dup2(fds[0], 2)
    os.close(fds[0])
    os.setsid()
    asker.sendall(struct.pack("i", os.getpid()))
    asker.close()
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    return asked["argv"]


def play(argv):
    """As 'python ARGV...' does: a module with -m, or a script."""
    if argv[0] == "-m":
        sys.argv, sys.path[0] = argv[1:], os.getcwd()
        runpy.run_module(argv[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv, sys.path[0] = argv, os.path.dirname(os.path.abspath(argv[0]))
        runpy.run_path(argv[0], run_name="__main__")


if __name__ == "__main__":
    import torch  # noqa: F401

    gc.freeze()
    play(become(serve(sys.argv[1])))
