"""client.py - verdicts from a server: judge(items) -> records, in the order of the items.

An item is {"task": {"name", "code"}, "code": PROGRAM} or, for a model's answer, {"task", "response": TEXT}; it may have
"options" (eval's flags), "sidecar" and "priority"; "run" and "turn" (default 1) count it on the server's page. A run's
name may come from the client too, or from $MUSACODER_RUN. A record is a verdict (docs/schema/verdict.json).

The server judges the same content once, so a request may be sent again: connections that break, 429 and 503 are
tried again until patience is over. What has no verdict is a record with status 'infra', which is no reward of 0:
is_scored() is false for it. Its 'at_fault' is 'judge' (nobody answered in time: another try may help) or 'request'
(the item's task, options or candidate cannot be used: asking again is hopeless, code MC801); the items beside it have
their verdicts. JudgeError is for what no item can be judged with: a token that is missing or unknown (401, 403), an
address that is no judge's (404).
"""

import asyncio
import concurrent.futures
import http.client
import json
import logging
import os
import random
import ssl
import threading
import time
import urllib.parse

CANDIDATES_MAX = 256  # of one request
AGAIN = (429, 502, 503, 504)  # statuses that mean: later
WAIT_FIRST_S, WAIT_MAX_S = 0.25, 10.0
WORD_S = 30.0  # a batch without verdicts is spoken of after so long, once
QUIET_S, SAY_S = 5.0, 60.0  # a judge that does not answer is spoken of after the first, then once in the second
log = logging.getLogger("musacoder")


class JudgeError(Exception):
    """A request that will not succeed however often it is sent."""

    def __init__(self, status, message, code=None):
        super().__init__(f"the judge refused ({status}): {message}")
        self.status, self.code, self.said = status, code, message


class _Later(Exception):
    """No answer this time. wait_s: what the server asked for, or None."""

    def __init__(self, why, wait_s=None):
        super().__init__(why)
        self.wait_s = wait_s


def is_scored(record):
    """Does this record say something about the program? False for 'infra' and 'unsupported'."""
    return not {record.get("status"), record.get("category")} & {"infra", "unsupported"}


def _not_judged(item, why, code="MC803", at_fault="judge"):
    """A record of what was never judged, with the keys of the judge's own. item may be anything."""
    asked = item if isinstance(item, dict) else {}
    task, options = ({} if not isinstance(asked.get(k), dict) else asked[k] for k in ("task", "options"))
    return {"schema": "musacoder.verdict/2", "task": str(task.get("name", "task")), "task_sha256": "", "candidate": "",
            "candidate_sha256": "", "backend": str(options.get("backend", "")),
            "protocol": str(options.get("protocol", "")), "status": "infra", "category": "infra", "code": code,
            "place": None, "stage": "client", "reward": None, "feedback": why, "at_fault": at_fault,
            "reasons": [{"category": "infra", "stage": "client", "message": why}]}


def _refused(item, why):
    return _not_judged(item, why, "MC801", "request")


def _lack(item):
    """What an item lacks, so that it cannot be sent; None: nothing."""
    task = item.get("task") if isinstance(item, dict) else None
    if not isinstance(task, dict) or not isinstance(task.get("code"), str):
        return 'an item needs "task": {"name": ..., "code": the text of a KernelBench-format file}'
    files = item.get("files")
    if files is not None and not (isinstance(files, dict) and all(isinstance(x, str) for x in files.values())):
        return 'an item\'s "files" are {name: text}'
    if files is None and not isinstance(item.get("code", item.get("response")), str):
        return 'an item needs "code" (a program), "files" or "response" (a model\'s answer)'
    try:
        _what_is_shared(item)
    except (TypeError, ValueError) as e:
        return f"an item is what JSON can hold: {e}"
    return None


