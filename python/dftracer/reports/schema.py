"""The tables of a report: their columns, meanings and units.

Times are integer nanoseconds (`_ns`), points in time since the Unix epoch; sizes are bytes
(`_bytes`, and `lower`, `upper`, `mean_size` of calls). A process is identified by its number in
`processes`. A cell whose value is unknown is None.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Column:
    name: str
    kind: str  # int, float, text, bool
    meaning: str


@dataclass(frozen=True)
class Schema:
    name: str
    meaning: str
    columns: tuple[Column, ...]


def derived(name: str, meaning: str, columns: Sequence[tuple[str, str, str]]) -> Schema:
    """The schema of a table beside those of every report: a figure's, a comparison's."""
    return Schema(name, meaning, tuple(Column(*column) for column in columns))


# What time is spent on. A step is split into these classes; at each moment the first one that
# applies gets the time. docs/report.md explains the order.
CLASSES = ("communication", "transfer", "checkpoint", "compute", "fetch", "io", "store")

# The parts of a step, in the order in which they are stacked, with the names people read.
PARTS = {
    "compute": "compute",
    "communication": "communication",
    "waiting": "waiting for others",
    "transfer": "transfer",
    "checkpoint": "checkpoint",
    "fetch": "waiting for data",
    "other": "unattributed",
}
PART_COLUMNS = {part: f"{part}_ns" for part in PARTS} | {
    "waiting": "waited_ns",
    "other": "unattributed_ns",
}


def parts_of(row: Mapping[str, Any], columns: Mapping[str, str] = PART_COLUMNS) -> dict[str, float]:
    """The time of each part of a row of `steps` or `epochs`; no moment is in two of them."""
    found = {part: row[column] or 0 for part, column in columns.items()}
    found["communication"] -= found["waiting"]
    return found


# What a wait for a batch is spent on, and the parts of a training process's life: in order of the
# table `breakdown`. docs/howto/slow-steps.md explains them.
WAIT_PARTS = (
    *("reading", "decoding", "collating", "garbage collection", "worker start-up", "not yet begun"),
    *("waiting for its turn", "queue transfer", "pinning", "unattributed"),
)
WAITING = "waiting for data"
LIFE_PARTS = (
    *("start-up", "compute", "communication", "waiting for others", "transfer", "checkpoint"),
    *(f"{WAITING}: {part}" for part in WAIT_PARTS),
    *(WAITING, "unattributed", "evaluation", "between steps", "shut-down"),
)

SPLIT = """
fetch_ns int waiting for a batch, and in no class that comes first in the order of classes
compute_ns int forward, backward, optimizer, and operations of PyTorch
backward_ns int part of compute_ns: gradients and, with several ranks, waiting for the others
transfer_ns int copying to or from a device
communication_ns int send, receive, collectives, barriers
waited_ns int part of communication_ns: waiting for ranks that came later
checkpoint_ns int saving or loading a checkpoint
io_ns int in POSIX and STDIO calls, whatever else was going on: part of the others
unhidden_io_ns int I/O while no thread of the process computed: also part of the others
unattributed_ns int time in none of fetch, compute, transfer, communication, checkpoint
"""

_TABLES = {
    "overview": (
        "one row: the whole trace",
        """
