"""site.py - the documentation site: pages of docs/, and reference made from the program itself, built by MkDocs.

    site.py MUSACODER FOLDER            writes FOLDER/src and FOLDER/mkdocs.yml, and checks every link between pages
    mkdocs build -f FOLDER/mkdocs.yml   makes FOLDER/site (make docs)

Links of docs/*.md lead to files of the tree, as a reader of the repository wants; a link to a file that is no page
becomes its name. Standard library only."""

import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")

# The site's pages: place in the menu, file of the site, source in the tree (None: made here).
PAGES = [
    ("Start", "index.md", "docs/site/index.md"),
    ("Tutorials/Check a kernel", "tutorial-kernel.md", "docs/site/tutorial-kernel.md"),
    ("Tutorials/A reward for a trainer", "tutorial-trainer.md", "docs/site/tutorial-trainer.md"),
    ("Tutorials/Train a model", "tutorial-train.md", "docs/site/tutorial-train.md"),
    ("How to/Install", "install.md", "docs/site/install.md"),
    ("How to/More shapes and dtypes: sidecars", "sidecar.md", "docs/sidecar.md"),
    ("How to/Answers and tasks in other forms", "formats.md", "docs/formats.md"),
    ("How to/Find bad tasks: lint", "lint.md", "docs/lint.md"),
    ("How to/Slurm", "howto-slurm.md", "docs/site/howto-slurm.md"),
    ("How to/Add an operator", "howto-operator.md", "docs/site/howto-operator.md"),
    ("How to/Judge for coding agents", "mcp.md", "docs/mcp.md"),
    ("How to/MUSA", "musa.md", "docs/musa.md"),
    ("How to/Questions", "faq.md", "docs/site/faq.md"),
    ("Reference/Codes", "errors.md", "docs/errors.md"),
    ("Reference/Reward", "reward.md", "docs/reward.md"),
    ("Reference/Gallery of verdicts", "gallery.md", "docs/gallery.md"),
    ("Reference/What failures look like", "feedback.md", "docs/feedback.md"),
    ("Reference/HTTP API", "api.md", None),
    ("Reference/Schemas", "schema.md", "docs/site/schema.md"),
    ("How it works/Architecture", "architecture.md", "ARCHITECTURE.md"),
    ("How it works/Threat model", "threat-model.md", "docs/threat-model.md"),
    ("How it works/Results", "results.md", "docs/results.md"),
]


# Where the theme's colours have less contrast than WCAG's 4.5; and text, which is no code, is wrapped.
STYLE = """.language-text pre > code { white-space: pre-wrap; overflow-wrap: anywhere }
.md-tabs__link { opacity: 1 }
[data-md-color-scheme=default] { --md-code-hl-generic-color: #555; --md-code-hl-comment-color: #555;
  --md-code-hl-operator-color: #555; --md-code-hl-punctuation-color: #555 }
[data-md-color-scheme=slate] { --md-code-hl-constant-color: #b3a6f5; --md-code-hl-number-color: #f2948b }
[data-md-color-scheme=slate][data-md-color-primary] { --md-typeset-a-color: #82a9f2 }
"""


def run(exe, *words):
    return subprocess.run([exe, *words], capture_output=True, text=True, check=True).stdout


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def commands(exe):
    return re.findall(r"^  ([a-z][a-z ]*[a-z])  ", run(exe, "help"), re.M)


def type_of(schema):
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#{name.lower()})"
    kind = schema.get("type", "")
    kind = " or ".join(kind) if isinstance(kind, list) else kind
    return kind + (" of " + type_of(schema["items"]) if schema.get("items") else "")


def api_page(api):
    """The HTTP API in words, from openapi.json."""
    out = ["# HTTP API", "", api["info"]["description"], "",
           "`musacoder serve` serves this description itself as `/openapi.json`.", ""]
    for path, methods in api["paths"].items():
        for method, what in methods.items():
            out += [f"## {method.upper()} {path}", "", what.get("summary", "") + ". " + what.get("description", ""), ""]
            rows = [(p["name"], p.get("description", "")) for p in what.get("parameters", []) if "name" in p]
            if rows:
                out += ["| parameter | what it is |", "|---|---|", *(f"| `{n}` | {d} |" for n, d in rows), ""]
            body = what.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
            if body:
                out += [f"Body: {type_of(body)}", ""]
            out += ["| status | meaning |", "|---|---|",
                    *(f"| {code} | {r.get('description', '')} |" for code, r in sorted(what["responses"].items())), ""]
    out += ["# Shapes", ""]
    for name, schema in api["components"]["schemas"].items():
        out += [f"## {name}", "", schema.get("description", ""), ""]
        rows = [f"| `{k}` | {type_of(v)} | {v.get('description', '')} |" for k, v in
                schema.get("properties", {}).items()]
        out += ["| key | type | what it is |", "|---|---|---|", *rows, ""] if rows else []
    return "\n".join(out).replace("\n\n\n", "\n\n")


def schema_rows():
    folder = os.path.join(HERE, "schema")
    rows = ["| schema | of |", "|---|---|"]
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            rows.append(f"| [{name[:-5]}](schema/{name}) | {json.load(f)['title']} |")
    return "\n".join(rows)


