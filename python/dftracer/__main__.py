import sys

from dftracer.commands.main import main

sys.exit(main())
