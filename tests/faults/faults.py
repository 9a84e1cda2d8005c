"""faults.py - the experiment: hostile and honest candidates mixed, judged through the job queue by several workers
while workers, the owner that judges for them, its fork servers and its executors are killed. Also a program; --help
says how. Standard library only.

What must hold, each a line of check(): every honest verdict is the one that its program gets alone; every hostile
candidate has a verdict that is right for it; every job ends once; no process, control group, temporary file or device
memory is left.

The queue's tables are read here directly (src/queue/queue.c), and a trigger writes down every change of a job's state,
so that nothing of this rests on what the code under test says about itself."""
import argparse
import collections
import contextlib
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
CARD = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
WAITING, LEASED, DONE, FAILED = range(4)
QUIET = {"trials": 1, "perf": False}
AT_EASE = dict(QUIET, timeout=120, **{"build-timeout": 300})  # of the honest
PR_SET_CHILD_SUBREAPER = 36
DEVICE_SLACK_MIB = 64  # what the driver itself may keep
IDLE_MIB = 1024        # of a worker that has nothing to do: its context, and the values of small tasks
PROGRESS_S = 15        # between two lines on stderr
MAX_INFRA = {"sim": 3, "cuda": 1}  # times that a job may be put again; on a GPU its last try had the device to itself
END_S = 25             # of --seconds: what stopping the workers and all that is looked at afterwards may take
LATER_S = 30           # until a process, a group or the device's memory counts as left behind: drivers take their time
TAIL = 10              # the last of so many parts of the jobs has none that lasts until its limit


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


def groups():
    """Control groups of jails (mc-PID-N) below our own group and beside all above it, where the judge may make them."""
    found = set()
    with open("/proc/self/cgroup") as f:
        for line in f:
            own = line.strip().split(":", 2)[2].strip("/").split("/")
            for root in ("", "unified", *line.split(":")[1].split(",")):
                for n in range(len(own) + 1):
                    found |= set(glob.glob(os.path.join("/sys/fs/cgroup", root, *own[:n], "mc-*")))
    return {os.path.normpath(p) for p in found}


def maker(group):
    return int(os.path.basename(group).split("-")[1])


