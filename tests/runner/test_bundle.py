"""test_bundle.py - the files behind a program's text (src/task/bundle.h) are laid as they were."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "runner"))
import bundle  # noqa: E402

TEXT = "x = 1\n#@file: a.cuh\n#|one %\r\n#|two\n#@file: data.txt\n#%a%0Dimport nothing_at_all % %25 b%0D\n"


class Files(unittest.TestCase):
    def test_lines_are_what_they_were(self):
        self.assertEqual(bundle.split(TEXT), {"a.cuh": "one %\r\ntwo\n",
                                              "data.txt": "a\rimport nothing_at_all % % b\r\n"})

    def test_no_line_leaves_its_comment(self):
        names = {}
        exec(TEXT, names)  # noqa: S102
        self.assertEqual(names["x"], 1)


if __name__ == "__main__":
    unittest.main()
