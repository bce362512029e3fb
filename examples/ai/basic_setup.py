"""The smallest program with a trace: start it, work, end it.

DFTRACER_ENABLE=1 python basic_setup.py && zcat ai_trace.pfw.gz
"""

from dftracer.python import ai, dftracer

# The file, the directories whose files are of interest, and the rank (-1: there is none).
df_logger = dftracer.initialize_log("ai_trace.pfw", "data", -1)

with ai.compute:
    total = sum(range(1000))

df_logger.finalize()