def relink(text, page, source, pages):
    """Links of a source, as they lead from its page: to pages, to files that are copied, or nowhere."""
    def link(m):
        words, to = m.groups()
        if re.match(r"[a-z]+:|#", to):
            return m.group(0)
        path, _, mark = to.partition("#")
        at = os.path.normpath(os.path.join(os.path.dirname(source), path))
        found = pages.get(at) or (at[5:] if at.startswith("docs/site/") or at.startswith("docs/schema/") else None)
        if source.startswith("docs/site/") or found is None:
            found = found or (path if path in pages.values() or path.startswith("commands/") else None)
            if found is None:
                inside = os.path.normpath(os.path.join("docs", path))
                found = pages.get(inside) or (path if inside.startswith("docs/schema/") else None)
        if found is None:
            return f"`{words.strip('`')}`" if re.search(r"[/.]", words) else words
        found = found[5:] if found.startswith("site/") else found
        found = os.path.relpath(found, os.path.dirname(page) or ".")
        return f"[{words}]({found}{'#' + mark if mark else ''})"
    parts = re.split(r"(^```.*?^```$)", text, flags=re.M | re.S)
    return "".join(p if p.startswith("```") else LINK.sub(link, p) for p in parts)


def broken(folder):
    """Links between the site's files that lead nowhere."""
    wrong = []
    for at, _, names in os.walk(folder):
        for name in (n for n in names if n.endswith(".md")):
            with open(os.path.join(at, name), encoding="utf-8") as f:
                text = re.sub(r"^```.*?^```$", "", f.read(), flags=re.M | re.S)
            for _, to in LINK.findall(re.sub(r"`[^`\n]*`", "", text)):
                if not re.match(r"[a-z]+:|#", to) and not os.path.exists(os.path.join(at, to.partition("#")[0])):
                    wrong.append(f"{os.path.relpath(os.path.join(at, name), folder)}: {to}")
    return wrong


def main(exe, folder):
    src = os.path.join(folder, "src")
    shutil.rmtree(src, ignore_errors=True)
    internals = sorted(n for n in os.listdir(os.path.join(HERE, "internals")) if n not in ("README.md",))
    rows = PAGES + [(f"How it works/Parts/{n[:-3]}", f"internals/{n}", f"docs/internals/{n}") for n in internals]
    names = commands(exe)
    rows += [(f"Reference/Commands/{n}", f"commands/{n.replace(' ', '-')}.md", None) for n in names]
    pages = {source: page for _, page, source in rows if source}
    made = {f"commands/{n.replace(' ', '-')}.md": run(exe, "man", "--markdown", *n.split()) for n in names}
    made["api.md"] = api_page(json.loads(read("docs/openapi.json")))
    for _, page, source in rows:
        text = relink(read(source), page, source, pages) if source else made[page]
        os.makedirs(os.path.dirname(os.path.join(src, page)), exist_ok=True)
        with open(os.path.join(src, page), "w", encoding="utf-8") as f:
            f.write(text.replace("\nSCHEMAS\n", "\n" + schema_rows() + "\n"))
    shutil.copytree(os.path.join(HERE, "schema"), os.path.join(src, "schema"))
    shutil.copy(os.path.join(HERE, "openapi.json"), src)
    with open(os.path.join(src, "extra.css"), "w", encoding="utf-8") as f:
        f.write(STYLE)
    config = {"hooks": [os.path.abspath(__file__)], "site_name": "musacoder", "docs_dir": "src",
              "site_dir": "site", "use_directory_urls": False,
              "theme": {"name": "material", "font": False, "language": "en",
                        "features": ["navigation.tabs", "navigation.top", "content.code.copy", "search.highlight"],
                        "palette": [{"media": "(prefers-color-scheme: light)", "scheme": "default",
                                     "toggle": {"icon": "material/weather-night", "name": "Dark"}},
                                    {"media": "(prefers-color-scheme: dark)", "scheme": "slate",
                                     "toggle": {"icon": "material/weather-sunny", "name": "Light"}}]},
              "extra_css": ["extra.css"], "plugins": ["search"],
              "markdown_extensions": ["tables", "pymdownx.superfences", "toc", "attr_list",
                                      {"pymdownx.highlight": {"pygments_lang_class": True}}],
              "validation": {"links": {"anchors": "warn"}}, "nav": nested(menu_tree(rows))}
    with open(os.path.join(folder, "mkdocs.yml"), "w", encoding="utf-8") as f:
        json.dump(config, f, indent=1)  # JSON is YAML
    wrong = broken(src)
    print("\n".join(wrong) if wrong else f"{len(rows)} pages")
    return 1 if wrong else 0


def on_post_page(output, **_):
    """MkDocs' hook: the theme's search dialog and its switches get the names that screen readers ask for, and code is
    reached by the keyboard."""
    output = re.sub(r'id="__(drawer|search|toc)"', r'id="__\1" aria-label="\1"', output)
    output = output.replace("<pre><span></span><code>", '<pre><span></span><code tabindex="0">')  # it may scroll
    return output.replace('data-md-component="search" role="dialog"',
                          'data-md-component="search" role="dialog" aria-label="Search"')


def menu_tree(rows):
    """{"Group": {"Title": page, "Group": {..}}} in the order of the rows."""
    tree = {}
    for name, page, _ in rows:
        at = tree
        *groups, title = name.split("/")
        for g in groups:
            at = at.setdefault(g, {})
        at[title] = page
    return tree


def nested(tree):
    return [{k: v if isinstance(v, str) else nested(v)} for k, v in tree.items()]


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
