"""How long tests wait. A limit catches a hang and nothing else: the machine may be busy."""

# Seconds: with forty processes to each core, a minute of work still ends in time.
HANG = 1800.0
