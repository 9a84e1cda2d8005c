"""musacoder_verifiers.py - the name by which verifiers finds the taskset: ids have no dots there."""

from musacoder.adapters.verifiers import KernelTaskset

__all__ = ["KernelTaskset"]