def _clean(text):
    """A model may write anything: NUL and half surrogate pairs, which JSON parsers refuse, become replacement marks."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def _candidate(item):
    if item.get("files") is not None:
        return {"files": {name: _clean(text) for name, text in item["files"].items()}}
    key = "code" if "code" in item else "response"
    return {key: _clean(item[key])}


def _what_is_shared(item):
    """Items of one request have these in common."""
    more = ("options", "sidecar", "priority", "run", "turn", "group", "group_size")
    return json.dumps([item["task"], *map(item.get, more)], sort_keys=True)


def _batches(items, size):
    """Lists of indices; each becomes a request."""
    by = {}
    for i, item in enumerate(items):
        by.setdefault(_what_is_shared(item), []).append(i)
    return [all_of[k:k + size] for all_of in by.values() for k in range(0, len(all_of), size)]


class Client:
    """A server. Thread-safe: every request has a connection of its own.

    url, token: default $MUSACODER_URL (else http://127.0.0.1:8642) and $MUSACODER_TOKEN. patience_s: how long an item
    may take in all, waiting and refusals included. parallel: requests at once. batch: candidates in one request.
    run: of items that name none.
    """

    def __init__(self, url=None, token=None, patience_s=3600.0, parallel=16, batch=16, run=None):
        self.run = run or os.environ.get("MUSACODER_RUN")
        self.url = urllib.parse.urlsplit(url or os.environ.get("MUSACODER_URL") or "http://127.0.0.1:8642")
        if self.url.scheme not in ("http", "https") or not self.url.hostname:
            raise ValueError(f"{url!r} is not a server's address; say http://HOST:PORT")
        self.token = token or os.environ.get("MUSACODER_TOKEN")
        self.patience_s, self.parallel = patience_s, parallel
        self.batch = max(1, min(batch, CANDIDATES_MAX))

    def _connect(self, timeout_s):
        if self.url.scheme == "https":
            return http.client.HTTPSConnection(self.url.hostname, self.url.port, timeout=timeout_s,
                                               context=ssl.create_default_context())
        return http.client.HTTPConnection(self.url.hostname, self.url.port, timeout=timeout_s)

    def _once(self, method, path, body, timeout_s):
        """(status, parsed answer); raises _Later or JudgeError."""
        headers = {"Content-Type": "application/json"}
        if self.token:
            headers["Authorization"] = "Bearer " + self.token
        c = self._connect(timeout_s)
        try:
            try:
                c.request(method, self.url.path.rstrip("/") + path, body, headers)
            except (BrokenPipeError, ConnectionResetError):
                pass  # a server that wants no more of a body has said why
            r = c.getresponse()
            text, again = r.read(), r.getheader("Retry-After")
        except (OSError, http.client.HTTPException) as e:
            raise _Later(f"{type(e).__name__}: {e}") from e
        finally:
            c.close()
        if r.status in AGAIN:
            raise _Later(f"status {r.status}", float(again) if again and again.isdigit() else None)
        try:
            v = json.loads(text)
        except ValueError as e:
            raise _Later(f"an answer that is no JSON (status {r.status})") from e
        if r.status >= 500:
            raise _Later(f"status {r.status}")
        if r.status >= 400:
            said = v.get("error", {})
            raise JudgeError(r.status, said.get("message", text.decode("utf-8", "replace")[:200]), said.get("code"))
        return r.status, v

    def call(self, method, path, value=None, until=None):
        """One request, sent again until it is answered; raises JudgeError, or TimeoutError when patience is over."""
        body = None if value is None else json.dumps(value)
        until = until or time.monotonic() + self.patience_s
        wait_s, say_at = WAIT_FIRST_S, time.monotonic() + QUIET_S
        while True:
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError("no answer in time")
            try:
                return self._once(method, path, body, left)
            except _Later as e:
                pause = max(e.wait_s or 0, wait_s) * random.uniform(0.5, 1.0)
                if time.monotonic() + pause > until:
                    raise TimeoutError(f"no answer in time; the last try: {e}") from e
                if time.monotonic() > say_at:
                    say_at = time.monotonic() + SAY_S
                    log.warning("no answer from the judge at %s (%s); it is asked again for %.0f s",
                                self.url.geturl(), e, until - time.monotonic())
                time.sleep(pause)
                wait_s = min(2 * wait_s, WAIT_MAX_S)

    def _request(self, items):
        first = items[0]
        asked = {"task": first["task"], "candidates": [_candidate(i) for i in items]}
        asked.update({k: first[k] for k in ("options", "sidecar", "priority", "group", "group_size", "run", "turn")
                      if first.get(k)})
        if self.run:
            asked.setdefault("run", self.run)
        if "run" not in asked:
            asked.pop("turn", None)
        return asked

    def _still_waiting(self, items):
        backend = (items[0].get("options") or {}).get("backend", "its default")
        log.warning("%d candidates wait since %.0f s at %s (backend: %s); '%s/readyz' says whether a worker serves it. "
                    "After patience_s=%.0f s they are infra.", len(items), WORD_S, self.url.geturl(), backend,
                    self.url.geturl().rstrip("/"), self.patience_s)

    def _judge_batch(self, items):
        word = threading.Timer(WORD_S, self._still_waiting, [items])
        word.daemon = True
        word.start()
        try:
            return self._judge_batch_now(items)
        finally:
            word.cancel()

    def _judge_batch_now(self, items):
        until, asked = time.monotonic() + self.patience_s, self._request(items)
        jobs = []
        try:
            while not jobs or any(j["state"] in ("waiting", "running") for j in jobs):
                answer = self.call("POST", "/v1/eval", asked, until)[1]
                jobs = answer["jobs"]
                if answer.get("warning"):
                    log.warning("%s", answer["warning"])
        except JudgeError as e:
            return self._refused_batch(items, e)
        except TimeoutError as e:
            jobs = jobs or [{}] * len(items)
            return [j.get("verdict") or _not_judged(i, str(e)) for i, j in zip(items, jobs)]
        return [j.get("verdict") or _not_judged(i, j.get("error", j["state"])) for i, j in zip(items, jobs)]

    def _refused_batch(self, items, e):
        """A request that was refused: its items share task and options; one candidate costs no other its verdict."""
        if e.status not in (400, 413):
            raise e
        if len(items) > 1 and (e.status == 413 or str(e.said).startswith("candidate ")):
            return [r for i in items for r in self._judge_batch_now([i])]
        return [_refused(i, str(e)) for i in items]

    def judge(self, items, on_progress=None):
        """Records of the items, in their order. on_progress(done, n) is called as they come."""
        items = list(items)
        lacks = [_lack(i) for i in items]
        records = [why and _refused(i, why) for i, why in zip(items, lacks)]
        done = sum(map(bool, lacks))
        fit = [i for i, why in enumerate(lacks) if not why]
        with concurrent.futures.ThreadPoolExecutor(self.parallel) as pool:
            batches = [[fit[k] for k in b] for b in _batches([items[i] for i in fit], self.batch)]
            running = {pool.submit(self._judge_batch, [items[i] for i in b]): b for b in batches}
            for f in concurrent.futures.as_completed(running):
                for i, record in zip(running[f], f.result()):
                    records[i] = record
                done += len(running[f])
                if on_progress:
                    on_progress(done, len(items))
        hopeless = [r for r in records if r.get("at_fault") == "request"]
        if hopeless:
            log.warning("%d of %d item%s cannot be judged as asked (at_fault: request); the first: %s",
                        len(hopeless), len(items), "" if len(items) == 1 else "s", hopeless[0]["feedback"])
        return records

    async def ajudge(self, items):
        """judge() that lets an event loop go on."""
        return await asyncio.to_thread(self.judge, items)

    def retry_draw(self, probability=0.1):
        """Buffered Dynamic Retry: {"prompt_id", "response", "feedback"} of a group that failed entirely, or None."""
        return self.call("POST", "/v1/retry/draw", {"probability": probability})[1]["retry"]


def judge(items, **client):
    """Client(**client).judge(items)"""
    return Client(**client).judge(items)


async def ajudge(items, **client):
    """Client(**client).ajudge(items)"""
    return await Client(**client).ajudge(items)
