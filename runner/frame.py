"""frame.py - the Python end of src/proc/frame.h: one JSON header and one blob over a Unix stream socket.

Wire: b"MCF1", u32 header length, u64 blob length (little endian), header, blob. Imports nothing but the standard
library at load time; the tensor helpers import torch when they are called.
"""

import array
import json
import re
import select
import socket
import struct
import time

MAGIC = b"MCF1"
PREFIX = struct.Struct("<4sIQ")
MAX_HEAD = 64 << 20
MAX_BLOB = 4 << 30
MAX_FDS = 64


class FrameError(Exception):
    """The peer broke the protocol, closed in the middle of a frame, or did not answer in time."""


class Closed(FrameError):
    """The peer closed between two frames: the normal end."""


def _wait(sock, deadline, write=False):
    left = None if deadline is None else deadline - time.monotonic()
    if left is not None and left <= 0:
        raise FrameError("the peer did not answer in time")
    r, w, _ = select.select([] if write else [sock], [sock] if write else [], [], left)
    if not r and not w:
        raise FrameError("the peer did not answer in time")


def _read_into(sock, view, deadline, first=False):
    got = 0
    while got < len(view):
        if deadline is not None:
            _wait(sock, deadline)
        try:
            n = sock.recv_into(view[got:])
        except ConnectionResetError:
            n = 0
        if n == 0:
            raise Closed("closed") if first and got == 0 else FrameError("the peer closed in the middle of a frame")
        got += n


def _object(pairs):
    out = dict(pairs)
    if len(out) != len(pairs):
        raise FrameError("a frame's header has a duplicate key")
    return out


def _split(prefix, max_head, max_blob):
    magic, n_head, n_blob = PREFIX.unpack(prefix)
    if magic != MAGIC:
        raise FrameError("the peer does not speak our protocol")
    if n_head > max_head or n_blob > max_blob:
        raise FrameError("a frame is larger than allowed")
    return n_head, n_blob


def _rest(sock, prefix, max_head, max_blob, deadline):
    n_head, n_blob = _split(prefix, max_head, max_blob)
    head, blob = bytearray(n_head), bytearray(n_blob)
    _read_into(sock, memoryview(head), deadline)
    if n_blob:
        _read_into(sock, memoryview(blob), deadline)
    try:
        value = json.loads(head.decode("utf-8"), object_pairs_hook=_object)
    except (ValueError, RecursionError) as e:
        raise FrameError("a frame's header is not JSON") from e
    if not isinstance(value, dict):
        raise FrameError("a frame's header is not an object")
    return value, blob


def recv(sock, max_head=MAX_HEAD, max_blob=MAX_BLOB, timeout=None):
    """-> (header, blob bytearray). Closed at a frame boundary raises Closed; anything else wrong raises FrameError."""
    deadline = None if timeout is None else time.monotonic() + timeout
    prefix = bytearray(PREFIX.size)
    _read_into(sock, memoryview(prefix), deadline, first=True)
    return _rest(sock, prefix, max_head, max_blob, deadline)


def recv_fds(sock, max_fds=MAX_FDS):
    """As recv, for frames that carry file descriptors: -> (header, blob, [fd])."""
    fds = array.array("i")
    try:
        data, anc, _, _ = sock.recvmsg(PREFIX.size, socket.CMSG_SPACE(max_fds * fds.itemsize), socket.MSG_CMSG_CLOEXEC)
    except ConnectionResetError:
        data = b""
    if not data:
        raise Closed("closed")
    for level, kind, payload in anc:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(payload[: len(payload) - len(payload) % fds.itemsize])
    prefix = bytearray(PREFIX.size)
    prefix[: len(data)] = data
    _read_into(sock, memoryview(prefix)[len(data) :], None)
    head, blob = _rest(sock, prefix, MAX_HEAD, MAX_BLOB, None)
    return head, blob, list(fds)


def requests(sock, receive=recv):
    """What receive gives, until the peer closes between two frames."""
    while True:
        try:
            got = receive(sock)
        except Closed:
            return
        yield got


def _bytes(blob):
    return memoryview(blob).cast("B")


NUL = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")


def header(head):
    """Its bytes. A foreign text may hold what JSON's readers in C refuse, NUL and lone surrogates: they become
    U+FFFD."""
    text = json.dumps(head, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    if "\\u0000" in text:
        text = NUL.sub("\\1\ufffd", text)
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace").encode("utf-8")


def send(sock, head, blobs=(), timeout=None):
    """blobs: bytes-like, or a list of bytes-like objects that are sent one after the other as one blob."""
    if isinstance(blobs, (bytes, bytearray, memoryview)):
        blobs = (blobs,)
    parts = [_bytes(b) for b in blobs if len(_bytes(b))]
    text = header(head)
    n_blob = sum(len(p) for p in parts)
    if len(text) > MAX_HEAD or n_blob > MAX_BLOB:
        raise FrameError("a frame to send is too large")
    deadline = None if timeout is None else time.monotonic() + timeout
    for part in [memoryview(PREFIX.pack(MAGIC, len(text), n_blob) + text)] + parts:
        while len(part):
            if deadline is not None:
                _wait(sock, deadline, write=True)
            part = part[sock.send(part) :]
