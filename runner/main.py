"""main.py - the fork server: torch imported once, one jailed child per request (src/proc/forkserver.h).

This process keeps one thread and never runs a tensor operation: a child would hang in its first parallel one. It
speaks frames on descriptor 3. Requests: {"op":"spawn","id","role","args","plan","memory","pids"} with the child's
socket and its output pipe attached; {"op":"kill","id"}. Reports: {"op":"spawned"|"failed"|"exit","id"};
a child on a device says {"op":"begun"} first, or {"op":"unfit","message","memory"} and ends (memory: the device's ran
out). A child is a fork of a fork: the first joins the jail's namespaces and outlives the second only to pass its end
on. $MUSACODER_DEVICE names the device package ("front", "cuda") of all children: two of them do not fit into one
process. $MUSACODER_COMPILES: children use torch.compile, so this process imports what it needs, after it has said
hello; $MUSACODER_IMPORTS: the same for these modules.
"""

import contextlib
import ctypes
import errno
import gc
import importlib
import os
import resource
import select
import signal
import socket
import sys
import time
import traceback

CONTROL_FD = 3
HUGE_PAGE = 2 << 20
MADV_COLLAPSE = 25
COLLAPSE_AFTER = 8  # children: huge pages cost a third of a second once, and spare each child a twentieth of it

DEVICE = os.environ.get("MUSACODER_DEVICE") or "front"
ROLES = {  # role -> (module, function called with the child's socket and the spawn's args, device or None)
    "front": ("front_role", "serve", None),
    "reference": ("reference", "serve", None),
    "reference_cuda": ("reference", "serve", "cuda"),
    "streamed": ("streamed", "serve", None),
    "streamed_cuda": ("streamed", "serve", "cuda"),
    "baseline": ("baseline", "serve", None),
    "baseline_cuda": ("baseline", "serve", "cuda"),
    "shrink": ("shrink", "serve", None),
    "lint": ("lint", "serve", None),
    "mine": ("mine", "serve", None),
    "diagnose": ("diagnose", "serve", None),
    "selftest": ("selftest", "serve", None),
}


def import_everything():
    """What children find already imported. The device goes first: it replaces torch.utils.cpp_extension
    before anything imports the real one, which asks for devices."""
    import numpy
    import torch

    torch.set_num_threads(1)
    torch.backends.cpu.get_cpu_capability()  # reads /proc/cpuinfo, which children do not see
    importlib.import_module(DEVICE).preload()
    for module, _, _ in ROLES.values():
        if os.path.exists(os.path.join(os.path.dirname(os.path.abspath(__file__)), module + ".py")):
            importlib.import_module(module)
    return {"torch": torch.__version__, "numpy": numpy.__version__}


DYNAMO = "torch._dynamo"  # of operators on the meta device, and of the counter of operations: a second of CPU
NEEDS = {"lint": DYNAMO, "shrink": DYNAMO, "baseline": DYNAMO, "baseline_cuda": DYNAMO}


def prepare(role):
    """What each child of this role would import, imported once: when the first of them is asked for. The driver is not
    touched. What cannot be imported is for the children to say."""
    torch = sys.modules.get("torch")
    if role not in NEEDS or NEEDS[role] in sys.modules or torch is None:
        return
    asked, torch.cuda.is_available = torch.cuda.is_available, lambda: False
    try:
        with contextlib.suppress(Exception):
            importlib.import_module(NEEDS[role])
    finally:
        torch.cuda.is_available = asked
    gc.freeze()


def python_paths():
    """Folders that a child must see to import what is not imported yet."""
    paths = [sys.prefix, sys.base_prefix, sys.exec_prefix] + sys.path
    found = []
    for p in paths:
        p = os.path.abspath(p)
        if p != "/" and os.path.exists(p) and p not in found:
            found.append(p)
    return found


def private_regions():
    """(first byte, end) of this process's own anonymous memory."""
    with open("/proc/self/maps", encoding="ascii", errors="replace") as f:
        for row in f:
            word = row.split()
            if word[1] == "rw-p" and (len(word) < 6 or word[5] == "[heap]"):
                yield tuple(int(x, 16) for x in word[0].split("-"))


