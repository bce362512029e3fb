"""Events with given times, for what is measured elsewhere."""

from dftracer.python import TagDType, TagValue, dftracer

log = dftracer.initialize_log("traces/by_hand.pfw", process_id=3)

start = log.get_time()  # microseconds
total = sum(range(1000))
log.log_event(
    name="sum",
    cat="math",
    start_time=start,
    duration=log.get_time() - start,
    int_args={"n": 1000, "total": TagValue(total, TagDType.INT).value()},
    string_args={"by": "hand"},
)

# A level around others: the first event that is logged inside takes its place.
log.enter_event()
start = log.get_time()
log.enter_event()
log.log_event("inner", "math", log.get_time(), 0)
log.exit_event()
log.log_event("outer", "math", start, log.get_time() - start)
log.exit_event()

log.log_metadata_event("dataset", "imagenet")
log.finalize()