first_ns int when the first event began
last_ns int when the last event ended
start_ns int when the job began: the first start record, or event if that is earlier
end_ns int when it ended: the last end record, or event
job_ns int end_ns - start_ns; of several runs, without the time between them
timed_by text the records that the times of the job come from
runs int runs that the traces contain, see the table
processes int processes that recorded
ranks int ranks among them
hosts int hosts that they ran on
threads int threads, of all processes
traces int trace files
events int records of what the programs did
lost int events that could not be recorded
recovered int processes that crashed and whose trace was completed afterwards
damaged int places in the files that could not be read
read_bytes int bytes of files that I/O calls read; None if only calls of unknown size read
write_bytes int the same, written
read_unknown int calls that read a number of bytes that the trace does not contain
write_unknown int the same, of calls that write
mapped_bytes int lengths of the mappings of files, see the table mappings
ring_requests int requests of io_uring that only the kernel saw
io_ns int time in which at least one I/O call was open, summed over processes
reading_ns int part of it: a call that reads was open
writing_ns int part of it: a call that writes or syncs was open, and none that reads
any_ns int time in which at least one process had an I/O call open
bandwidth float bytes read and written per second of any_ns
compute_ns int time in which at least one thread computed, summed over processes
hidden_io_ns int time of I/O during which the same process computed
unhidden_io_ns int io_ns - hidden_io_ns
mpi_ns int time in calls of MPI, less the I/O, locks and compute regions inside, summed
busy_ns int time in which processes neither waited for others nor slept, summed over processes
lock_ns int time in which processes waited for file locks
child_wait_ns int time in which processes waited for their children
untraced_child_ns int the part of it that no traced child explains
pipe_wait_ns int time in which processes waited on pipes, local sockets and terminals
store_wait_ns int time in which processes only waited for object stores
fault_wait_ns int time in page faults that waited for storage, summed over threads
net_wait_ns int time in which processes only waited for the network, in calls on sockets
idle_ns int time in which processes slept or waited for something untraced, as far as known
cpu_ns int CPU time of all processes; None if some did not record it
cpu_wait_ns int time in which main threads were ready to run and waited for a processor, if known
bound text what took the most time, in one word or two, see "What is it bound by"
bound_by text where the time went, in one line
clock text how far the clocks of hosts differ, and whether times were corrected
not_traced text what the trace does not show
""",
    ),
    "runs": (
        "one row per run that the traces contain",
        """
run int its number, in the order of their start
id text the run id in its traces; None if they have none
guessed bool whether only the times of the traces show that they belong together
start_ns int when its first process began
end_ns int when its last process ended
dur_ns int end_ns - start_ns
processes int processes that recorded
events int records of what they did
command text command line of the process that began first
""",
    ),
    "processes": (
        "one row per process",
        """
process int its number in this report
pid int process id
host text where it ran
rank int rank in a parallel job
parent int process that started it; None if that did not record
role text main, worker, or helper
name text its name in the trace
command text its command line
events int records of what it did
threads int threads that recorded
first_ns int when its first event began
last_ns int when its last event ended
ready_ns int when a worker began its first item
start_ns int when it began: its start record, or first event
end_ns int when it ended: its end record, or last event
life_ns int end_ns - start_ns
timed_by text the records that these times come from
run int its number in `runs`
busy_ns int life_ns without wait_ns and idle_ns
lock_ns int time in which it waited for file locks, and for nothing else
wait_ns int time in which it waited for children, on a pipe, socket or terminal, or for a store
child_wait_ns int part of wait_ns: for its children
pipe_wait_ns int part of wait_ns: on a pipe, local socket or terminal
net_wait_ns int part of wait_ns: for the network
idle_ns int time in which it slept or waited for something that is not traced; 0 if unknown
cpu_ns int CPU time, if its end record contains it
cpu_wait_ns int time in which its main thread was ready to run and waited for a processor, likewise
io_ns int time in which at least one of its I/O calls was open
compute_ns int time in which at least one of its threads computed
hidden_io_ns int time of I/O during which it computed
unhidden_io_ns int io_ns - hidden_io_ns
overlap_percent float hidden_io_ns / io_ns
read_bytes int bytes of files that its I/O calls read; None if only calls of unknown size read
write_bytes int the same, written
ops int its I/O calls, on files
lost int events that could not be recorded
ended text cleanly, recovered, or not known
trace text the file
""",
    ),
    "hosts": (
        "one row per host",
        """
host text its name
processes int processes that recorded there
events int their events
io_ns int sum over its processes
compute_ns int sum over its processes
read_bytes int bytes read
write_bytes int bytes written
""",
    ),
    "layers": (
        "one row per category of events",
        """
cat text category
class text what its time counts as: compute, communication, transfer, ..., fetch, io, store or none
events int number of events
total_ns int sum of durations: nested and parallel spans count each
union_ns int time in which at least one was open, summed over processes
any_ns int time in which at least one process had an I/O call of it open; 0 if it is not I/O
read_bytes int bytes read
write_bytes int bytes written
bandwidth float bytes read and written per second of any_ns
files int files that they used
processes int processes with such events
overlap_percent float part of union_ns during which the same process computed
""",
    ),
    "calls": (
        "one row per name and category",
        """
