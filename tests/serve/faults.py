"""faults.py - a server, a worker and clients, and something breaks: a table of moments. Every client must get its
program's verdict, and the queue must hold every job once, ended.

    make build/lab/bench_serve && python3 tests/serve/faults.py [WORD...]

plays the rows whose name has a word, and prints a line for each.

The pieces: fault_hook.c (dies at a named moment), a PostgreSQL server of our own, a small tmpfs, network namespaces."""

import contextlib
import glob
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIGHT = os.path.abspath(os.path.join(os.environ.get("B", os.path.join(ROOT, "build")), "lab/bench_serve"))
EXE = os.path.abspath(os.path.join(os.environ.get("B", os.path.join(ROOT, "build")), "musacoder"))
SLOW = float(os.environ.get("TEST_SLOWDOWN", "1"))
sys.path[:0] = [os.path.join(ROOT, "python"), os.path.join(ROOT, "tests/faults")]
import musacoder  # noqa: E402

JOBS, CLIENTS, PATIENCE_S = 24, 6, 150 * SLOW
TASK = ("import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return torch.relu(x)\n"
        "def get_inputs():\n    return [torch.randn(8, 16)]\ndef get_init_inputs():\n    return []\n")
PG = sorted(glob.glob("/usr/lib/postgresql/*/bin"))


class Sqlite:
    name = "sqlite"

    def __init__(self, folder):
        self.folder, self.url = folder, os.path.join(folder, "q.db")

    def rows(self, query):
        db = sqlite3.connect(self.url, timeout=60)
        try:
            return db.execute(query).fetchall()
        finally:
            db.close()

    def stop(self):
        pass


