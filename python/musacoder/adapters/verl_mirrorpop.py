"""verl_mirrorpop.py - importing this makes verl's rejection 'seq_mean_abs' MirrorPop (VERL_USE_EXTERNAL_MODULES)."""

import os

from .verl import install_mirrorpop

install_mirrorpop(float(os.environ.get("MUSACODER_MIRRORPOP_DELTA", "0.02")))
