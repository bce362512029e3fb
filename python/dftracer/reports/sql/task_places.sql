-- Where to look for the batch that a moment of a thread is in: batches by slices of 2^$slice ns. A slice is about as long as the
-- mean batch, so that few of them share one. Joining on slices is faster than an `asof` join, which sorts all events.
select process, tid, id, ts, stop, unnest(range(ts >> $slice, (stop >> $slice) + 1)) as slice from tasks
