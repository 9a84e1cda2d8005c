"""faults.py - the experiment: hostile and honest candidates mixed, judged through the job queue by several workers while some
of the workers and of their fork servers are killed. Also a program; --help says how. Standard library only.

What must hold, each a line of check(): every honest verdict is the one that its program gets alone; every hostile candidate
has a verdict that is right for it; every job ends once; no process, control group, temporary file or device memory is left.

The queue's tables are read here directly (src/queue/queue.c), and a trigger writes down every change of a job's state, so
that nothing of this rests on what the code under test says about itself."""
import argparse
import collections
import ctypes
import glob
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import honest  # noqa: E402
import hostile  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(HERE))
EXE = os.path.abspath(os.environ.get("MUSACODER_EXE", os.path.join(ROOT, os.environ.get("B", "build"), "musacoder")))
WAITING, LEASED, DONE, FAILED = range(4)
QUIET = {"trials": 1, "perf": False}
PR_SET_CHILD_SUBREAPER = 36
DEVICE_SLACK_MIB = 64  # what the driver itself may keep
PROGRESS_S = 15        # between two lines on stderr
MAX_INFRA = 3          # times that a job may be put again


# ---- processes ----

def processes():
    """{pid: (parent, state, name)} of all that we can see."""
    found = {}
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path) as f:
                text = f.read()
        except OSError:
            continue
        name, rest = text[text.index("(") + 1:text.rindex(")")], text[text.rindex(")") + 2:].split()
        found[int(text.split()[0])] = (int(rest[1]), rest[0], name)
    return found


def below(pid):
    """All descendants of pid, as {pid: (parent, state, name)}."""
    everyone, found, grown = processes(), {}, True
    while grown:
        grown = {p: x for p, x in everyone.items() if p not in found and (x[0] == pid or x[0] in found)}
        found.update(grown)
    return found


def reap():
    """What init does for orphans; we are theirs here."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def orphaned_groups():
    """Control groups of jails (mc-PID-N) whose maker is dead, beside or below our own group: others' are not ours to judge."""
    found = set()
    with open("/proc/self/cgroup") as f:
        for line in f:
            own = line.strip().split(":", 2)[2].strip("/")
            for root in ("", "unified", *line.split(":")[1].split(",")):
                found |= set(glob.glob(os.path.join("/sys/fs/cgroup", root, own, "mc-*")))
    return {p for p in found if not os.path.exists("/proc/" + os.path.basename(p).split("-")[1])}


def device_memory():
    """MiB in use on the first GPU by anybody; None where nobody can say."""
    try:
        p = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "-i", "0"],
                           capture_output=True, text=True, timeout=60)
        return int(p.stdout.split()[0])
    except (OSError, ValueError, IndexError):
        return None


def descriptors(pid):
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return 0


# ---- the queue ----

class Job:
    def __init__(self, key, task_name, task, source, options, kind, want=None):
        self.key, self.task_name, self.task, self.source, self.options = key, task_name, task, source, options
        self.kind, self.want = kind, want  # want: None for honest ones
        self.again, self.verdict, self.failed = 0, None, False

    def payload(self):
        return json.dumps({"task_code": self.task, "task_name": self.task_name, "candidate": self.source,
                           "is_response": False, "options": self.options})


