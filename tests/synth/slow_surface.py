#!/usr/bin/env python3
"""slow_surface.py - test_surface.py with 120 programs judged."""
import sys

import test_surface

sys.argv[1:] = ["120"]
sys.exit(test_surface.main())