cat text category
name text name of the call, region or operation
class text what its time counts as
role text what the call does: read, write, copy, collect, open, close, map, sync, lock, ...
count int number of events
errors int calls that failed: errno was set, or the result of an I/O call was negative
error_ns int sum of the durations of failed calls
total_ns int sum of durations
mean_ns float total_ns / count
min_ns int the shortest
p50_ns int the median; percentiles are accurate to 1.6 %
p90_ns int the 90th percentile
p99_ns int the 99th percentile
max_ns int the longest
read_bytes int bytes read; None if unknown
write_bytes int the same, written
unknown int calls that moved a number of bytes that the trace does not contain
mapped_bytes int lengths of the mappings that it made
bandwidth float bytes moved per second of total_ns
mean_size float bytes per call, of the calls that moved any
""",
    ),
    "sizes": (
        "how large the transfers of a call were; calls that moved nothing have lower = upper = 0",
        """
direction text read, write, or copy (from one file to another)
cat text category
name text name of the call
lower int smallest size in this row
upper int smallest size above this row
count int calls
bytes int bytes that they moved
total_ns int sum of their durations
""",
    ),
    "latencies": (
        "how long calls took",
        """
cat text category
name text name of the call
lower_ns int shortest duration in this row
upper_ns int shortest duration above this row
count int calls
""",
    ),
    "epochs": (
        "one row per epoch of a process that has steps",
        """
process int its number in `processes`
rank int rank of the process
epoch int its number; None if the trace does not number them
start_ns int beginning of its first step
dur_ns int until the end of its last step, or of the evaluation that follows it
steps int number of steps
evaluation_ns int passes over the validation or test set, in it or after its last step
"""
        + SPLIT,
    ),
    "steps": (
        "one row per training step of a process",
        """
process int its number in `processes`
rank int rank of the process
epoch int the epoch that it belongs to
step int its number
start_ns int when it began
dur_ns int until the next one began, or until its last event ended
"""
        + SPLIT
        + """
gc_ns int garbage collections of the training thread: part of the others
loose_io_ns int part of unattributed_ns: in I/O calls
loose_write_ns int part of loose_io_ns: writing or syncing
loader int loader of the batch that it used; of several batches, the one that it waited for longest
pass int pass over that loader
batch int number of the batch in its pass; None if the trace has no lineage
""",
    ),
    "breakdown": (
        "where the time of each training process went, from its start to its end",
        """
process int its number in `processes`
rank int rank of the process
part text start-up (until the first step), parts of steps, evaluation, between steps, shut-down
time_ns int time; the rows of a process add up to its life
share float share of its life
""",
    ),
    "slow_steps": (
        "training steps that were late, each with its cause, latest first",
        """
process int its number in `processes`
rank int rank of the process
epoch int the epoch that it belongs to
step int its number
start_ns int when it began
dur_ns int its duration
late_ns int time that it waited for its batches, or took longer than usual
cause text what made it late, see "Slow steps"
loader int loader of the batch that it waited for
pass int pass over that loader
batch int number of that batch in its pass
worker int worker that made the batch
file text the file that caused it
straggler int rank that came late to a collective
chain text how it came about, in words
""",
    ),
    "input_overlap": (
        "what was done for batches, and how much of it the training process waited for",
        """
process int the process that used the batches
rank int rank of the process
activity text reading, decoding, collating, ..., see "Slow steps"
total_ns int time of it, in the process that made or moved the batches
hidden_ns int the part that nothing waited for
exposed_ns int the part that the process waited for: these add up to the time in which it waited
hidden_percent float hidden_ns / total_ns
""",
    ),
    "whatif": (
        'step and job times that are predicted for other settings, see "What if"',
        """
process int its number in `processes`
rank int rank of the process
change text measured, unchanged (the recorded run, predicted), or what would be different
step_ns int mean time of a step
step_low_ns int lower end of its 95 % interval
step_high_ns int upper end of it
measured_ns int mean time of a step in the recorded run
change_percent float step_ns compared with measured_ns
job_ns int time of the job, if every training process gains as this one
job_low_ns int lower end of its 95 % interval
job_high_ns int upper end of it
note text what the prediction assumes, or why there is none
""",
    ),
    "worker_starts": (
        "one row per start of the workers of a DataLoader",
        """
process int the process that started them
rank int rank of the process
loader int number of the loader in that process
pass int number of the pass over the loader
start_ns int when starting them began
dur_ns int until all were started
workers int num_workers
prefetch int prefetch_factor; None, as the following, if the trace does not contain it
persistent bool persistent_workers
in_order bool whether batches are handed over in order
pins bool whether batches are copied into pinned memory
cpus int cores that the process may use
cpu_ns int CPU time that the process had used by then
""",
    ),
    "batches": (
        "one row per batch of a DataLoader; requires `dftracer run --torch`",
        """
