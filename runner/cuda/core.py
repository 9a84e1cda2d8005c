"""The context of a child. The driver is first called in the child, after the jail is closed: CUDA does not survive a
fork, and so every thread of CUDA is jailed too.
"""
import os

import native


def preload():
    """Parent of the fork server. The driver is not called."""
    import torch
    from native import extension

    if torch.version.cuda is None:
        raise native.DeviceError(f"PyTorch {torch.__version__} has no CUDA; install a build with CUDA, or set "
                                 f"MUSACODER_PYTHON")
    extension.put_in_place()


def begin(args=None):
    """args: {"tf32": bool or None = torch's defaults; "queues": of the device, 0 = as many as the driver makes}."""
    import torch

    from . import area
    args = args or {}
    if args.get("queues"):
        os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = str(int(args["queues"]))  # read when the context is made
    try:
        torch.cuda.init()
        torch.zeros(64, device="cuda").add_(1).sum().item()
    except Exception as e:
        raise native.DeviceError(f"the GPU does not answer: {(str(e).splitlines() or [''])[0][:300]}") from e
    area.bind()
    set_tf32(args.get("tf32"))


def set_tf32(on):
    """The judge's policy for both sides; None leaves torch's defaults (convolutions may use TF32, products may not)."""
    import torch

    if on is not None:
        torch.backends.cuda.matmul.allow_tf32 = bool(on)
        torch.backends.cudnn.allow_tf32 = bool(on)
