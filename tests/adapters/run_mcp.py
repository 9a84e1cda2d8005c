"""run_mcp.py - the official SDK's client (pip install mcp) lists and calls the tools of 'musacoder mcp' over stdio and
over HTTP."""

import asyncio
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXE = os.environ.get("MUSACODER_EXE", os.path.join(ROOT, os.environ.get("B", "build"), "musacoder"))
EXAMPLE = os.path.join(ROOT, "docs/example")

try:
    from mcp import ClientSession, StdioServerParameters
    from mcp.client import streamable_http
    from mcp.client.stdio import stdio_client
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)


def text_of(name):
    with open(os.path.join(EXAMPLE, name), encoding="utf-8") as f:
        return f.read()


async def check_tools(s, root):
    names = sorted(t.name for t in (await s.list_tools()).tools)
    assert names == ["eval", "explain", "lint", "replay", "translate"], names
    task, kernel, capsule = text_of("task.py"), text_of("kernel.py"), os.path.join(root, "a.capsule")
    right = await s.call_tool("eval", {"task": task, "candidate": kernel, "capsule_path": capsule})
    assert not right.is_error and right.structured_content["status"] == "passed", right
    wrong = await s.call_tool("eval", {"task": task, "candidate": kernel.replace("0.5f", "0.25f")})
    assert not wrong.is_error and wrong.structured_content["status"] == "failed", wrong
    words = await s.call_tool("explain", {"record": wrong.structured_content})
    assert words.content[0].text in wrong.content[0].text, words
    assert not (await s.call_tool("lint", {"task": task, "trials": 1})).is_error
    assert "musaError_t" in (await s.call_tool("translate", {"source": "cudaError_t e;", "to": "musa"})).content[0].text
    assert (await s.call_tool("replay", {"capsule_path": "a.capsule"})).structured_content["right"]
    try:
        failed = (await s.call_tool("eval", {"task": task})).is_error
    except Exception as e:  # the SDK's own type has moved between its versions
        failed = "candidate" in str(e)
    assert failed
    await s.send_ping()


async def over_http(root):
    server = subprocess.Popen([EXE, "mcp", "--root", root, "--port", "0"], stderr=subprocess.PIPE, text=True)
    try:
        url = server.stderr.readline().split(": ", 1)[1].strip()
        client = getattr(streamable_http, "streamable_http_client", None) or streamable_http.streamablehttp_client
        async with client(url) as streams, ClientSession(*streams[:2]) as s:
            await s.initialize()
            await check_tools(s, root)
    finally:
        server.terminate()
        server.wait()
        server.stderr.close()


async def main():
    with tempfile.TemporaryDirectory() as root:
        server = StdioServerParameters(command=EXE, args=["mcp", "--root", root], env=dict(os.environ))
        async with stdio_client(server) as (read, write), ClientSession(read, write) as s:
            start = await s.initialize()
            await check_tools(s, root)
        await over_http(root)
    print(f"ok 5 tools listed and called over stdio and HTTP, protocol {start.protocol_version}")


asyncio.run(main())
