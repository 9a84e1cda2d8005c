"""The command 'musacoder' of a wheel that holds the program, and 'python -m musacoder': runs it with this Python's
PyTorch."""

import importlib.util
import os
import sys

TREE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tree")


def main():
    """Replaces this process by the program. MUSACODER_PYTHON, where it is set, names another Python with PyTorch."""
    program = os.path.join(TREE, "bin", "musacoder")
    if not os.access(program, os.X_OK):
        sys.exit("musacoder: this package holds the client alone; install a wheel of 'make wheel', or the program")
    if "MUSACODER_PYTHON" not in os.environ and importlib.util.find_spec("torch"):
        os.environ["MUSACODER_PYTHON"] = sys.executable
    os.execv(program, ["musacoder", *sys.argv[1:]])


if __name__ == "__main__":
    main()