class Queue:
    def __init__(self, path):
        self.db = sqlite3.connect(path, timeout=60, isolation_level=None)
        self.db.executescript("""
            CREATE TABLE change(job INTEGER, was INTEGER, now INTEGER, attempt INTEGER, same INTEGER);
            CREATE TRIGGER noted AFTER UPDATE OF state, result ON job BEGIN
              INSERT INTO change VALUES(NEW.id, OLD.state, NEW.state, NEW.attempt, OLD.result IS NEW.result); END;""")

    def put(self, job):
        self.db.execute("INSERT INTO job(key, payload) VALUES(?, ?) ON CONFLICT(key) DO NOTHING", (job.key, job.payload()))

    def take(self, job):
        """The verdict, if it is there."""
        row = self.db.execute("SELECT state, result FROM job WHERE key = ? AND state >= 2", (job.key,)).fetchone()
        if row:
            job.failed = row[0] == FAILED
            job.verdict = {"status": "infra", "category": "infra", "feedback": row[1]} if job.failed else json.loads(row[1])
        return bool(row)

    def put_again(self, job):
        """What verdict.c does with an infra verdict that somebody asks for again."""
        self.db.execute("DELETE FROM job WHERE key = ? AND state >= 2", (job.key,))
        job.verdict, job.again = None, job.again + 1
        self.put(job)

    def release(self, worker):
        self.db.execute("UPDATE job SET state = 0 WHERE state = 1 AND worker = ?", (worker,))

    def ended_more_than_once(self):
        return self.db.execute("SELECT job, count(*) FROM change WHERE was < 2 AND now >= 2 GROUP BY job HAVING count(*) > 1"
                               " UNION SELECT job, 0 FROM change WHERE was >= 2").fetchall()

    def attempts(self):
        return dict(self.db.execute("SELECT attempt, count(*) FROM job GROUP BY attempt").fetchall())

    def unfinished(self):
        return self.db.execute("SELECT count(*) FROM job WHERE state < 2").fetchone()[0]


# ---- workers ----

class Workers:
    def __init__(self, folder, n, jobs, backend):
        self.folder, self.jobs, self.backend, self.starts = folder, jobs, backend, 0
        self.queue = os.path.join(folder, "queue.db")
        self.log = open(os.path.join(folder, "workers.log"), "ab")
        self.alive = {}  # name -> Popen
        self.hurt = set()  # whose fork server was killed: one that was just starting cannot go on
        for _ in range(n):
            self.start()

    def start(self):
        self.starts += 1
        name = f"w{self.starts}"
        self.alive[name] = subprocess.Popen(
            [EXE, "eval", "--worker", "--backend", self.backend, "--no-cache", "--jobs", str(self.jobs), "--queue", self.queue,
             "--name", name], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, process_group=0)

    def kill(self, name):
        self.alive[name].send_signal(signal.SIGKILL)
        self.alive.pop(name).wait()
        self.start()

    def kill_fork_server(self, name):
        """The Python that all of a worker's candidates come from."""
        pid = self.alive[name].pid
        for p, (parent, _, comm) in processes().items():
            if parent == pid and comm.startswith("python"):
                os.kill(p, signal.SIGKILL)
                self.hurt.add(name)
                return

    def look_after(self):
        """Workers that ended without being asked: nothing of what they are fed may do that."""
        ended = [(name, w.returncode) for name, w in self.alive.items() if w.poll() is not None]
        for name, _ in ended:
            del self.alive[name]
            self.start()
        return ended

    def stop(self):
        for w in self.alive.values():
            w.send_signal(signal.SIGTERM)
        late = []
        for name, w in self.alive.items():
            try:
                w.wait(20)
            except subprocess.TimeoutExpired:
                late.append(name)
                w.kill()
                w.wait()
        return late


# ---- the experiment ----

def make_jobs(n_hostile, n_honest, backend, seed, quick):
    jobs = []
    for i in range(n_honest):
        name, task, kind, _, text = honest.make(i, quick)
        jobs.append(Job(f"honest {i}", name, task, text, dict(QUIET, backend=backend, timeout=120, **{"build-timeout": 300}), kind))
    for i in range(n_hostile):
        name, want, text = hostile.make(i, backend, quick)
        options = dict(QUIET, backend=backend, timeout=hostile.TIMEOUT_S, **{"build-timeout": hostile.BUILD_TIMEOUT_S})
        jobs.append(Job(f"hostile {i}", "relu", hostile.RELU_TASK, text, options, name, want))
    random.Random(seed).shuffle(jobs)
    return jobs


