"""look.py - the pages in headless Chromium, for eyes and for axe-core: 400, 900 and 1,600 pixels, light, dark, printed.

    look.py OUT PAGE...      PAGE: a file, SITE//PAGE for one below a site's folder, or http://.. of a running server

Pictures go to OUT/NAME-WIDTH-SCHEME.png and OUT/NAME.pdf. axe-core looks at each page at 400 and 1,600 pixels in both
schemes; its findings are printed, and those that are serious or critical make the exit code 1. Needs chromium; axe-core
comes from the package axe-core-python, whose axe.min.js AXE names. 'make look' does all of it (look.sh)."""

import http.client
import http.server
import html
import json
import mimetypes
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import urllib.parse

MOST_S, AFTER_MS = 120, 2000  # axe-core may take so long; it begins so late, for pages that fetch what they show
WIDTHS = (400, 900, 1600)
SCHEMES = {"light": [], "dark": ["--blink-settings=preferredColorScheme=0"]}
RUN = """<script>%s</script><script>setTimeout(() => axe.run().then(r => {
  const p = document.createElement("pre"); p.id = "axe-found"; p.hidden = true;
  p.textContent = JSON.stringify(r.violations.map(v => [v.impact, v.id, v.nodes.length, v.nodes[0].target.join(" "),
                                                        v.nodes[0].failureSummary.slice(0, 300)]));
  document.body.append(p); fetch('/look-done'); }), %d)</script>
<input type=image alt=page src=/look-slow style="width:1px">"""


class Pages(http.server.BaseHTTPRequestHandler):
    """Files below a folder, or what a server behind says; with axe-core in a page that is asked for with ?axe."""

    def do_GET(self):
        path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)
        asked = self.path.removesuffix("?axe")
        if path in ("/look-slow", "/look-done"):  # the page counts as loaded once axe-core has ended
            self.server.ended.wait(MOST_S) if path == "/look-slow" else self.server.ended.set()
            self.send_response(204)
            return self.end_headers()
        behind = self.server.behind
        kind, parts = self.of_server(behind, asked) if isinstance(behind, str) and behind.startswith("http") else \
            self.of_file(os.path.join(behind, path.lstrip("/")))
        self.send_response(200 if kind else 404)
        self.send_header("Content-Type", kind or "text/plain")
        self.end_headers()
        try:
            for data in parts:
                if kind and "html" in kind and self.path.endswith("?axe"):
                    at = data.rfind(b"</body>") if b"</body>" in data else len(data)
                    data = data[:at] + self.server.axe + data[at:]
                self.wfile.write(data)
        except (BrokenPipeError, ConnectionResetError):
            pass

    @staticmethod
    def of_file(path):
        path = os.path.join(path, "index.html") if os.path.isdir(path) else path
        if not os.path.isfile(path):
            return None, []
        with open(path, "rb") as f:
            return mimetypes.guess_type(path)[0] or "text/plain", [f.read()]

    @staticmethod
    def of_server(url, path):
        c = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc)
        c.request("GET", path)
        r = c.getresponse()
        kind = r.getheader("Content-Type")
        return kind, [r.read()] if "html" in kind else iter(lambda: r.read1(65536), b"")

    def log_message(self, *a):
        pass


def chromium(*args):
    with tempfile.TemporaryDirectory() as profile:
        exe = shutil.which("chromium") or "google-chrome"
        return subprocess.run([exe, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                               "--user-data-dir=" + profile, *args], capture_output=True, text=True, timeout=300,
                              check=False).stdout


def look(url, name, out, ended):
    """The pictures of a page, and what axe-core says: [(width, scheme, finding)]."""
    found = []
    for scheme, flags in SCHEMES.items():
        for width in WIDTHS:
            chromium(*flags, f"--window-size={width},1600", "--virtual-time-budget=3000",
                     f"--screenshot={out}/{name}-{width}-{scheme}.png", url)
        for width in (WIDTHS[0], WIDTHS[-1]):
            for _ in range(3):  # a browser that is ended by a slow machine has said nothing of the page
                ended.clear()
                dom = chromium(*flags, f"--window-size={width},1600", "--dump-dom", url + "?axe")
                m = re.search(r'id="axe-found"[^>]*>(.*?)</pre>', dom, re.S)
                if m:
                    break
            if not m:
                found.append((width, scheme, ["critical", "axe-core did not run", 0, url, ""]))
                continue
            found += [(width, scheme, v) for v in json.loads(html.unescape(m[1]))]
    chromium("--virtual-time-budget=3000", "--no-pdf-header-footer", f"--print-to-pdf={out}/{name}.pdf", url)
    return found


def main(out, pages):
    os.makedirs(out, exist_ok=True)
    with open(os.environ["AXE"], encoding="utf-8") as f:
        axe = RUN % (f.read().replace("</script>", "<\\/script>"), AFTER_MS)
    bad = 0
    for page in pages:
        parts = urllib.parse.urlsplit(page)
        site, _, below = page.partition("//") if not parts.scheme and "//" in page else (os.path.dirname(page), "", "")
        path = parts.path or "/" if parts.scheme else "/" + (below or os.path.basename(page))
        behind = f"{parts.scheme}://{parts.netloc}" if parts.scheme else os.path.abspath(site or ".")
        name = re.sub(r"\W+", "-", path if parts.scheme or below else page).strip("-") or "home"
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
        server.daemon_threads, server.behind, server.axe, server.ended = True, behind, axe.encode(), threading.Event()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}{path}"
        for width, scheme, (impact, rule, n, where, words) in look(url, name, out, server.ended):
            serious = impact in ("serious", "critical")
            bad += serious
            words = "\n  " + words if serious else ""
            print(f"{name} {width} {scheme}: {impact} {rule} x{n} {where}{words}", flush=True)
        print(f"{name}: looked at", flush=True)
        server.shutdown()
    print(f"{bad} serious findings")
    return 1 if bad else 0


if __name__ == "__main__":
    if len(sys.argv) < 3 or "AXE" not in os.environ:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2:]))
