"""data.py - rows for trainers: of prompts that 'musacoder synth' made, or of a folder of KernelBench-format tasks.

Each row is {"prompt": [messages], "task_code": text, "task_name": name}: what adapters/trl.py reads.
"""

import glob
import json
import os

REQUEST = "Write ModelNew in native CUDA, no torch fallback.\n```python\n{code}\n```"


def prompts(path, limit=None):
    """Rows of a prompts.jsonl ('musacoder synth --out FOLDER')."""
    rows = []
    with open(path, encoding="utf-8") as f:
        for line in f:
            row = json.loads(line)
            info = row["extra_info"]
            rows.append({"prompt": row["prompt"], "task_code": info["task_code"], "task_name": info["name"]})
            if len(rows) == limit:
                break
    if not rows:
        raise ValueError(f"'{path}' holds no prompts")
    return rows


def tasks(folder, limit=None, request=REQUEST):
    """Rows of the tasks (*.py with a class Model) below a folder, such as KernelBench's level1."""
    rows = []
    for path in sorted(glob.glob(os.path.join(glob.escape(folder), "**", "*.py"), recursive=True)):
        with open(path, encoding="utf-8") as f:
            code = f.read()
        if "class Model" in code and "get_inputs" in code:
            rows.append({"prompt": [{"role": "user", "content": request.format(code=code.strip())}],
                         "task_code": code, "task_name": os.path.basename(path)[:-3]})
        if len(rows) == limit:
            break
    if not rows:
        raise ValueError(f"'{folder}' holds no tasks: Python files with 'class Model' and 'get_inputs'")
    return rows