process int the process that used it
rank int rank of the process
loader int number of the loader in that process
pass int number of the pass over the loader
batch int number of the batch in its pass
worker int number of the worker that made it; None without workers
worker_process int process of that worker; None if it is not traced
epoch int epoch in which it was used
step int step in which it was used
samples int samples in it
wanted_ns int when the process asked for it
begun_ns int when the worker began it
ready_ns int when the worker had put it into the queue
arrived_ns int when it was taken off the queue
handed_ns int when the process had it; None if it never did
wait_ns int handed_ns - wanted_ns
work_ns int ready_ns - begun_ns
reading_ns int part of work_ns: in I/O calls
decoding_ns int part of work_ns: in items, outside I/O calls
collating_ns int part of work_ns: joining items into a batch
gc_ns int part of work_ns: garbage collection
other_ns int the rest of work_ns
queued_ns int from ready_ns to arrived_ns
read_bytes int bytes that were read for it
files int files that were used for it
file text the file whose calls took the most time
file_ns int time of these calls
file_bytes int bytes read from that file
waited_reading_ns int part of wait_ns: while the worker read for it
waited_decoding_ns int part of wait_ns: while the worker decoded for it
waited_collating_ns int part of wait_ns: while the worker collated it
waited_gc_ns int part of wait_ns: garbage collection, in the worker or here
waited_start_ns int part of wait_ns: until a new worker began its first batch
waited_dispatch_ns int part of wait_ns: until the worker began it
waited_turn_ns int part of wait_ns: ready, but behind another batch in the queue
waited_queue_ns int part of wait_ns: moving it between processes and threads
waited_pinning_ns int part of wait_ns: copying it into pinned memory
waited_other_ns int the rest of wait_ns
""",
    ),
    "batch_files": (
        "the files of each batch whose calls took the most time, at most three",
        """
process int the process that used the batch
loader int number of the loader in that process
pass int number of the pass over the loader
batch int number of the batch in its pass
place int 1 for the costliest
fname text path of the file
calls int I/O calls on it
total_ns int sum of their durations
read_bytes int bytes read from it
""",
    ),
    "timeline": (
        "at most 240 equal intervals of time, by category",
        """
start_ns int beginning of the interval
dur_ns int its length, a power of two
cat text category
ops int events that began in it
read_bytes int read, spread evenly over each call's time
write_bytes int written, spread in the same way
busy_ns int time of spans in the interval; divided by dur_ns, how many were open on average
""",
    ),
    "heat": (
        "the same intervals, by process",
        """
process int its number in `processes`
start_ns int beginning of the interval
dur_ns int its length
io_ns int time in which at least one I/O call was open
compute_ns int time in which at least one thread computed
unhidden_io_ns int I/O while no thread computed
ops int I/O calls that began in it
bytes int read and written
""",
    ),
    "files": (
        "one row per file that the programs used, costliest first",
        """
fname text its path
opens int calls that open it
reads int calls that read
writes int calls that write
metadata int close, stat, seek, unlink, sync, ...; without locks and asynchronous requests
read_bytes int bytes read; None if only calls of unknown size read it
write_bytes int the same, written
read_unknown int calls that read a number of bytes that the trace does not contain
write_unknown int the same, of calls that write
mapped_bytes int lengths of its mappings
touched_bytes int the part of them that the program touched; None if unknown, see "Mapped files"
total_ns int sum of the durations of all these calls
mean_size float bytes per call that moved any
sequential int transfers that began where the previous one ended, see "Files"
strided int transfers that began a constant distance after the previous one
random int all other transfers, except the first and those at an unknown offset
random_ns int sum of the durations of random transfers
pattern text sequential, strided, random, mixed, whole (one per pass), mapped, unknown, none
extent_bytes int the highest offset reached
reread_bytes int bytes read beyond the extent, at known offsets: at least this many were read twice
processes int processes that used it
""",
    ),
    "mappings": (
        "one row per file that was mapped into memory, those that were waited for longest first",
        """
fname text its path
mapped_bytes int lengths of its mappings
touched_bytes int the part of them that was in the page tables at their end; None if unknown
ranges int runs of adjacent pages in that part
faults int page faults on it; 0 if none were sampled
major_faults int of these, such that waited for storage
unseen int page faults of the process that the kernel could not store, on this or another file
faulting_ns int sum of the lengths of runs of page faults, from the first to the last of each
major_ns int sum of the durations of major faults
""",
    ),
    "directories": (
        "one row per directory of such files",
        """
