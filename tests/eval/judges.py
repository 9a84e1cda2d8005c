"""judges.py - whose process judges what a test gives to 'musacoder eval'."""
import os


def share_owner():
    """One owner (src/daemon) judges for all tests of a run that call this: it imports torch once, where each 'eval'
    with a judge of its own imports it again. Where a run has none (under sanitizers, whose reports an owner would
    hide in its log) each 'eval' judges in its own process, as without this call."""
    if os.environ.get("TEST_OWNER"):
        os.environ.pop("MUSACODER_OWNER", None)
