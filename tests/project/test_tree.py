"""test_tree.py - the shape of the tree: which folder may include which, what may be committed, what every folder
has."""

import os
import re
import subprocess
import sys
import unittest

import layers
import names
import rings
import words

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

COLUMNS = 120
SOURCES = (".c", ".h", ".cc", ".cu", ".cuh", ".inc", ".py", ".sh")


def tracked():
    out = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, check=False)
    if out.returncode != 0:  # an exported tree
        for folder, dirs, files in os.walk(ROOT):
            dirs[:] = [d for d in dirs if not d.startswith((".git", "build", "runs"))]
            for f in files:
                yield os.path.relpath(os.path.join(folder, f), ROOT)
        return
    for name in out.stdout.decode().split("\0"):
        if name and os.path.isfile(os.path.join(ROOT, name)):
            yield name


def text_of(name):
    with open(os.path.join(ROOT, name), "rb") as f:
        data = f.read()
    return None if b"\0" in data[:8192] else data.decode("utf-8", "replace")


class Tree(unittest.TestCase):
    def test_layers_equal_the_includes(self):
        told = layers.declared()
        found = layers.found(list(told))
        self.assertEqual(layers.back(list(told), found), [])
        self.assertEqual({a: sorted(b) for a, b in told.items()}, {a: sorted(b) for a, b in found.items()},
                         "src/LAYERS and the includes differ: python3 tests/project/layers.py --write, if the arrow is "
                         "meant")

    def test_no_name_is_defined_in_two_modules(self):
        """The linker takes whichever it meets first."""
        at = {}
        for name in {name.split("/")[0] for name in layers.declared()}:
            path = os.path.join(ROOT, os.environ.get("B", "build"), "lib", name + ".a")
            out = subprocess.run(["nm", "--defined-only", "-g", path], capture_output=True, text=True,
                                 check=False).stdout
            for line in out.split("\n"):
                if re.match(r"[0-9a-f]+ [TDBRC] \w+$", line):
                    at.setdefault(line.split()[2], set()).add(name)
        self.assertEqual({n: sorted(m) for n, m in at.items() if len(m) > 1}, {})

    def test_no_files_use_each_other_in_a_circle(self):
        graph = rings.edges(os.path.join(ROOT, os.environ.get("B", "build")))
        found = rings.rings(graph)
        self.assertEqual(found, [], "\n".join(rings.words(graph, r) for r in found))

    def test_names_are_found_once(self):
        """A struct tag and a header's base name stand once in src/; a static function carries its file's noun."""
        files = list(names.sources())
        rows = names.functions(files)
        lengths = [len(name) for _, name, _ in rows]
        self.assertGreater(len(rows), 5000, "the parser lost the functions")
        self.assertEqual(names.tags_twice(files) + names.headers_twice(files) + names.short_statics(rows) +
                         names.kernels_twice(files, rows) + names.lent_results(files), [])
        self.assertGreaterEqual(sum(lengths) / len(lengths), 15)

    def test_comments_have_one_style_and_the_glossary_s_words(self):
        """'/* */' alone in src; pages and comments keep to the words of ARCHITECTURE.md."""
        found = []
        for name in tracked():
            if re.match(r"src/.*\.(c|h|cu|cuh)$", name):
                found += words.slashes(name, text_of(name)) + words.strange(name, words.comments(text_of(name)))
            elif re.match(r"(docs/(?!log/)|README|ARCHITECTURE|CONTRIBUTING).*md$", name):
                found += words.strange(name, [text_of(name)])
        self.assertEqual(found, [])

    def test_words_find_what_they_look_for(self):
        text = 'int a; // one\nchar *b = "// none";\n/* A life lays values; the layout is laid out. */\n'
        self.assertEqual(words.slashes("x.c", text), ["x.c: // one"])
        self.assertEqual(words.strange("x.c", words.comments(text)), ["x.c: A life", "x.c: lays"])

    def test_every_source_folder_has_a_readme(self):
        folders = {n.split("/")[1] for n in tracked() if re.match(r"src/\w+/.*\.c$", n)}
        missing = [f for f in sorted(folders) if not os.path.exists(os.path.join(ROOT, "src", f, "README.md"))]
        self.assertEqual(missing, [])

    def test_readmes_name_the_folders_that_are_seen(self):
        """A folder's README says "Depends on `a`, `b`." as src/LAYERS does; the rooms of src/eval count as one
        there."""
        told, seen = layers.declared(), {}
        for name, below in told.items():
            seen.setdefault(name.split("/")[0], []).extend(below)
        order, wrong = list(dict.fromkeys(name.split("/")[0] for name in told)), {}
        for name in order:
            below = {b.split("/")[0] for b in seen[name]} - {name}
            want = "Depends on " + ", ".join(f"`{b}`" for b in order
                                             if b in below) + "." if below else "Depends on nothing"
            if want not in " ".join(text_of(f"src/{name}/README.md").split()):
                wrong[name] = want
        self.assertEqual(wrong, {})

    def test_every_source_opens_with_its_role(self):
        wrong = []
        for name in tracked():
            text = (text_of(name) or "").lstrip()
            if re.match(r"(src|simt|litetorch)/.*\.(c|h|cc|cpp|hpp)$", name) and not text.startswith(("/*", "//")):
                wrong.append(name)
            if re.match(r"runner/.*\.py$", name) and text.strip() and not text.startswith(('"""', "#")):
                wrong.append(name)
        self.assertEqual(wrong, [])

    def test_no_paths_or_hosts_of_one_machine(self):
        private = r"\b(?:10|192\.168|172\.(?:1[6-9]|2\d|3[01]))\.\d+\.\d+(?:\.\d+)?\b"
        # this checkout's own path, wherever it is
        here = [re.escape(ROOT)] if len(ROOT.strip("/").split("/")) > 1 else []
        bad = re.compile("|".join(here + [r"/home/[a-z]", private]))
        wrong = []
        for name in tracked():
            text = text_of(name)
            if name.startswith("tests/project/") or name.endswith((".json", ".jsonl", ".tsv",
                                                                   ".golden")) or text is None:
                continue
            wrong += [f"{name}: {m.group(0)}" for m in bad.finditer(text)]
        self.assertEqual(wrong, [])

    def test_documents_name_files_that_are_there(self):
        """A command that nobody can run proves no figure. Programs of build/ are named by their source."""
        named = re.compile(
            r"(?<![\w./-])((?:lab|tests|docs|src|recipes|deploy|setup|runner|litetorch|simt|python)/[\w./-]*\w|"
                           r"build/(?:lab|tests)/\w[\w/-]*)")
        gone = []
        for name in tracked():
            if not re.match(r"(docs/(?!log/).*|[A-Z]+)\.md$", name) or name == "CHANGELOG.md":
                continue
            for at in set(named.findall(text_of(name))):
                path = re.sub("^build/", "", at)
                first, rest = path.split("/", 1)
                places = [path, path + ".c", path + ".py", path + ".cu", f"{first}/include/{path}",
                          f"{first}/include/{rest}"]
                if "NAME" not in path and path[-1] != "_" and not any(os.path.exists(os.path.join(ROOT, p))
                                                                      for p in places):
                    gone.append(f"{name}: {at}")
        self.assertEqual(sorted(gone), [])

    def test_what_was_wrong_names_the_tests_that_hold_it(self):
        """Each row of the tables of durability.md ends in files of tests that are there."""
        rows = [line for line in text_of("docs/internals/durability.md").splitlines() if line.startswith("| ")]
        wrong = []
        for row in (r for r in rows if not r.startswith("| was ")):
            named = re.findall(r"([\w/]+\.(?:c|py|sh))\b", row.rstrip(" |").rsplit(" | ", 1)[-1])
            if not named or not all(os.path.exists(os.path.join(ROOT, "tests", re.sub("^tests/", "", name)))
                                    for name in named):
                wrong.append(row)
        self.assertGreater(len(rows), 100)
        self.assertEqual(wrong, [])

    def test_results_are_what_their_rows_say(self):
        out = subprocess.run([sys.executable, os.path.join(ROOT, "results/results.py"), "--check"], capture_output=True,
                             text=True, check=False)
        self.assertEqual((out.returncode, out.stdout), (0, ""))

    def test_a_result_without_a_command_is_an_error(self):
        sys.path.insert(0, os.path.join(ROOT, "results"))
        import results
        row = {"question": "q", "value": 1, "command": "c", "commit": "0123abc", "machine": "VM", "date": "2026-01-31"}
        self.assertEqual(results.check_row("x.json", row), [])
        for key in results.NEEDED:
            self.assertTrue(results.check_row("x.json", {k: v for k, v in row.items() if k != key}), key)

    def test_programs_of_the_lab_compile(self):
        """'make all' builds none of them; a header that is not here (OpenBLAS) is no mistake of theirs."""
        broken = []
        for name in sorted(n for n in tracked() if n.startswith("lab/") and n.endswith(".c")):
            argv = ["cc", "-std=c11", "-D_GNU_SOURCE", "-fsyntax-only", "-w", "-Werror=implicit-function-declaration",
                    f"-I{ROOT}/src", os.path.join(ROOT, name)]
            out = subprocess.run(argv, capture_output=True, text=True, check=False)
            if out.returncode and not re.search(r"fatal error: [\w.]+: No such file", out.stderr):
                broken.append((name, out.stderr[:300]))
        self.assertEqual(broken, [])

    def test_nothing_big_or_built_is_tracked(self):
        wrong = []
        for name in tracked():
            if os.path.getsize(os.path.join(ROOT, name)) > 1 << 20 or name.endswith((".o", ".so", ".a", ".pyc")):
                wrong.append(name)
        self.assertEqual(wrong, [])

    def test_lines_are_short(self):
        long = [f"{name}:{i}" for name in tracked() if name.endswith(SOURCES)
                for i, line in enumerate(text_of(name).split("\n"), 1) if len(line) > COLUMNS]
        self.assertEqual(long, [], "lines above 120 columns")


if __name__ == "__main__":
    unittest.main()
