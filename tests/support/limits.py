"""How long tests wait. A limit catches a hang and nothing else: the machine may be busy."""

# Seconds. The slowest single program takes about one minute on an idle machine.
HANG = 600.0