def solo(kinds, backend, folder):
    """{kind: verdict}: every kind of honest program, one after the other, nobody else there."""
    groups, verdicts = collections.defaultdict(list), {}
    for k in range(len(honest.KINDS)):
        name, task, kind, category, text = honest.make(k)
        if kind in kinds:
            groups[name, task].append((kind, category, text))
    for (name, task), rows in groups.items():
        paths = [os.path.join(folder, f"{name}.py")] + [os.path.join(folder, f"{name}{i}.py") for i in range(len(rows))]
        for path, text in zip(paths, [task] + [r[2] for r in rows]):
            with open(path, "w") as f:
                f.write(text)
        p = subprocess.run([EXE, "eval", "--task", paths[0], "--backend", backend, "--json", "--no-cache", "--jobs", "1",
                            "--trials", "1", "--no-perf", "--timeout", "120", "--build-timeout", "300", *paths[1:]],
                           capture_output=True, text=True)
        lines = [json.loads(x) for x in p.stdout.splitlines()]
        if len(lines) != len(rows):
            raise RuntimeError(f"musacoder eval: exit code {p.returncode}: {p.stderr[-2000:]}")
        for (kind, category, _), v in zip(rows, lines):
            if v["category"] != category:
                raise RuntimeError(f"'{kind}' alone gets {v['category']}: {v['feedback']}")
            verdicts[kind] = v
    return verdicts


def essence(v):
    """What must not depend on the neighbours."""
    numbers = {k: x for k, x in (v.get("correctness") or {}).items() if not k.endswith("_ms")}
    return {"status": v["status"], "category": v["category"], "correctness": numbers}