dir text its path
files int files used in it, without subdirectories
calls int on them
metadata int calls on them that move no data
total_ns int sum of durations
read_bytes int bytes read
write_bytes int bytes written
""",
    ),
    "costs": (
        "the ten files, directories and lines of code where calls of each kind took the most time",
        """
kind text small read, small write, metadata (moves no data), sync, lock, or failed
place text file, directory, or line
path text path of the file or directory; the line of code, or the native caller
files int files in the directory, or that the line used
calls int such calls
bytes int bytes that they moved
total_ns int sum of their durations
""",
    ),
    "lines": (
        "places in the programs that made I/O calls, costliest first",
        """
place text the line of Python code with its function, or the native function
total_ns int sum of the durations of its I/O calls
calls int I/O calls
read_bytes int bytes read
write_bytes int bytes written
callee text function of a Python library that the line called for most of this time, if any
caller text native library and function that made most of it, unless it is the interpreter
reads int calls that read
writes int calls that write
metadata int calls that move no data: open, close, seek, stat
small int transfers below 16 KiB
files int different files
costliest text file on which most of the time was spent
file text file of the Python code; None for native code
line int number of the line
function text function that the line is in
site text the description in the trace of most of it, column `site` of the events
""",
    ),
    "functions": (
        "functions of the programs that made I/O calls, costliest first",
        """
function text function of Python code, or the native caller
file text file of the Python code; None for native code
lines int lines of it that made calls
calls int I/O calls
read_bytes int bytes read
write_bytes int bytes written
total_ns int sum of the durations
""",
    ),
    "stores": (
        "requests to object stores, one row per prefix and operation, costliest first",
        """
store text kind of store: s3, gs, az, hf, http, ...
bucket text bucket, or host
prefix text key up to its last slash
operation text operation, or the method of HTTP
requests int number of requests
ranged int requests for a part of an object
requested_bytes int bytes asked for, or sent to be stored; None if the trace does not contain them
bytes int bytes delivered; None if the trace does not contain them
errors int requests that failed
retries int times that requests were sent again
throttled int answers 429 and 503
ttfb_p50_ns int median of the time to the first byte of the answer, retries included
ttfb_p99_ns int the 99th percentile, accurate to 1.6 %
total_ns int sum of the durations, until the last byte was read
small int ranged requests that delivered less than 256 KiB
small_bytes int bytes that these delivered
small_ns int sum of their durations
retry_ns int sum of the durations of requests that were sent again, or throttled
""",
    ),
    "store_caches": (
        "files of fsspec that have a cache, one row per prefix",
        """
store text kind of store
bucket text bucket, or host
prefix text path up to its last slash
reads int reads of the program
hits int reads that fetched nothing
misses int reads that had to fetch
read_bytes int bytes that the program read
fetches int times that caches fetched
fetched_bytes int bytes that they fetched
amplification float fetched_bytes / read_bytes
copy_hits int files opened whose local copy existed
copy_misses int files opened that had to be copied first
total_ns int sum of the durations of reads, and of opening copies
""",
    ),
    "pipes": (
        "one row per process and pipe or terminal, costliest first",
        """
process int its number in `processes`
pipe text name of the pipe in the trace: both ends of a pipe have the same
reads int calls that read from it
writes int calls that write to it
read_bytes int bytes read
write_bytes int bytes written
read_ns int sum of the durations of its reads: mostly waiting for what is written
write_ns int sum of the durations of its writes: waiting for the reader if the pipe is full
""",
    ),
    "connections": (
        "peers of sockets, local ones included, costliest first",
        """
peer text the peer, as the trace names its sockets, without the number of the descriptor
reach text network, loopback, or local (a socket that does not leave the host)
connections int connects and accepts that succeeded, or went on in the background
in_progress int of these, connects that went on in the background: how they ended is not recorded
refused int connects and accepts that failed
errors int calls that failed; "not yet" (EAGAIN, EINPROGRESS) is no failure
calls int calls on these sockets, reads and writes among them
sends int of these, calls that sent
receives int of these, calls that received
sent_bytes int bytes sent
received_bytes int bytes received
connect_ns int time in connect and accept
send_ns int time in calls that sent
receive_ns int time in calls that received: mostly waiting for the peer
first_byte_mean_ns float from connect, or the return of accept, to the first byte received
first_byte_max_ns int the longest of these
stall_ns int the longest call that received
""",
    ),
    "programs": (
        "one row per program, costliest first",
        """
