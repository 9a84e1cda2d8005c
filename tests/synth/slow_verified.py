#!/usr/bin/env python3
"""slow_verified.py - test_verified.py with 24 tasks."""
import sys

import test_verified

sys.argv[1:] = ["24"]
sys.exit(test_verified.main())