def collapse():
    """A fork copies a page table of 350 MB, 17 ms each time; of huge pages it is three. Where the kernel has none, or
    no memory for them, everything stays as it was."""
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    for low, end in list(private_regions()):
        for at in range(-(-low // HUGE_PAGE) * HUGE_PAGE, end - HUGE_PAGE + 1, HUGE_PAGE):
            advise(at, HUGE_PAGE, MADV_COLLAPSE)


def resident(pid):
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as f:
            return int(f.read().split()[1]) * resource.getpagesize()
    except (OSError, IndexError):
        return 0


def oom_kills(path="/proc/vmstat"):
    """How many processes the kernel has killed on this machine because memory was short; None: it does not say."""
    try:
        with open(path, encoding="ascii") as f:
            return next((int(row.split()[1]) for row in f if row.startswith("oom_kill ")), None)
    except (OSError, ValueError, IndexError):
        return None


class Child:
    def __init__(self, ident, pid, box):
        self.ident, self.pid, self.box = ident, pid, box
        self.kills, self.own_kills = oom_kills(), None  # of the machine, at its start; of its own cgroup, at its end
        self.oom = self.outside = False  # killed for memory: at its own limit; because the machine was full
        self.shared, self.most = resident(os.getpid()), 0  # what it has of ours from the start; resident bytes seen

    def look(self):
        """Where no cgroup counts: called now and then, and at the end."""
        self.most = max(self.most, self.box.resident() if self.box is not None else resident(self.pid))
        return self.most

    def at_limit(self):
        """Of a cgroup in which the kernel killed for memory: was it full? The kernel counts it too when it takes
        somebody because the machine is."""
        peak = self.box.peak()
        return not peak or peak > 0.9 * self.box.memory

    def spared(self):
        """The kernel says that it has not killed this one for memory: whoever did it, it was not that. Its cgroup
        counts what the kernel took of it, for whatever reason; without one, had nobody on the machine been killed in
        its time?"""
        if self.own_kills is not None:
            return self.own_kills == 0
        return self.kills is not None and oom_kills() == self.kills

    def end_box(self):
        """It has ended, and so does everything else in its jail."""
        self.own_kills = self.box.end()
        if self.own_kills:
            self.oom |= self.at_limit()
            self.outside = not self.oom

    def peak(self):
        """Bytes of memory of its own that it had at most, as far as anybody saw."""
        return self.box is not None and self.box.peak() or max(0, self.most - self.shared)

    def kill(self):
        """With a jail, the end of its process 1 is the end of all inside."""
        if self.box is not None:
            return self.box.kill()
        for end in (os.kill, os.killpg):
            try:
                end(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


# In the children -----------------------------------------------------------------------------------------------------


def close_all_but(keep):
    low = 0
    for fd in sorted(keep):
        if low < fd:  # an empty range would close everything
            os.closerange(low, fd)
        low = fd + 1
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "close_range") or libc.close_range(ctypes.c_uint(low), ctypes.c_uint(0xFFFFFFFF), 0) != 0:
        os.closerange(low, min(limit, 1 << 16))


def place(sock_fd, out_fd):
    """The child's descriptors: 0 = /dev/null, 1 and 2 = the capped output, 3 = its socket, nothing else."""
    sock_fd, out_fd = os.dup(sock_fd), os.dup(out_fd)
    null = os.open("/dev/null", os.O_RDONLY)
    if min(sock_fd, out_fd, null) <= 3:
        raise RuntimeError("descriptors 0-3 are in use by the server")
    os.dup2(null, 0)
    os.dup2(out_fd, 1)
    os.dup2(out_fd, 2)
    os.dup2(sock_fd, 3)
    close_all_but({0, 1, 2, 3})


def begin(role, args):
    """After the jail is closed: the device's context, its first launch, its threads. Failure is ours."""
    device = ROLES[role][2]
    if device:
        if device != DEVICE:
            raise RuntimeError(f"role '{role}' is for a fork server of device '{device}', this one is for '{DEVICE}'")
        with socket.socket(fileno=os.dup(3)) as judge:
            try:
                importlib.import_module(device).begin(dict(args or {}).get("device"))
            except Exception as e:
                import values  # loaded with the role's module; earlier it would load torch too early
                frame.send(judge, {"op": "unfit", "message": str(e)[:300], "memory": values.out_of_memory(e)})
                raise
            frame.send(judge, {"op": "begun"})


def serve(role, args):
    module, function, _ = ROLES[role]
    status = 1
    try:
        getattr(importlib.import_module(module), function)(socket.socket(fileno=3), args)
        status = 0
    except SystemExit as e:
        status = e.code if isinstance(e.code, int) else 0 if e.code is None else 1
    except BaseException:
        traceback.print_exc()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status & 255)


def die_with(parent):
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def child_main(request, sock_fd, out_fd, box, parent):
    """Never returns. Until the jail is closed, failure is ours and says so on the output pipe."""
    report_fd = out_fd
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        if box is None:
            die_with(parent)  # else with the jail's process 1, which does
        os.setsid()
        if box is not None:
            box.join_group()
        place(sock_fd, out_fd)
        report_fd = 2
        if box is not None:
            box.close()
        else:
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            if ROLES[request["role"]][2] is None:  # CUDA reserves more address space than any limit allows
                resource.setrlimit(resource.RLIMIT_DATA, (request["memory"] * 4,) * 2)
        begin(request["role"], request.get("args"))
    except BaseException as e:
        try:
            os.write(report_fd, f"jail: {e}\n".encode("utf-8", "replace"))
        finally:
            os._exit(125)
    serve(request["role"], request.get("args"))


# In the server
# ---------------------------------------------------------------------------------------------------------


class Server:
    def __init__(self, control):
        self.control, self.children, self.spawned = control, {}, 0
        self.wake, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the whole terminal; the judge decides

    def report(self, **head):
        frame.send(self.control, head)

    def spawn(self, request, fds):
        box, ident = None, request["id"]
        try:
            if len(fds) != 2 or request["role"] not in ROLES:
                raise ValueError(f"bad request for role '{request['role']}'")
            if request["plan"] is not None:
                box = jail.Box(request["plan"], request["memory"], request["pids"])
            prepare(request["role"])
            parent = os.getpid()
            pid = os.fork() if box is None else box.fork()
            if pid == 0:
                child_main(request, fds[0], fds[1], box, parent)
        except (OSError, ValueError, jail.JailError) as e:
            if box is not None:
                box.end()
            self.report(op="failed", id=ident, error=str(e), memory=getattr(e, "errno", None) == errno.ENOMEM)
        else:
            self.children[ident] = Child(ident, pid, box)
            self.report(op="spawned", id=ident, pid=pid)
            self.spawned += 1
            if self.spawned == COLLAPSE_AFTER:
                collapse()
        finally:
            for fd in fds:
                os.close(fd)

    def reap(self):
        for child in list(self.children.values()):
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if pid == 0:
                continue
            if child.box is None:
                with contextlib.suppress(OSError):
                    os.killpg(pid, signal.SIGKILL)
            else:
                child.end_box()
            child.most = max(child.most, usage.ru_maxrss * 1024)
            del self.children[child.ident]
            self.report(op="exit", id=child.ident, status=status, cpu_s=usage.ru_utime + usage.ru_stime,
                        max_rss=usage.ru_maxrss * 1024, peak=child.peak(), oom=child.oom,
                        outside=child.outside, spared=os.WIFSIGNALED(status) and child.spared())

    def watch_memory(self):
        for child in self.children.values():
            if child.box is not None and child.box.watched and child.look() > child.box.memory:
                child.oom = True
                child.kill()

    def handle(self):
        request, _, fds = frame.recv_fds(self.control)
        if request["op"] == "spawn":
            self.spawn(request, fds)
        elif request["op"] == "kill" and request["id"] in self.children:
            self.children[request["id"]].kill()

    def run(self):
        while True:
            watched = any(c.box is not None and c.box.watched for c in self.children.values())
            ready, _, _ = select.select([self.control, self.wake], [], [], 0.05 if watched else None)
            if self.wake in ready:
                os.read(self.wake, 4096)
            self.reap()
            if watched:
                self.watch_memory()
            if self.control in ready:
                self.handle()


def main():
    start = time.monotonic()
    jail.load(os.environ["MUSACODER_LIB"])
    info = import_everything()
    info.update(op="hello", device=DEVICE, python=sys.version.split()[0], paths=python_paths(),
                import_s=time.monotonic() - start)
    server = Server(socket.socket(fileno=CONTROL_FD))
    gc.collect()
    gc.freeze()  # children do not touch, so do not copy, the pages of what is there now
    frame.send(server.control, info)
    if os.environ.get("MUSACODER_COMPILES"):
        sys.modules["compiling"].preload()
        gc.freeze()
    if os.environ.get("MUSACODER_IMPORTS"):
        sys.modules["compiling"].preload(os.environ["MUSACODER_IMPORTS"].split())
        gc.freeze()
    try:
        server.run()
    except (frame.FrameError, BrokenPipeError, ConnectionResetError):
        pass  # the judge is gone
    finally:
        for child in server.children.values():
            child.kill()
        for child in server.children.values():
            if child.box is not None:
                child.box.end()  # waits for it, and removes its control group
    os._exit(0)


if __name__ == "__main__":
    import frame
    import jail

    sys.modules["main"] = sys.modules["__main__"]
    main()
