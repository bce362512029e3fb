"""`python -m dftracer` is the same as `dftracer`."""

import sys

from dftracer._entry import main

sys.exit(main())
