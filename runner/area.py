"""area.py - memory that the judge shares with this process: one buffer of src/device, come as a file descriptor.

open_area(fd, spec, device) maps it; spec: {"kind","size","capacity"}. kind "host" is a memfd; "cuda" is device memory,
and runner/cuda/area.py maps that. An area has

    blob            what values.decode reads a tree's tensors from (offsets of the tree count from its start)
    write(at, t, packer) the elements of t in C order at byte 'at'; packer: how t is read (values.Packer)
    settle()        what was written is there for other processes too, and what was to be read has been: before an
    answer,
                    because the judge writes to the area again then
    close()         unmaps; nothing that was decoded from blob may still lie in it (decode copies)

Whoever holds an area can write all of it, also later: the judge copies what it wants to rely on.
"""
import mmap
import os


class HostArea:
    def __init__(self, fd, spec):
        self.size = spec["size"]
        self.map = mmap.mmap(fd, spec["capacity"])
        self.blob = memoryview(self.map)[:self.size]

    def write(self, at, t, packer):
        raw = packer.elements(t)
        self.blob[at:at + len(raw)] = raw

    def settle(self):
        pass

    def close(self):
        self.blob.release()
        self.map.close()


def open_area(fd, spec, device):
    """Takes fd. device: the package whose memory it is, for kinds that are not the host's."""
    try:
        return HostArea(fd, spec) if spec["kind"] == "host" else device.open_area(fd, spec)
    finally:
        os.close(fd)
