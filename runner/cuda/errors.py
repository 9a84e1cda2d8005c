"""What CUDA's errors mean for the person who wrote the kernel."""

# What the text of torch's exception or of the runtime holds -> (kind, what happened, what to look at)
ROWS = (
    ("illegal memory access", "illegal_address", "illegal memory access on the device: a kernel read or wrote outside of every allocation",
     "check the index against the tensor's size, and that every pointer it gets is device memory"),
    ("misaligned address", "misaligned", "misaligned access on the device: a kernel used an address that its type's width does not divide",
     "float4 and the like need addresses that are multiples of 16 bytes"),
    ("device-side assert", "assertion", "an assert() in a kernel failed", ""),
    ("invalid configuration argument", "launch_error", "a kernel was not launched: its grid or block has a size of 0 or more threads than a block may have",
     "at most 1024 threads a block, grid y and z at most 65535, no size 0"),
    ("too many resources requested", "launch_error", "a kernel was not launched: its blocks need more registers or shared memory than the device has",
     "fewer threads a block, or __launch_bounds__"),
    ("invalid argument", "launch_error", "a kernel was not launched, or a call not made: invalid argument",
     "grid and block sizes must be 1 or more, at most 1024 threads a block, grid y and z at most 65535; dynamic shared memory "
     "above 48 KB needs cudaFuncSetAttribute first; copies need matching sizes and directions"),
    ("invalid device function", "launch_error", "a kernel was not launched: it was not built for this device", ""),
    ("no kernel image", "launch_error", "a kernel was not launched: it was not built for this device", ""),
    ("launch out of resources", "launch_error", "a kernel was not launched: out of resources", ""),
    ("CUDA error: out of memory", "out_of_memory", "the device's memory was used up (CUDA error: out of memory)", ""),
    ("unspecified launch failure", "crash", "a kernel crashed on the device (unspecified launch failure)",
     "often an access through a wild pointer, or a stack that overflows"),
    ("address space", "illegal_address", "a kernel used an address that is not device memory (invalid address space)",
     "check the index against the tensor's size: 32-bit products overflow"),
    ("invalid program counter", "crash", "a kernel jumped to nowhere", ""),
    ("illegal instruction", "crash", "a kernel ran into an illegal instruction", ""),
    ("stack error", "crash", "a kernel overflowed its stack", "no deep recursion, no large arrays in a thread"),
    ("uncorrectable ECC", "device_lost", "the device reported broken memory", ""),
    ("unknown error", "device_lost", "the device stopped answering (unknown error)", ""),
    ("no CUDA-capable device", "device_lost", "the device is gone", ""),
    ("busy or unavailable", "device_lost", "the device cannot be used", ""),
    ("hardware failure", "device_lost", "the device failed", ""),
    ("operation not permitted when stream is capturing", "capture", "an operation that a graph capture does not allow", ""),
)


def first_line(e):
    return (str(e).splitlines() or [""])[0][:300]


def explain(e):
    """-> {"kind","message","name","file","line","count"}, or None for what is no fault of the device."""
    text = str(e)
    if "CUDA error" not in text and type(e).__name__ != "AcceleratorError":
        return None
    first = first_line(e)  # what follows is torch's advice, which speaks of asserts whatever happened
    for words, kind, what, look in ROWS:
        if words in first:
            return {"kind": kind, "message": what + ("; " + look if look else ""), "name": words, "file": None, "line": None,
                    "count": 1}
    return {"kind": "device_error", "message": first_line(e), "name": "", "file": None, "line": None, "count": 1}
