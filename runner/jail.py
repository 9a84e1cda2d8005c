"""jail.py - the fork server's side of src/proc/jail.h, through build/lib/libjail.so."""

import ctypes
import os
import signal
import socket
import time


class _Err(ctypes.Structure):
    # struct err of base/err.h
    _fields_ = [("kind", ctypes.c_int), ("msg", ctypes.c_char * 1024), ("lack", ctypes.c_int)]


class _Cgroup(ctypes.Structure):
    _fields_ = [("memory", ctypes.c_char * 256), ("pids", ctypes.c_char * 256)]


class JailError(Exception):
    """The jail could not be made: never the fault of who should have run in it."""


_lib = _forks = None  # libjail.so; the same, called with Python's lock held


def load(folder):
    """Loads the library once, in the server's parent; children inherit it."""
    global _lib, _forks
    _lib = ctypes.CDLL(os.path.join(folder, "libjail.so"))
    _forks = ctypes.PyDLL(os.path.join(folder, "libjail.so"))
    for name in ("PyOS_BeforeFork", "PyOS_AfterFork_Parent", "PyOS_AfterFork_Child"):
        getattr(ctypes.pythonapi, name).restype = None
    _lib.jail_cgroup_kills.restype = ctypes.c_long
    _lib.jail_resident.restype = _lib.jail_cgroup_peak.restype = ctypes.c_size_t
    _lib.jail_cgroup_make.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    _lib.jail_close.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p]


def _check(rc, err):
    if rc < 0:
        raise JailError(err.msg.decode("utf-8", "replace"))


class Box:
    """The namespaces of one jail, held open by its mcjail (process 1), and its cgroup."""

    def __init__(self, plan, memory, pids):
        self.plan, self.memory = plan.encode(), memory
        self.pid = self.status = None
        self.last_peak = 0
        self.group, self.procs = _Cgroup(), []
        _lib.jail_cgroup_make(ctypes.byref(self.group), memory, pids)
        try:
            folders = {f for f in (self.group.memory, self.group.pids) if f}
            self.procs = [os.open(os.path.join(f, b"cgroup.procs"), os.O_WRONLY | os.O_CLOEXEC) for f in folders]
            self._start()
        except Exception:
            self.end()
            raise

    def _start(self):
        err, pid, status = _Err(), ctypes.c_int(-1), ctypes.c_int(-1)
        env = (ctypes.c_char_p * 2)(b"PATH=/usr/bin:/bin", None)
        stdio = (ctypes.c_int * 3)(-1, -1, -1)
        rc = _lib.jail_start(ctypes.c_char_p(self.plan), ctypes.c_size_t(len(self.plan)), None, env, stdio,
                             ctypes.byref(self.group), ctypes.byref(pid), ctypes.byref(status), ctypes.byref(err))
        _check(rc, err)
        self.pid, self.status = pid.value, socket.socket(fileno=status.value)
        self.status.settimeout(10)
        try:
            text = self.status.recv(2048)
        except OSError:
            text = b"error the jail does not answer"
        if not text.startswith(b"ready"):
            raise JailError(text.decode("utf-8", "replace").removeprefix("error ").strip() or "the jail ended early")

    @property
    def watched(self):
        """True where no cgroup limits memory, so that somebody must look."""
        return not self.group.memory

    def resident(self):
        return _lib.jail_resident(self.pid)

    def peak(self):
        """Bytes that its cgroup held at most, also after end(); 0: nobody knows."""
        if self.group.memory:
            self.last_peak = _lib.jail_cgroup_peak(ctypes.byref(self.group))
        return self.last_peak

    def fork(self):
        """os.fork into the namespaces; the child is the caller's. What os.fork does around its call is done here."""
        err, python = _Err(), ctypes.pythonapi
        python.PyOS_BeforeFork()
        pid = _forks.jail_fork(self.pid, ctypes.byref(err))
        (python.PyOS_AfterFork_Parent if pid else python.PyOS_AfterFork_Child)()
        _check(pid, err)
        return pid

    def join_group(self):
        """In that fork, before descriptors are closed."""
        for fd in self.procs:
            os.write(fd, b"0")

    def close(self):
        """Then, in the same process: give up everything else. There is no way back."""
        err = _Err()
        _check(_lib.jail_close(self.plan, len(self.plan), ctypes.byref(err)), err)

    def kill(self):
        if self.pid:
            try:
                os.kill(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def end(self):
        """Kills whatever is left inside and waits for it. Returns how many of it the kernel had killed for memory;
        None: it does not tell."""
        self.kill()
        deadline = time.monotonic() + 5
        while self.pid and os.waitpid(self.pid, os.WNOHANG)[0] == 0 and time.monotonic() < deadline:
            time.sleep(0.0005)
        if self.status:
            self.status.close()
        for fd in self.procs:
            os.close(fd)
        self.peak()
        kills = _lib.jail_cgroup_kills(ctypes.byref(self.group))
        _lib.jail_cgroup_remove(ctypes.byref(self.group))
        self.pid, self.status, self.procs = None, None, []
        return kills if kills >= 0 else None