program text its name, without directory and arguments
processes int processes that ran it
wall_ns int time in which at least one of them ran
life_ns int sum of their lives
cpu_ns int sum of their CPU times; None if some did not record it
busy_ns int sum of the times in which they neither waited nor slept
io_ns int sum of the times in which they had an I/O call open
wait_ns int sum of the times in which they waited for children, or on a pipe, socket or terminal
read_bytes int bytes of files that they read
write_bytes int bytes of files that they wrote
""",
    ),
    "stragglers": (
        "ranks and workers compared with the median of their kind, slowest first",
        """
kind text rank or worker
process int its number in `processes`
rank int rank of the process, or of the one that started the worker
measure text step time, own time, fetch time, compute time, item time, read bytes
value int its own: nanoseconds (per step, per item) or bytes
count int steps or items that it is the mean of
median int of all of this kind
ratio float value / median
""",
    ),
    "collectives": (
        'collectives that all ranks of a process group recorded, see "Ranks"',
        """
run int its number in `runs`
group text name of the process group, or number of the communicator among those of its ranks
ranks text ranks in it
operation text all_reduce, bcast, all_gather, ...
function text function of PyTorch that did it; None for MPI
count int collectives that could be matched on all ranks
unmatched int those that some rank of the group did not record
bytes int bytes of the tensors of one rank, summed
time_ns int time that ranks were blocked in them, summed over ranks
waited_ns int part of time_ns: until the last rank had come
longest_ns int the latest arrival, after the median of the other ranks
last_rank int rank that came last most often
last_count int how often it did
""",
    ),
    "mpi_ranks": (
        "calls of MPI and MPI-IO, one row per process",
        """
process int its number in `processes`
rank int its rank
calls int calls of MPI; tests that found nothing are not counted
time_ns int sum of their durations
collective_ns int part of time_ns: in collectives
messages int messages sent, point to point
sent_bytes int bytes of these
file_calls int calls of MPI-IO
file_ns int sum of their durations, with the I/O calls inside
read_bytes int bytes read by MPI-IO, as far as the library told
write_bytes int bytes written by MPI-IO
""",
    ),
    "mpi_peers": (
        "messages of MPI from rank to rank",
        """
run int its number in `runs`
source int rank that sent them
target int rank in MPI_COMM_WORLD that they went to; None if it is not known
messages int number of messages
bytes int bytes in them
""",
    ),
    "arrivals": (
        "how ranks came to collectives; the rank that others waited for longest is first",
        """
process int its number in `processes`
rank int its rank
collectives int collectives that could be matched on all ranks
last int those that it came to last
late_ns int how much later than the median of the other ranks it came to these, summed
median_late_ns int the median of that
waited_ns int time that it waited for other ranks
given_ns int time that other ranks waited for it, summed over them
steps int steps with such collectives
net_ns int in the median step: mean wait of the others for it, less its own wait for them
reason text what it did longer than the others before these collectives; None if nothing explains it
reason_ns int how much longer, summed
uncertainty_ns int how well the clocks of its hosts agree; 0 on one host, None if unknown
""",
    ),
    "torch_ops": (
        "operations of PyTorch: compiled models, and torch.profiler",
        """
name text name of the operation
phase text forward, backward, or None
count int number of events
total_ns int sum of durations
mean_ns float total_ns / count
p99_ns int the 99th percentile, accurate to 1.6 %
""",
    ),
    "findings": (
        "findings, most severe first; empty if there are none",
        """
rule text name of the rule
severity text high, medium or low
title text in one sentence
evidence text the numbers of this trace that support it
concerns_ns int time that it concerns; None for lost events
share float share of `base`
advice text what to try
base text the time that the share refers to
sure text measured, or estimated if the time follows from averages or proportions
files text the files that it concerns most, at most three, one per line; None if there are none
""",
    ),
}


def _parse(name: str, meaning: str, text: str) -> Schema:
    columns = []
    for line in filter(None, text.splitlines()):
        column, kind, words = line.split(" ", 2)
        columns.append(Column(column, kind, words))
    return Schema(name, meaning, tuple(columns))


SCHEMAS = {name: _parse(name, *parts) for name, parts in _TABLES.items()}
