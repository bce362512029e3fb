"""`python -m dftracer` is the same as `dftracer`."""

import sys

from dftracer.commands.main import main

sys.exit(main())