class Experiment:
    def __init__(self, a):
        self.a, self.problems, self.infra = a, [], 0
        self.random = random.Random(a.seed + 1)
        self.killed, self.fork_server_next = collections.Counter(), False

    def say(self, text):
        if self.a.verbose:
            print(f"{time.monotonic() - self.start:7.1f} s  {text}", flush=True)

    def progress(self, done, n):
        """A line now and then; with --verbose every verdict has one."""
        now = time.monotonic()
        if not self.a.verbose and now - self.told >= PROGRESS_S:
            left = f", about {(now - self.start) / done * (n - done):.0f} s left" if done else ""
            print(f"{done} of {n} verdicts, {len(self.problems)} problems, {now - self.start:.0f} s{left}",
                  file=sys.stderr, flush=True)
            self.told = now

    def fail(self, text):
        self.problems.append(text)
        self.say("WRONG: " + text)

    def prepare(self):
        self.folder = tempfile.mkdtemp(prefix="mc-faults-")
        for name in ("cache", "tmp", "solo"):
            os.mkdir(os.path.join(self.folder, name))
        if not (self.a.quick and "MUSACODER_CACHE_DIR" in os.environ):  # else the headers are compiled there already
            os.environ["MUSACODER_CACHE_DIR"] = os.path.join(self.folder, "cache")
        os.environ["TMPDIR"] = os.path.join(self.folder, "tmp")
        os.environ.setdefault("MUSACODER_SECRET", "faults")  # the same draws for all, as in one cache folder
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # orphans come to us: nothing can hide
        self.memory = device_memory() if self.a.backend == "cuda" else None

    def open_queue(self):
        path = os.path.join(self.folder, "queue.db")
        for _ in range(4000):
            if os.path.exists(path):
                try:
                    with sqlite3.connect(path) as db:
                        if db.execute("SELECT name FROM sqlite_master WHERE name = 'job'").fetchone():
                            return Queue(path)
                except sqlite3.OperationalError:
                    pass
            time.sleep(0.1)
        with open(os.path.join(self.folder, "workers.log"), errors="replace") as f:
            raise RuntimeError("no worker has opened the queue: " + f.read()[-2000:])

    def kill_someone(self, workers, queue):
        name = self.random.choice(sorted(workers.alive))
        self.fork_server_next = not self.fork_server_next
        if not self.fork_server_next:
            self.say(f"kills the fork server of {name}")
            self.killed["fork server"] += 1
            return workers.kill_fork_server(name)
        told = self.a.quick or self.random.random() < 0.5
        self.say(f"kills worker {name}" + ("" if told else ", and tells nobody"))
        self.killed["worker"] += 1
        workers.kill(name)
        if told:  # as the service does (queue_release_worker); else the leases expire
            queue.release(name)

    def mix(self, jobs, workers, queue):
        """Until every job has ended. The kills are spread over the work, not over the time."""
        open_jobs, done, kills_left = list(jobs), 0, self.a.kills
        next_kill = max(1, len(jobs) // (4 * (self.a.kills + 1)))
        deadline = time.monotonic() + self.a.limit
        while open_jobs and time.monotonic() < deadline:
            for job in [j for j in open_jobs if queue.take(j)]:
                if job.verdict["status"] == "infra" and job.again < MAX_INFRA:
                    self.infra += 1
                    self.say(f"{job.key} ({job.kind}) again: {job.verdict.get('feedback')}")
                    queue.put_again(job)
                    continue
                open_jobs.remove(job)
                done += 1
                self.say(f"{done}/{len(jobs)} {job.key} ({job.kind}): {job.verdict['category']}")
            if kills_left and done >= next_kill:
                kills_left -= 1
                next_kill += max(1, len(jobs) // (self.a.kills + 1))
                self.kill_someone(workers, queue)
            for name, code in workers.look_after():
                if not (code == 3 and name in workers.hurt):
                    self.fail(f"worker {name} ended by itself with exit code {code}")
                queue.release(name)
            reap_orphans(workers)
            self.progress(done, len(jobs))
            time.sleep(0.1)
        for job in open_jobs:
            self.fail(f"no verdict for {job.key} ({job.kind})")

    def check_verdicts(self, jobs, alone):
        for job in jobs:
            v = job.verdict
            if v is None:
                continue
            if job.want is not None and v["category"] not in job.want:
                self.fail(f"{job.key} ({job.kind}): {v['category']} instead of {job.want}: {v.get('feedback', '')[:300]}")
            if job.want is None and essence(v) != essence(alone[job.kind]):
                self.fail(f"{job.key} ({job.kind}): {essence(v)}, alone {essence(alone[job.kind])}: {v.get('feedback', '')[:300]}")

    def check_queue(self, queue, jobs):
        n = queue.db.execute("SELECT count(*) FROM job").fetchone()[0]
        if n != len(jobs):
            self.fail(f"{n} jobs in the queue, {len(jobs)} were put")
        for job, times in queue.ended_more_than_once():
            self.fail(f"job {job} ended {times} times, or changed after its end")

    def check_workers(self, workers):
        """While they still run: what has ended must be gone, and descriptors must not pile up."""
        time.sleep(1)
        for _ in range(50):
            reap_orphans(workers)
            pids = {w.pid for w in workers.alive.values()}
            dead = {p: x for p, x in below(os.getpid()).items() if x[1] == "Z" and p not in pids}
            if not dead:
                break
            time.sleep(0.1)
        else:
            self.fail(f"zombies: {dead}")
        for name, w in workers.alive.items():
            if descriptors(w.pid) > 120 + 20 * self.a.jobs:
                self.fail(f"worker {name} holds {descriptors(w.pid)} descriptors")

    def check_left_over(self):
        for _ in range(150):
            reap()
            left = below(os.getpid())
            if not left:
                break
            time.sleep(0.1)
        else:
            self.fail(f"processes left behind: {left}")
            for pid in left:
                os.kill(pid, signal.SIGKILL)
        subprocess.run([EXE, "doctor"], capture_output=True)  # any later start sweeps what the killed could not
        left = orphaned_groups()
        if left and orphaned_groups() & left:
            self.fail(f"control groups left behind: {sorted(left)}")
        left = os.listdir(os.path.join(self.folder, "tmp"))
        if left:
            self.fail(f"temporary files left behind: {left}")
        left = glob.glob(os.path.join(self.folder, "cache", "**", "*.work"), recursive=True)
        if left:
            self.fail(f"unfinished builds left behind: {left}")

    def check_device(self):
        if self.memory is None:
            return
        for _ in range(100):
            now = device_memory()
            if now - self.memory <= DEVICE_SLACK_MIB:
                break
            time.sleep(0.2)
        else:
            self.fail(f"device memory: {self.memory} MiB in use before, {now} MiB after")
        self.say(f"device memory in use: {self.memory} MiB before, {now} MiB after")

    def run(self):
        self.start = self.told = time.monotonic()
        self.prepare()
        jobs = make_jobs(self.a.hostile, self.a.honest, self.a.backend, self.a.seed, self.a.quick)
        workers = Workers(self.folder, self.a.workers, self.a.jobs, self.a.backend)
        try:
            queue = self.open_queue()
            for job in jobs + jobs[:10]:  # some twice: that must change nothing
                queue.put(job)
            self.mix(jobs, workers, queue)
            mixed_s = time.monotonic() - self.start
            self.check_queue(queue, jobs)
            self.check_workers(workers)
        finally:
            for name in workers.stop():
                self.fail(f"worker {name} did not stop when asked")
        alone = solo({j.kind for j in jobs if j.want is None}, self.a.backend, os.path.join(self.folder, "solo"))
        self.check_verdicts(jobs, alone)
        self.check_left_over()
        self.check_device()
        self.report(jobs, queue, mixed_s)
        if not self.a.keep:
            shutil.rmtree(self.folder, ignore_errors=True)
        return self.problems

    def report(self, jobs, queue, mixed_s):
        for text in self.problems:
            print(f"WRONG {text}")
        if self.a.table:
            rows = collections.defaultdict(collections.Counter)
            for job in jobs:
                rows["honest" if job.want is None else job.kind][(job.verdict or {}).get("category") or "passed"] += 1
            for kind in sorted(rows):
                print(f"{kind:45} " + ", ".join(f"{c} {k}" for k, c in sorted(rows[kind].items())))
        print(f"{self.a.backend}: {self.a.hostile} hostile and {self.a.honest} honest candidates, {self.a.workers} workers of "
              f"{self.a.jobs} jobs, {mixed_s:.0f} s; killed: {dict(self.killed)}; attempts: {queue.attempts()}; put again after "
              f"infra: {self.infra}; problems: {len(self.problems)}", flush=True)


def reap_orphans(workers):
    """As reap(), but leaves the workers to who waits for them."""
    known = {w.pid for w in workers.alive.values()}
    for pid, (parent, state, _) in processes().items():
        if parent == os.getpid() and state == "Z" and pid not in known:
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                pass


def options(argv=None):
    a = argparse.ArgumentParser(description="hostile and honest candidates mixed, workers killed: nothing may be lost or wrong")
    a.add_argument("--backend", default="sim", choices=["sim", "cuda"])
    a.add_argument("--n", type=int, default=200, help="hostile candidates, and as many honest ones")
    a.add_argument("--hostile", type=int)
    a.add_argument("--honest", type=int)
    a.add_argument("--workers", type=int, default=3)
    a.add_argument("--jobs", type=int, default=2, help="of each worker")
    a.add_argument("--kills", type=int, help="default: one for each 40 candidates")
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--limit", type=float, default=3000, help="seconds until what has no verdict counts as lost")
    a.add_argument("--quick", action="store_true", help="one hostile candidate of each family")
    a.add_argument("--table", action="store_true", help="print the verdicts of each kind")
    a.add_argument("--keep", action="store_true", help="keep the folder with queue, logs and cache")
    a.add_argument("--verbose", action="store_true")
    a = a.parse_args(argv)
    a.hostile = a.n if a.hostile is None else a.hostile
    a.honest = a.n if a.honest is None else a.honest
    a.kills = max(2, (a.hostile + a.honest) // 40) if a.kills is None else a.kills
    return a


def main(argv=None):
    return 1 if Experiment(options(argv)).run() else 0


if __name__ == "__main__":
    sys.exit(main())
