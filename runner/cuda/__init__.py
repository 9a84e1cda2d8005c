"""A real GPU, as the task's own processes (reference, baseline) use it. No candidate's code comes here.

    preload()            fork server's parent, once: our cpp_extension in place of torch's; CUDA is not touched
    begin(args)          child, after the jail is closed: context, a first launch
    open_area(fd, spec)  the judge's device memory, mapped (runner/area.py)
"""
from .area import open_area  # noqa: F401
from .core import begin, preload  # noqa: F401