class Postgres:
    """A cluster in a folder, with fsync: what it said it holds, it must hold after SIGKILL."""
    name = "postgres"

    def __init__(self, folder, address=None):
        self.folder, self.address = folder, address
        os.chmod(folder, 0o777)
        self.run("initdb", "-D", folder + "/db", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync")
        if address:
            with open(folder + "/db/pg_hba.conf", "a") as f:
                f.write("host all all 0.0.0.0/0 trust\n")
        self.start()
        self.run("createdb", "-h", folder, "-U", "postgres", "q")
        self.url = f"postgres://postgres@/q?host={folder}"

    def run(self, program, *argv):
        user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        return subprocess.run([*user, PG[-1] + "/" + program, *argv], cwd=self.folder, check=True, capture_output=True,
                              text=True, timeout=120).stdout

    def start(self):
        self.run("pg_ctl", "-D", self.folder + "/db", "-w", "-l", self.folder + "/log", "-o",
                 f"-c listen_addresses='{self.address or ''}' -k {self.folder}", "start")

    def kill(self):
        """SIGKILL to the server and all of its children."""
        with open(self.folder + "/db/postmaster.pid") as f:
            pid = int(f.readline())
        children = subprocess.run(["ps", "--ppid", str(pid), "-o", "pid="], capture_output=True,
                                  text=True).stdout.split()
        for p in [pid] + [int(c) for c in children]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(p, signal.SIGKILL)
        time.sleep(0.3)
        for lock in ("db/postmaster.pid", ".s.PGSQL.5432.lock"):  # where nobody reaps, the dead look alive to the next
            with contextlib.suppress(FileNotFoundError):
                os.remove(os.path.join(self.folder, lock))

    def rows(self, query):
        text = self.run("psql", "-h", self.folder, "-U", "postgres", "-At", "-F", "|", "-c", query, "q")
        return [[int(c) if c.lstrip("-").isdigit() else c for c in line.split("|")] for line in text.split("\n")
                if line]

    def stop(self):
        with contextlib.suppress(subprocess.CalledProcessError):
            self.run("pg_ctl", "-D", self.folder + "/db", "-m", "immediate", "stop")


class Scene:
    """A server and a worker over a queue; 'hook' is the environment of the one that a fault is for."""

    def __init__(self, broker, folder, hook_lib):
        self.broker, self.folder, self.lib = broker, folder, hook_lib
        self.judge = False
        self.port, self.made, self.once = 0, [], os.path.join(folder, "struck")

    def environment(self, fault):
        env = dict(os.environ, MUSACODER_CACHE_DIR=os.path.join(self.folder, "cache"))
        if fault:
            env.update(fault, LD_PRELOAD=self.lib, FAULT_ONCE=self.once)
        return env

    def launch(self, argv, fault, prefix=()):
        p = subprocess.Popen([*prefix, *argv], stderr=subprocess.PIPE, text=True, env=self.environment(fault))
        self.made.append(p)
        return p

    def server(self, fault=None):
        """On its predecessor's port."""
        for _ in range(100):
            p = self.launch([EXE, "serve", "--queue", self.broker.url, "--port", str(self.port), "--workers", "0"],
                            fault)
            line = p.stderr.readline()
            if "serve: http://" in line:
                self.port = int(line.split(",")[0].rsplit(":", 1)[1])
                threading.Thread(target=p.stderr.read, daemon=True).start()
                return p
            p.kill()
            p.wait()
            time.sleep(0.1)
        raise RuntimeError("the server did not start: " + line)

    def worker(self, fault=None, url=None, prefix=()):
        """The judge itself, or what answers at once and treats the queue as it does."""
        url = url or self.broker.url
        p = self.launch([EXE, "worker", "--queue", url, "--jobs", "1"] if self.judge else
                        [LIGHT, "--work", url, f"w{len(self.made)}"], fault, prefix)
        threading.Thread(target=p.stderr.read, daemon=True).start()
        return p

    def crowd(self):
        """Clients whose programs differ; they end fast: no class ModelNew is in them."""
        self.got = {}
        client = musacoder.Client(f"http://127.0.0.1:{self.port}", patience_s=PATIENCE_S, parallel=1, batch=1)

        def one(k):
            for i in range(k, JOBS, CLIENTS):
                try:
                    self.got[i] = client.judge([{"task": {"name": "t", "code": TASK}, "code": f"x = {i}\n"}])[0]
                except Exception as e:  # noqa: BLE001 - whatever it is, it is no verdict
                    self.got[i] = {"status": "none", "feedback": repr(e)}
        self.threads = [threading.Thread(target=one, args=(k,), daemon=True) for k in range(CLIENTS)]
        for t in self.threads:
            t.start()

    def struck(self):
        return os.path.exists(self.once)

    def await_strike(self, seconds=60):
        until = time.time() + seconds * SLOW
        while not self.struck():
            if time.time() > until:
                raise RuntimeError("the moment never came")
            time.sleep(0.01)

    def finish(self):
        """Every client has its verdict; every job is there once and done."""
        until = time.time() + PATIENCE_S
        for t in self.threads:
            t.join(max(0.1, until - time.time()))
        said = [(r["status"], r.get("category")) for r in self.got.values()]
        assert len(self.got) == JOBS, f"{JOBS - len(self.got)} clients have no answer"
        assert set(said) == {("failed", "extraction_error")}, sorted(set(map(str, self.got.values())))[-1][:600]
        rows = self.broker.rows("SELECT state, count(*), count(DISTINCT key) FROM job GROUP BY state")
        assert [list(r) for r in rows] == [[2, JOBS, JOBS]], f"the queue holds {rows}"

    def close(self):
        for p in self.made:
            if p.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(p.pid, signal.SIGCONT)
                p.kill()
            p.wait()
            with contextlib.suppress(ValueError, OSError):
                p.stderr.close()


# ---- what may break ----

def dies(who, at, judge=False):
    """A server or a worker dies at a moment; another one follows."""
    def play(s):
        fault = {"FAULT_AT": at, "FAULT_DO": "kill"}
        s.judge = judge
        s.server(fault if who == "server" else None)
        s.worker(fault if who == "worker" else None)
        s.crowd()
        s.await_strike()
        (s.server if who == "server" else s.worker)()
        s.finish()
    return play


def database_dies(who, at):
    """The database dies while a server or a worker is at a moment, and comes back after a second."""
    def play(s):
        fault = {"FAULT_AT": at, "FAULT_DO": "halt"}
        a = s.server(fault if who == "server" else None)
        b = s.worker(fault if who == "worker" else None)
        s.crowd()
        s.await_strike()
        s.broker.kill()
        os.kill((a if who == "server" else b).pid, signal.SIGCONT)
        time.sleep(1)
        s.broker.start()
        s.finish()
    return play


def clock_jumps(seconds):
    def play(s):
        clock = os.path.join(s.folder, "clock")
        with open(clock, "w") as f:
            f.write("0")
        s.server({"FAULT_CLOCK": clock})
        s.worker({"FAULT_CLOCK": clock})
        s.crowd()
        while len(s.got) < 3:
            time.sleep(0.01)
        with open(clock + ".new", "w") as f:
            f.write(str(seconds))
        os.rename(clock + ".new", clock)
        s.finish()
    return play


def disk_full(s):
    """The queue's file system has no byte left for three seconds."""
    s.server()
    s.worker()
    s.crowd()
    while len(s.got) < 3:
        time.sleep(0.01)
    fd = os.open(os.path.join(s.broker.folder, "ballast"), os.O_CREAT | os.O_WRONLY)
    until = time.time() + 3
    while time.time() < until:  # what the database gives back meanwhile is taken too
        try:
            os.write(fd, b"\0" * 4096)
        except OSError:
            time.sleep(0.01)
    os.close(fd)
    os.remove(os.path.join(s.broker.folder, "ballast"))
    s.finish()


def link_cut(s):
    """The worker lives in a network namespace of its own; its link to the database is down for five seconds."""
    s.server()
    s.worker(url=f"postgres://postgres@{Namespace.HOST}/q", prefix=["ip", "netns", "exec", Namespace.NAME])
    s.crowd()
    while len(s.got) < 3:
        time.sleep(0.01)
    subprocess.run(["ip", "link", "set", Namespace.LINK, "down"], check=True)
    time.sleep(5)
    subprocess.run(["ip", "link", "set", Namespace.LINK, "up"], check=True)
    s.finish()


def build_awaited(s):
    """The database is away for 40 s while a worker without a compiler awaits a build. No record that says less than the
    candidate's verdict may be kept."""
    import honest
    s.server()
    run = s.launch([EXE, "worker", "--queue", s.broker.url, "--kind", "run", "--jobs", "1"], None,
                   ["env", "MUSACODER_CXX=/no/such/compiler", "MUSACODER_NVCC=/no/such/compiler"])
    said = []
    threading.Thread(target=lambda: said.extend(run.stderr), daemon=True).start()
    client = musacoder.Client(f"http://127.0.0.1:{s.port}", patience_s=PATIENCE_S)
    s.got = {}
    asking = threading.Thread(target=lambda: s.got.update(one=client.judge(
        [{"task": {"name": "relu", "code": honest.RELU_TASK}, "code": honest.relu(128),
          "options": {"trials": 1, "perf": False}}])[0]), daemon=True)
    asking.start()
    builder = s.launch([EXE, "worker", "--queue", s.broker.url, "--kind", "build", "--builds", "1"], None)
    while not s.broker.rows("SELECT 1 FROM job WHERE lane = 'build:sim' AND payload LIKE '%request\":{%'"):
        assert asking.is_alive() and run.poll() is None, "".join(said)
        time.sleep(0.05)
    builder.kill()
    s.broker.kill()
    time.sleep(40)
    s.broker.start()
    s.launch([EXE, "worker", "--queue", s.broker.url, "--kind", "build", "--builds", "1"], None)
    asking.join(PATIENCE_S)
    assert s.got["one"]["status"] == "passed", str(s.got)[:600]
    with urllib.request.urlopen(f"http://127.0.0.1:{s.port}/metrics") as r:
        assert 'verdicts_total{category="infra"} 0' in r.read().decode(), "infra came first: " + "".join(said)


class Namespace:
    NAME, LINK = f"mcf{os.getpid()}", f"mcf{os.getpid()}"[:13]
    HOST, GUEST = "198.51.100.1", "198.51.100.2"  # RFC 5737: for documentation, so nobody's

    def __enter__(self):
        for line in (f"netns add {self.NAME}", f"link add {self.LINK} type veth peer name {self.LINK}p",
                     f"link set {self.LINK}p netns {self.NAME}", f"addr add {self.HOST}/30 dev {self.LINK}",
                     f"link set {self.LINK} up", f"-n {self.NAME} addr add {self.GUEST}/30 dev {self.LINK}p",
                     f"-n {self.NAME} link set {self.LINK}p up", f"-n {self.NAME} link set lo up"):
            subprocess.run(["ip", *line.split()], check=True, capture_output=True)
        return self

    def __exit__(self, *a):
        subprocess.run(["ip", "link", "del", self.LINK], capture_output=True)
        subprocess.run(["ip", "netns", "del", self.NAME], capture_output=True)


def can_namespace():
    try:
        with Namespace():
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


SQLITE = [
    ("server before it puts a job", dies("server", "sql:INSERT INTO job")),
    ("server after it put a job", dies("server", "sql:INSERT INTO job:after")),
    ("server as it reads a result", dies("server", "sql:SELECT state, result")),
    ("server in the midst of a commit", dies("server", "write:60")),
    ("judge after it claimed", dies("worker", "sql:UPDATE job SET state = 1:after", True)),
    ("worker before it claims", dies("worker", "sql:UPDATE job SET state = 1")),
    ("worker after it claimed", dies("worker", "sql:UPDATE job SET state = 1:after")),
    ("worker before it finishes", dies("worker", "sql:UPDATE job SET state = 2")),
    ("worker after it finished", dies("worker", "sql:UPDATE job SET state = 2:after")),
    ("worker in the midst of a commit", dies("worker", "write:29")),
    ("clock an hour ahead", clock_jumps(3600)),
    ("clock an hour back", clock_jumps(-3600)),
    ("disk full", disk_full),
]
POSTGRES = ([(f"server at message {n}", dies("server", f"send:{n}")) for n in (18, 20, 22, 24, 26, 28, 31)] +
            [(f"worker at message {n}", dies("worker", f"send:{n}")) for n in (4, 9, 12, 15, 18, 21, 25)] +
            [(f"database at the server's message {n}", database_dies("server", f"send:{n}")) for n in (18, 21, 24,
                                                                                                       27)] +
            [(f"database at the worker's message {n}", database_dies("worker", f"send:{n}")) for n in (9, 13, 17, 22)] +
            [("clock an hour ahead", clock_jumps(3600)), ("clock an hour back", clock_jumps(-3600)),
             ("disk full", disk_full), ("network cut", link_cut), ("database while a build is awaited", build_awaited)])


@contextlib.contextmanager
def place(small):
    """A folder; small: a file system of 64 MiB, where we may mount one."""
    folder = tempfile.mkdtemp(prefix="musacoder-faults-")
    try:
        if small:
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", folder], check=True, capture_output=True)
        yield folder
    finally:
        if small:
            subprocess.run(["umount", "-l", folder], capture_output=True)
        shutil.rmtree(folder, ignore_errors=True)


def hook(folder):
    lib = os.path.join(folder, "hook.so")
    subprocess.run([os.environ.get("CC", "cc").split()[-1], "-D_GNU_SOURCE", "-O1", "-shared", "-fPIC", "-o", lib,
                    os.path.join(ROOT, "tests/serve/fault_hook.c"), "-ldl"], check=True)
    return lib


def play(broker_kind, row):
    """Seconds that it took; raises what went wrong, or Skip."""
    name, act = row
    began = time.time()
    if act is link_cut and not can_namespace():
        raise Skip("network namespaces are not allowed here")
    if act is disk_full and os.geteuid() != 0:
        raise Skip("only root mounts a file system")
    with tempfile.TemporaryDirectory() as folder, place(act is disk_full) as at, contextlib.ExitStack() as stack:
        if act is link_cut:
            stack.enter_context(Namespace())
        broker = Postgres(at, Namespace.HOST) if act is link_cut else broker_kind(at)
        scene = Scene(broker, folder, hook(folder))
        try:
            act(scene)
        finally:
            scene.close()
            broker.stop()
    return time.time() - began


class Skip(Exception):
    pass


def main(words):
    failed = 0
    for kind, table in ((Sqlite, SQLITE), (Postgres, POSTGRES)):
        for row in table:
            full = f"{kind.name}: {row[0]}"
            if (words and not any(w in full for w in words)) or (kind is Postgres and not PG):
                continue
            try:
                print(f"ok      {play(kind, row):6.1f} s  {full}", flush=True)
            except Skip as e:
                print(f"skipped           {full}: {e}", flush=True)
            except Exception as e:  # noqa: BLE001 - a row that breaks in any way is a row that failed
                failed += 1
                print(f"FAILED            {full}: {type(e).__name__}: {e}", flush=True)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