def nvidia_smi(*query):
    try:
        p = subprocess.run(["nvidia-smi", *query, "--format=csv,noheader,nounits", "-i", CARD], capture_output=True,
                           text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return p.stdout


def device_memory():
    """MiB in use on the first GPU by anybody; None where nobody can say."""
    try:
        return int(nvidia_smi("--query-gpu=memory.used").split()[0])
    except (ValueError, IndexError):
        return None


def device_processes():
    """{pid: MiB} of those that have the first GPU, as far as the driver shows them here."""
    rows = (row.split(",") for row in nvidia_smi("--query-compute-apps=pid,used_memory").splitlines())
    return {int(row[0]): int(row[1]) for row in rows if len(row) == 2 and row[1].strip().isdigit()}


def machine_memory():
    """What the kernel says that there is, for the report."""
    rows = {}
    for name, path in (("", "/proc/meminfo"), ("group ", "/sys/fs/cgroup/memory.max"),
                       ("group ", "/sys/fs/cgroup/memory/memory.limit_in_bytes")):
        try:
            with open(path) as f:
                text = f.read()
        except OSError:
            continue
        if path.endswith("meminfo"):
            rows.update((r.split(":")[0], int(r.split()[1]) >> 10) for r in text.splitlines()[:3])
        else:
            rows[name + "limit"] = text.strip()
    return rows


def descriptors(pid):
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return 0


def owners():
    """Pids of the owners that live in our own place for them."""
    p = subprocess.run([EXE, "owner", "--json"], capture_output=True, text=True, timeout=60)
    return [o["pid"] for o in json.loads(p.stdout or "[]")]


# ---- the queue ----

class Job:
    def __init__(self, key, task_name, task, source, options, kind, want=None):
        self.key, self.task_name, self.task, self.source, self.options = key, task_name, task, source, options
        self.kind, self.want = kind, want  # want: None for honest ones
        self.again, self.verdict, self.failed = 0, None, False
        self.seconds = self.attempts = None  # from the first lease to the end, by the queue's own clock

    @property
    def row(self):
        """Of the table."""
        return self.kind if self.want else "honest, " + self.kind

    def payload(self):
        return json.dumps({"task_code": self.task, "task_name": self.task_name, "candidate": self.source,
                           "is_response": False, "options": self.options})


class Queue:
    def __init__(self, path):
        self.db = sqlite3.connect(path, timeout=60, isolation_level=None)
        self.db.executescript("""
            CREATE TABLE change(job INTEGER, key TEXT, was INTEGER, now INTEGER, attempt INTEGER, at REAL);
            CREATE TRIGGER noted AFTER UPDATE OF state, result ON job BEGIN
              INSERT INTO change
                VALUES(NEW.id, NEW.key, OLD.state, NEW.state, NEW.attempt, julianday('now') * 86400.0); END;
            CREATE INDEX change_key ON change(key);""")

    def put(self, job):
        self.db.execute("INSERT INTO job(key, lane, owner, priority, rank, payload, attempts, made)"
                        " VALUES(?, '', '', 0, 1, ?, 3, 0) ON CONFLICT(key) DO NOTHING", (job.key, job.payload()))

    def ended(self):
        """Keys of the jobs that have ended."""
        return {row[0] for row in self.db.execute("SELECT key FROM job WHERE state >= 2")}

    def take(self, job):
        """The verdict of a job that has ended."""
        state, result = self.db.execute("SELECT state, result FROM job WHERE key = ?", (job.key,)).fetchone()
        job.failed = state == FAILED
        job.verdict = {"status": "infra", "category": "infra", "feedback": result} if job.failed else json.loads(result)
        job.seconds, job.attempts = self.db.execute(
            "SELECT max(at) - min(at), sum(now = 1) FROM change WHERE key = ?", (job.key,)).fetchone()

    def where(self, job):
        """Of a job that has not ended: what became of it so far."""
        state, attempt, worker, since = self.db.execute(
            "SELECT state, attempt, worker, julianday('now') * 86400.0 -"
            " (SELECT max(at) FROM change WHERE key = job.key) FROM job WHERE key = ?", (job.key,)).fetchone()
        return "waits" if state == WAITING and not attempt else \
            f"{'leased by ' + worker if state == LEASED else 'waits again'}, lease {attempt}, for {since:.0f} s"

    def put_again(self, job):
        """What verdict.c does with an infra verdict that somebody asks for again."""
        self.db.execute("DELETE FROM job WHERE key = ? AND state >= 2", (job.key,))
        job.verdict, job.again = None, job.again + 1
        self.put(job)

    def release(self, worker):
        self.db.execute("UPDATE job SET state = 0 WHERE state = 1 AND worker = ?", (worker,))

    def ended_more_than_once(self):
        return self.db.execute("SELECT job, count(*) FROM change WHERE was < 2 AND now >= 2 GROUP BY job"
                               " HAVING count(*) > 1 UNION SELECT job, 0 FROM change WHERE was >= 2").fetchall()

    def attempts(self):
        return dict(self.db.execute("SELECT attempt, count(*) FROM job GROUP BY attempt").fetchall())


# ---- workers ----

class Workers:
    def __init__(self, folder, n, jobs, backend):
        self.folder, self.jobs, self.backend, self.starts = folder, jobs, backend, 0
        self.queue = os.path.join(folder, "queue.db")
        self.log = open(os.path.join(folder, "workers.log"), "ab")
        self.alive = {}  # name -> Popen
        self.hurt = set()  # whose fork server was killed: one that was just starting cannot go on
        self.owned = os.environ.get("MUSACODER_OWNER") != "none"
        for _ in range(n):
            self.start()

    def start(self):
        self.starts += 1
        name = f"w{self.starts}"
        self.alive[name] = subprocess.Popen(
            [EXE, "eval", "--worker", "--backend", self.backend, "--no-cache", "--jobs", str(self.jobs),
             "--queue", self.queue, "--name", name], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
            process_group=0)

    def kill(self, name):
        self.alive[name].send_signal(signal.SIGKILL)
        self.alive.pop(name).wait()
        self.start()

    def judges(self):
        """Pids of those that judge: owners; without them the workers."""
        return owners() if self.owned else [w.pid for w in self.alive.values()]

    def kill_child(self, comm, rng):
        """A fork server, the Python that all candidates come from, or an executor. Was there one?"""
        judges = set(self.judges())
        found = sorted(p for p, x in processes().items() if x[0] in judges and x[2].startswith(comm))
        for p in rng.sample(found, min(1, len(found))):
            with contextlib.suppress(ProcessLookupError):
                os.kill(p, signal.SIGKILL)
        self.hurt |= {name for name, w in self.alive.items() if not self.owned and found}
        return bool(found)

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
        late, until = [], time.monotonic() + 20
        for name, w in self.alive.items():
            try:
                w.wait(max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                late.append(name)
                w.kill()
                w.wait()
        self.log.close()
        return late


# ---- the experiment ----

def make_jobs(n_hostile, n_honest, backend, seed, quick):
    jobs = []
    for i in range(n_honest):
        name, task, kind, _, text = honest.make(i, quick)
        jobs.append(Job(f"honest {i}", name, task, text, dict(AT_EASE, backend=backend), kind))
    for i in range(n_hostile):
        name, want, text = hostile.make(i, backend, quick)
        run_s, build_s = hostile.limits(name, want, backend)
        options = dict(QUIET, backend=backend, timeout=run_s, **{"build-timeout": build_s})
        jobs.append(Job(f"hostile {i}", "relu", hostile.RELU_TASK, text, options, name, want))
    return mixed(jobs, random.Random(seed))


def mixed(jobs, rng):
    """In any order; but nobody shall wait at the end for who started late and lasts until its limit."""
    rng.shuffle(jobs)
    tail = len(jobs) - len(jobs) // TAIL
    quick = [i for i in range(tail) if jobs[i].want is None]
    for i in range(tail, len(jobs)):
        if quick and jobs[i].want is not None and hostile.is_long(jobs[i].kind, jobs[i].want):
            k = quick.pop(rng.randrange(len(quick)))
            jobs[i], jobs[k] = jobs[k], jobs[i]
    return jobs


def open_queue(folder):
    """As soon as a worker has made it."""
    path = os.path.join(folder, "queue.db")
    for _ in range(4000):
        if os.path.exists(path):
            try:
                with sqlite3.connect(path) as db:
                    if db.execute("SELECT name FROM sqlite_master WHERE name = 'job'").fetchone():
                        return Queue(path)
            except sqlite3.OperationalError:
                pass
        time.sleep(0.1)
    raise RuntimeError("no worker has opened the queue: " + log_end(folder))


def log_end(folder, n=2000):
    """What workers said last."""
    with open(os.path.join(folder, "workers.log"), errors="replace") as f:
        return f.read()[-n:]


def solo(kinds, backend, folder, go_on):
    """{kind: verdict}: every kind of honest program by a worker of its own that runs one at a time, nobody else there.
    go_on(): is there time left? Called now and then."""
    jobs, categories = [], {}
    for k in range(len(honest.KINDS)):
        name, task, kind, category, text = honest.make(k)
        if kind in kinds:
            jobs.append(Job(kind, name, task, text, dict(AT_EASE, backend=backend), kind))
            categories[kind] = category
    workers = Workers(folder, 1, 1, backend)
    try:
        queue = open_queue(folder)
        for job in jobs:
            queue.put(job)
        while len(queue.ended()) < len(jobs):
            if any(w.poll() is not None for w in workers.alive.values()):
                raise RuntimeError("the worker for the solo verdicts ended: " + log_end(folder))
            if not go_on():
                raise RuntimeError(f"{len(queue.ended())} of {len(jobs)} solo verdicts, and no time left")
            time.sleep(0.1)
        for job in jobs:
            queue.take(job)
    finally:
        workers.stop()
    for job in jobs:
        if job.verdict["category"] != categories[job.kind]:
            raise RuntimeError(f"'{job.kind}' alone gets {job.verdict['category']}: {job.verdict['feedback']}")
    return {job.kind: job.verdict for job in jobs}


def essence(v):
    """What must not depend on the neighbours."""
    numbers = {k: x for k, x in (v.get("correctness") or {}).items() if not k.endswith("_ms")}
    return {"status": v["status"], "category": v["category"], "correctness": numbers}


class Experiment:
    def __init__(self, a):
        self.a, self.problems, self.infra = a, [], collections.Counter()
        self.random = random.Random(a.seed + 1)
        self.killed, self.kills, self.told_next = collections.Counter(), 0, False
        self.phases, self.seen = {}, set()  # seconds of each part; pids of all processes below us
        self.cut = None                     # how many were not judged to the end, for lack of time
        self.stopped, self.looked = False, 0
        self.alone = {}                     # verdicts of the honest kinds, nobody else there
        self.out = open(a.out, "w") if a.out else None

    def say(self, text):
        if self.a.verbose:
            print(f"{time.monotonic() - self.start:7.1f} s  {text}", flush=True)

    def progress(self, done, n):
        """A line now and then; with --verbose every verdict has one."""
        now = time.monotonic()
        if not self.a.verbose and now - self.told >= PROGRESS_S:
            left = f", about {(now - self.mix_from) / done * (n - done):.0f} s left" if done else ""
            print(f"{done} of {n} verdicts, {len(self.problems)} problems, {sum(self.infra.values())} put again, "
                  f"{sum(self.killed.values())} kills, {now - self.start:.0f} s{left}", file=sys.stderr, flush=True)
            self.told = now

    def phase(self, name, since):
        self.phases[name] = self.phases.get(name, 0) + time.monotonic() - since

    def fail(self, text):
        self.problems.append(text)
        self.say("WRONG: " + text)
        if not self.a.verbose:
            print("WRONG " + text, file=sys.stderr, flush=True)

    def prepare(self):
        self.folder = tempfile.mkdtemp(prefix="mc-faults-")
        for name in ("cache", "tmp", "solo", "run"):
            os.mkdir(os.path.join(self.folder, name), 0o700)
        os.environ["MUSACODER_OWNER"] = self.a.owner
        os.environ["MUSACODER_RUN_DIR"] = os.path.join(self.folder, "run")
        if not (self.a.quick and "MUSACODER_CACHE_DIR" in os.environ):  # else the headers are compiled there already
            os.environ["MUSACODER_CACHE_DIR"] = os.path.join(self.folder, "cache")
        os.environ["TMPDIR"] = os.path.join(self.folder, "tmp")
        os.environ.setdefault("MUSACODER_SECRET", "faults")  # the same draws for all, as in one cache folder
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # orphans come to us: nothing can hide
        self.machine = machine_memory()
        self.memory = device_memory() if self.a.backend == "cuda" else None
        if self.a.backend == "cuda" and self.memory is None:
            self.fail("nvidia-smi does not say how much of the device's memory is in use")

    def kill_worker(self, workers, queue):
        name = self.random.choice(sorted(workers.alive))
        self.told_next = not self.told_next
        told = self.a.quick or self.told_next
        self.say(f"kills worker {name}" + ("" if told else ", and tells nobody"))
        workers.kill(name)
        if told:  # as the service does (queue_release_worker); else the leases expire
            queue.release(name)
        return True

    def kill_owner(self):
        found = owners()
        for pid in found[:1]:
            os.kill(pid, signal.SIGKILL)
        return bool(found)

    def kill_someone(self, workers, queue):
        """Each kind in its turn."""
        kinds = ["fork server", "worker"] + (["owner", "executor"] if workers.owned else [])
        what = kinds[self.kills % len(kinds)]
        self.kills += 1
        if what == "worker":
            done = self.kill_worker(workers, queue)
        elif what == "owner":
            done = self.kill_owner()
        else:
            done = workers.kill_child("mcexec" if what == "executor" else "python", self.random)
        self.say(f"kills a {what}" if done else f"there is no {what} to kill now")
        self.killed[what] += done

    def keep(self, job):
        """One line of --out for each verdict, as soon as it is there: a run that is cut short keeps what it has."""
        if not self.out:
            return
        v = job.verdict
        row = {"at": round(time.monotonic() - self.start, 1), "key": job.key, "kind": job.kind, "want": job.want,
               "got": v["category"], "seconds": round(job.seconds, 2), "leases": job.attempts, "again": job.again}
        row.update((k, v.get(k)) for k in ("stage_ms", "waiting_ms", "feedback"))
        self.out.write(json.dumps(row) + "\n")
        self.out.flush()

    def collect(self, open_jobs, queue):
        """Takes what has ended; returns what is still open."""
        ended, still = queue.ended(), []
        for job in open_jobs:
            if job.key in ended:
                queue.take(job)
                self.keep(job)
            if job.key not in ended:
                still.append(job)
            elif job.verdict["status"] == "infra" and job.again < MAX_INFRA[self.a.backend]:
                self.infra[job.row] += 1
                self.say(f"{job.key} ({job.kind}) again: {job.verdict.get('feedback')}")
                queue.put_again(job)
                still.append(job)
            else:
                self.say(f"{job.key} ({job.kind}): {job.verdict['category']} after {job.seconds:.1f} s")
                self.check_verdict(job)
        return still

    def until(self):
        """When the work must end so that there is time for what is looked at afterwards."""
        limit = self.start + self.a.limit
        return min(limit, self.start + self.a.seconds - END_S) if self.a.seconds else limit

    def go_on(self):
        """Is there time left? Writes down, now and then, which processes are ours."""
        now = time.monotonic()
        if now - self.looked > 0.5:
            self.looked = now
            self.seen |= set(below(os.getpid()))
        return now < self.until() and not self.stopped

    def mix(self, jobs, workers, queue):
        """Until every job has ended, or the time is over. The kills are spread over the work, not over the time."""
        open_jobs, kills_left = list(jobs), self.a.kills
        next_kill = max(1, len(jobs) // (4 * (self.a.kills + 1)))
        while open_jobs and self.go_on():
            open_jobs = self.collect(open_jobs, queue)
            done = len(jobs) - len(open_jobs)
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
        if open_jobs and (self.a.seconds or self.stopped):
            self.cut = len(open_jobs)
        for job in open_jobs:
            text = f"{job.key} ({job.kind}): {queue.where(job)}"
            if self.cut is None:
                self.fail(f"no verdict for {text}")
            elif not text.endswith(": waits"):
                print(f"not judged: {text}", file=sys.stderr, flush=True)

    def check_verdict(self, job):
        v, text = job.verdict, f"{job.key} ({job.kind})"
        if job.want is not None and v["category"] not in job.want:
            self.fail(f"{text}: {v['category']} instead of {job.want}: {v.get('feedback', '')[:300]}")
        if job.want is None and self.alone and essence(v) != essence(self.alone[job.kind]):
            self.fail(f"{text}: {essence(v)}, alone {essence(self.alone[job.kind])}: {v.get('feedback', '')[:300]}")

    def check_queue(self, queue, jobs):
        n = queue.db.execute("SELECT count(*) FROM job").fetchone()[0]
        if n != len(jobs):
            self.fail(f"{n} jobs in the queue, {len(jobs)} were put")
        for job, times in queue.ended_more_than_once():
            self.fail(f"job {job} ended {times} times, or changed after its end")

    def check_workers(self, workers):
        """While they still run: what has ended must be gone, and descriptors must not pile up."""
        zombies = None
        for _ in patience():
            reap_orphans(workers)
            pids = {w.pid for w in workers.alive.values()}
            now = {p: x for p, x in below(os.getpid()).items() if x[1] == "Z" and p not in pids}
            zombies = now if zombies is None else {p: x for p, x in zombies.items() if p in now}  # still the same
            if not zombies:
                break
        else:
            self.fail(f"zombies: {zombies}")
        self.check_idle(workers)
        most = 120 + 20 * self.a.jobs * (self.a.workers if workers.owned else 1)
        for pid in {w.pid for w in workers.alive.values()} | set(workers.judges()):
            if descriptors(pid) > most:
                self.fail(f"process {pid} holds {descriptors(pid)} descriptors")

    def check_idle(self, workers):
        """The device belongs to processes that live, and who judges has given back what candidates needed there."""
        pids = {pid: f"process {pid}" for pid in workers.judges()}
        if self.memory is None or not set(device_processes()) & set(pids):
            return  # no device, or pids that are not ours to read
        for _ in patience():
            held = device_processes()
            ghosts = {p: mib for p, mib in held.items() if p in self.seen and p not in below(os.getpid())}
            large = {name: held[p] for p, name in pids.items() if held.get(p, 0) > IDLE_MIB}
            if not ghosts and not large:
                break
        else:
            self.fail(f"device memory, MiB: of processes that have ended {ghosts}, of idle judges {large}")
        print("device memory of idle judges, MiB:", {name: held.get(p) for p, name in pids.items()}, "of",
              sum(held.values()), file=sys.stderr, flush=True)

    def check_left_over(self):
        subprocess.run([EXE, "owner", "--stop"], capture_output=True)
        for _ in patience():
            reap()
            left = below(os.getpid())
            if not left:
                break
        else:
            self.fail(f"processes left behind: {left}")
            for pid in left:
                os.kill(pid, signal.SIGKILL)
        subprocess.run([EXE, "doctor"], capture_output=True)  # any later start sweeps what the killed could not
        for _ in patience(10):
            left = {g for g in groups() - self.groups if maker(g) in self.seen}  # those of others are not ours to judge
            if not left:
                break
        else:
            self.fail(f"control groups left behind: {sorted(left)}")
        left = os.listdir(os.path.join(self.folder, "tmp"))
        if left:
            self.fail(f"temporary files left behind: {left}")
        left = glob.glob(os.path.join(self.folder, "cache", "**", "*.work"), recursive=True)
        if left:
            self.fail(f"unfinished builds left behind: {left}")

    def check_device(self):
        """All of it is given back, by whoever had it; the driver needs a moment for that."""
        if self.memory is None or self.a.shared_card:
            return
        now = None
        for _ in patience():
            now = device_memory()
            if now is not None and now - self.memory <= DEVICE_SLACK_MIB:
                break
        else:
            self.fail(f"device memory: {self.memory} MiB in use before, {now} MiB after; processes there: "
                      f"{device_processes() or 'none'}")
        self.memory_after = now

    def judge_alone(self, jobs):
        since = time.monotonic()
        self.alone = solo({j.kind for j in jobs if j.want is None}, self.a.backend, os.path.join(self.folder, "solo"),
                          self.go_on)
        self.phase("solo", since)

    def run(self):
        self.start = self.told = time.monotonic()
        self.memory_after = None
        self.groups = groups()
        self.prepare()
        jobs = make_jobs(self.a.hostile, self.a.honest, self.a.backend, self.a.seed, self.a.quick)
        workers = Workers(self.folder, self.a.workers, self.a.jobs, self.a.backend)  # they wait for work
        try:
            if self.a.backend == "cuda":  # then every verdict is looked at when it comes: the time there is short
                self.judge_alone(jobs)
            queue = open_queue(self.folder)
            self.mix_from = self.told = time.monotonic()
            for job in jobs + jobs[:10]:  # some twice: that must change nothing
                queue.put(job)
            self.mix(jobs, workers, queue)
            self.phase("mix", self.mix_from)
            since = time.monotonic()
            self.check_queue(queue, jobs)
            if not self.cut:
                self.check_workers(workers)
        finally:
            for name in workers.stop():
                self.fail(f"worker {name} did not stop when asked")
        self.phase("end", since)
        if not self.alone and not self.cut:  # what they build is built by now
            self.judge_alone(jobs)
            for job in jobs:
                if job.want is None and job.verdict:
                    self.check_verdict(job)
        since = time.monotonic()
        self.check_left_over()
        self.check_device()
        self.phase("end", since)
        self.report(jobs, queue)
        if not self.a.keep:
            shutil.rmtree(self.folder, ignore_errors=True)
        if self.out:
            self.out.close()
        return self.problems

    def table(self, jobs):
        """A row for each kind, the slowest first: what was wanted, what came, and how long it took."""
        rows = collections.defaultdict(list)
        for job in jobs:
            rows[job.row].append(job)
        print(f"{'':45} {'n':>3} {'median':>7} {'max s':>6}  got (wanted)")
        key = {kind: max((j.seconds or 0 for j in row), default=0) for kind, row in rows.items()}
        for kind in sorted(rows, key=key.get, reverse=True):
            row = rows[kind]
            ended = sorted(j.seconds for j in row if j.verdict and j.seconds is not None)
            got = collections.Counter(j.verdict["category"] or "passed" if j.verdict else "not judged" for j in row)
            want = row[0].want or (self.alone[row[0].kind]["category"] if self.alone else "not compared",)
            notes = [f"{n} {c}" for c, n in sorted(got.items())]
            again, leases = self.infra.get(kind, 0), sum((j.attempts or 1) > 1 for j in row)
            notes += [f"{again} put again"] * bool(again) + [f"{leases} leased again"] * bool(leases)
            middle, most = (ended[len(ended) // 2], ended[-1]) if ended else (0, 0)
            print(f"{kind:45} {len(row):3} {middle:7.1f} {most:6.1f}  {', '.join(notes)} "
                  f"({'|'.join(w or 'passed' for w in want)})")

    def report(self, jobs, queue):
        if self.a.table:
            self.table(jobs)
            print(f"machine's memory, MiB: {self.machine} before, {machine_memory()} after")
            if self.infra:
                print(f"put again after infra: {dict(self.infra)}")
        if self.problems or self.cut:
            print("workers said last:\n" + log_end(self.folder))
        for text in self.problems:
            print(f"WRONG {text}")
        if self.memory_after is not None:
            print(f"device memory in use: {self.memory} MiB before, {self.memory_after} MiB after")
        if self.cut:
            print(f"not judged to the end: {self.cut} of {len(jobs)}")
        seconds = ", ".join(f"{name} {s:.0f} s" for name, s in self.phases.items())
        print(f"{self.a.backend}: {self.a.hostile} hostile and {self.a.honest} honest candidates, "
              f"{self.a.workers} workers of {self.a.jobs} jobs; {seconds}; killed: {dict(self.killed)}; attempts: "
              f"{queue.attempts()}; put again "
              f"after infra: {sum(self.infra.values())}; problems: {len(self.problems)}", flush=True)


def patience(seconds=LATER_S):
    """Rounds, 0.1 s apart."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        yield
        time.sleep(0.1)


def reap_orphans(workers):
    """As reap(), but leaves the workers to who waits for them. Owners are orphans."""
    known = {w.pid for w in workers.alive.values()}
    for pid, (parent, state, _) in processes().items():
        if parent == os.getpid() and state == "Z" and pid not in known:
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                pass


def options(argv=None):
    a = argparse.ArgumentParser(description="hostile and honest candidates mixed, workers killed: nothing may be lost")
    a.add_argument("--backend", default="sim", choices=["sim", "cuda"])
    a.add_argument("--n", type=int, default=200, help="hostile candidates, and as many honest ones")
    a.add_argument("--hostile", type=int)
    a.add_argument("--honest", type=int)
    a.add_argument("--owner", default="shared", choices=["shared", "none"], help="none: each worker judges itself")
    a.add_argument("--workers", type=int, default=3)
    a.add_argument("--jobs", type=int, default=2, help="of each worker")
    a.add_argument("--kills", type=int, help="default: one for each 40 candidates")
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--limit", type=float, default=3000, help="seconds until what has no verdict counts as lost")
    a.add_argument("--seconds", type=float,
                   help="of the whole run: what is not judged by then is said, and the exit code is 2")
    a.add_argument("--shared-card", action="store_true",
                   help="others use the device too: what is in use there afterwards says nothing")
    a.add_argument("--out", help="file for a line of JSON for each verdict, as they come")
    a.add_argument("--quick", action="store_true", help="one hostile candidate of each family")
    a.add_argument("--table", action="store_true", help="print the verdicts of each kind, and their times")
    a.add_argument("--keep", action="store_true", help="keep the folder with queue, logs and cache")
    a.add_argument("--verbose", action="store_true")
    a = a.parse_args(argv)
    a.hostile = a.n if a.hostile is None else a.hostile
    a.honest = a.n if a.honest is None else a.honest
    a.kills = max(2, (a.hostile + a.honest) // 40) if a.kills is None else a.kills
    return a


def main(argv=None):
    e = Experiment(options(argv))
    for s in (signal.SIGTERM, signal.SIGINT):
        signal.signal(s, lambda *_: setattr(e, "stopped", True))
    return 1 if e.run() else 2 if e.cut else 0


if __name__ == "__main__":
    sys.exit(main())
