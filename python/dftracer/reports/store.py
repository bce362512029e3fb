"""DuckDB on the reader's Arrow stream: partial tables of blocks of a trace, and their totals.

A block is one or more whole trace files. Its partial tables (`p_*`, made by sql/partial) contain
counts, sums and disjoint rows, so that the statements of sql/final can add those of many blocks in
any order. A process is in one file and therefore in one block, and so are its intervals.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from dftracer import _cleanup, _duckdb, _reader
from dftracer.errors import DFTracerError
from dftracer.reports import call_sites
from dftracer.reports.schema import CLASSES, SCHEMAS
from dftracer.reports.symbols import Symbols
from dftracer.trace.runs import Life, runs_of
from dftracer.trace.stream import Damage, Longs, Trace
from dftracer.trace.summary import Process, summary_of

SQL = Path(__file__).with_name("sql")
COLUMNS = (
    *("name", "cat", "ph", "ts", "dur", "tid", "process", "fname", "other", "site", "ret", "errno"),
    *("epoch", "step", "bytes", "read_bytes", "write_bytes", "mapped_bytes"),
    *("position", "access", "offset", "size", "args"),
)
PARTIALS = (
    *("calls", "latencies", "sizes", "layers", "unions", "times", "steps", "timeline", "heat"),
    *("files", "users", "torch_ops", "work", "costs", "sites", "evaluations", "moved"),
    *("batches", "batch_files", "batch_pieces", "fetches", "feeds", "collectives"),
    *("stores", "pipes", "mappings", "connections", "mpi"),
)
# Tables of a block from its events to its steps, each made from the previous ones.
STAGES = ("lanes", "marks", "trainers", "units", "windows")
# Those of batches: who waited for them, who made them, what that was spent on, and pieces of it.
TASK_STAGES = ("fetches", "tasks", "task_lanes", "task_places", "task_files", "task_pieces")
BY_PROCESS = (
    *("times", "steps", "heat", "work", "evaluations", "moved", "pipes", "mpi"),
    *("batches", "batch_files", "batch_pieces", "fetches", "feeds", "collectives"),
)
FINALS = (
    *("overview", "runs", "processes", "hosts", "layers", "calls", "sizes", "latencies", "epochs"),
    *("steps", "breakdown", "input_overlap", "worker_starts", "batches", "batch_files", "timeline"),
    *("heat", "files", "mappings", "directories", "costs", "stores", "store_caches", "pipes"),
    "connections",
    *("stragglers", "collectives", "arrivals", "mpi_ranks", "mpi_peers", "torch_ops"),
)
# Tables that several of these are made from.
BETWEEN = (
    *("lives", "percentiles", "made", "exposed"),
    *("matched", "reasons", "step_waits"),
)
# More lanes: waiting for a lock, for a child process, for the other end of a pipe or local socket,
# for the network, computing gradients, calls of MPI, and calls that read and that write.
LANES = {
    "lock": "cat in ('POSIX lock', 'STDIO lock')",
    "child": "cat in ('POSIX', 'STDIO') and class is null",
    "pipe": "cat in ('POSIX pipe', 'STDIO pipe', 'NET local', 'IO_URING pipe', 'AIO pipe')",
    "net": "cat in ('NET', 'POSIX net', 'STDIO net', 'IO_URING net')",
    "backward": "gradients and class is not null",
    "mpi": "cat = 'MPI' and class is not null",
    "read": "class = 'io' and way = 'read'",
    "write": "class = 'io' and way = 'write'",
}
# By the path of a trace and the name of a host.
Shifts = dict[tuple[str, str], int]
PIECES = 240
MOST = (1 << 63) - 1
# Text columns and the tables of their words.
WORDS = {"cat": "cats", "name": "names", "fname": "fnames", "site": "sites"}
# What the files are called through which workers of PyTorch's loaders hand over tensors: thousands,
# each used once.
SHARED = "/dev/shm/torch_*"
# Bytes of trace files above which their events are kept on disk.
LARGE = 24 << 20
# Spans in one sweep, 16 bytes each; a single process may have more.
SWEPT = 16_000_000
# Calls up to which the time of a batch is kept call by call, and pieces of any other batch.
EXACT = 100
# Added to the code of a category for calls on pipes and the like, on locks, and on sockets with a
# peer on the network.
PIPE = 1 << 30
LOCK = 1 << 29
NET = 1 << 28
# Calls on locks, and the lock commands of fcntl: F_GETLK, F_SETLK, F_SETLKW, and those of open file
# descriptions.
LOCKS = "'flock', 'lockf', 'lockf64'"
LOCK_COMMANDS = "5, 6, 7, 12, 13, 14, 36, 37, 38"
# Bytes of a transfer below which latency dominates its cost.
SMALL = 16 << 10
# The same of a ranged request to an object store.
RANGE = 256 << 10
SYNCS = tuple(name for name, role, *_ in _reader.calls() if role == "sync")
# Added to the code of a name for the lifetimes of generators.
LIFE = 1 << 30

TABLES = {
    "p_processes": """process bigint, pid bigint, ppid bigint, host varchar, rank bigint,
        name varchar, command varchar, events bigint, threads bigint, first_ns bigint,
        last_ns bigint, lost bigint, starts bigint, ends bigint,
        recovered boolean, trace varchar, began_ns bigint, ended_ns bigint, cpu_ns bigint,
        cpu_wait_ns bigint, run varchar, ring_requests bigint""",
    # When I/O calls of a category were open in any process: intervals, packed by the reader.
    "p_open": "cat varchar, intervals blob",
    "p_blocks": "files bigint, damaged bigint, first_ns bigint, last_ns bigint",
}


def piece_shift(first: int, last: int, pieces: int = PIECES) -> int:
    """The smallest k for which at most `pieces` intervals of 2^k ns cover the time."""
    shift = 0
    while (last >> shift) - (first >> shift) >= pieces:
        shift += 1
    return shift


def statement(name: str, **values: int | str) -> str:
    text = (SQL / f"{name}.sql").read_text(encoding="utf-8")
    for key, value in values.items():
        text = text.replace(f"${key}", str(value))
    return text


class Store:
    """Partial tables, in a temporary database of their own."""

    def __init__(self, threads: int = 0, memory: str = "500MB", parent: str | None = None) -> None:
        """parent: the directory for the temporary directory of the database."""
        self.threads = threads or len(os.sched_getaffinity(0))
        self.connection = _duckdb.connect(ordered=False)  # a trace has its own order, ts
        self.place = _cleanup.make_directory("dftracer-report-", parent)
        self.damages: list[Damage] = []
        self._names = contextlib.ExitStack()
        try:
            self._named = self._names.enter_context(_duckdb.plain(self.place))
            self.run(f"set threads = {self.threads}")
            self.run(f"set temp_directory = {_duckdb.literal(self._named)}")
            self.run(f"set memory_limit = '{memory}'")
            self.run(_roles())
            self.run(statement("vocabulary"))
            for name, columns in TABLES.items():
                self.run(f"create table {name} ({columns})")
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self.connection.close()
        self._names.close()
        _cleanup.remove(self.place)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, sql: str) -> Any:
        import duckdb

        try:
            return _duckdb.interruptible(self.connection, self.connection.execute, sql)
        except duckdb.Error as error:  # out of space or memory
            raise DFTracerError(f"DuckDB: {_duckdb.error_text(error)}", exit_code=1) from None

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]]
        found = _duckdb.interruptible(self.connection, self.run(sql).fetchall)
        return found

    def fill(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Many rows per statement: each statement is a transaction."""
        for at in range(0, len(rows), 500):
            part = rows[at : at + 500]
            marks = "(" + ", ".join("?" * len(part[0])) + ")"
            values = [value for row in part for value in row]
            sql = f"insert into {table} values {', '.join([marks] * len(part))}"
            self.connection.execute(sql, values)

    def add_block(
        self,
        files: Sequence[Path],
        first_file: int = 0,
        explain: Sequence[Path] = (),
        shifts: Shifts | None = None,
    ) -> None:
        """Reads whole trace files.

        first_file: the number of the first one among all files. explain: all files, in which names
        that the block does not contain are looked up. shifts: nanoseconds to subtract from the
        times of a host in a file, because its clock is ahead.
        """
        base = first_file << 32
        trace = Trace(
            files,
            COLUMNS,
            self.threads,
            time_unit="ns",
            summary=True,
            explain=explain,
            coded=("cat", "name", "fname", "other", "site", "access"),
        )
        # On disk DuckDB compresses, which only pays off for large traces.
        # DuckDB must be able to take the resolved path literally.
        large = (
            self._named == self.place
            and sum(file.stat().st_size for file in files if file.exists()) > LARGE
        )
        if large:
            disk = os.path.join(self._named, "events.duckdb")
            self.run(f"attach {_duckdb.literal(disk)} as disk")
        events = "disk.e" if large else "memory.e"
        self.connection.register("stream", trace)
        self.run(f"create table {events} as {statement('events', life=LIFE)}")
        self.connection.unregister("stream")
        if large:
            self.run(f"create view e as from {events}")
        for column, table in WORDS.items():
            self.connection.register("words", trace.words(column))
            self.run(f"create table {table} as from words")
            self.connection.unregister("words")
        self.run(f"update fnames set word = '{SHARED}' where is_shared_by_torch(word)")
        self.run(statement("pipes", events=events, pipe=PIPE, net=NET))
        self.run(statement("locks", events=events, lock=LOCK, calls=LOCKS, commands=LOCK_COMMANDS))
        kinds = statement("kinds", pipe=PIPE, lock=LOCK, net=NET, life=LIFE)
        self.run(f"create or replace table kinds as {kinds}")
        self.run(f"create or replace table copies as {statement('copies')}")
        if self.rows("select 1 from copies limit 1"):
            self.run(statement("copied_pipes", events=events, pipe=PIPE))
        found = trace.found
        assert found is not None  # the stream has been read to its end
        summary = summary_of(found)
        self.damages.append(summary.damage)
        ahead = {
            number: (shifts or {}).get((process.trace, process.host), 0)
            for number, process in enumerate(summary.processes)
        }
        for number, shift in ahead.items():
            if shift:
                self.run(f"update {events} set ts = ts - {shift} where process = {number}")
        self.fill(
            "p_processes",
            [_process_row(base + i, p, ahead[i]) for i, p in enumerate(summary.processes)],
        )
        (times,) = self.rows("select min(ts), max(ts + greatest(dur, 1) - 1) from e")
        damaged = sum(summary.damage.troubles.values())
        self.fill("p_blocks", [(len(files), damaged, *times)])
        shift = piece_shift(*times) if times[0] is not None else 0
        self._sweep(shift)
        self._sweep_batches(base)
        self._sweep_gaps()
        existing = {row[0] for row in self.rows("select table_name from duckdb_tables()")}
        for name in PARTIALS:
            sql = statement(
                f"partial/{name}",
                **{"k": shift, "lock": LOCK, "life": LIFE, "small": SMALL, "range": RANGE},
                syncs=_quoted(SYNCS),
            )
            if name in BY_PROCESS:
                sql = f"select * replace (process::bigint + {base} as process) from ({sql})"
            if f"p_{name}" in existing:
                self.run(f"insert into p_{name} by name {sql}")
            else:
                self.run(f"create table p_{name} as {sql}")
        made = (
            *("kinds", "copies", *STAGES, *TASK_STAGES, "sweep", "task_sweep", "masks"),
            *("collectives", "gap_sweep"),
        )
        for name in (*made, *WORDS.values()):
            self.run(f"drop table {name}")
        if large:
            self.run("drop view e")
            self.run("detach disk")
            os.unlink(os.path.join(self.place, "events.duckdb"))
        else:
            self.run("drop table e")

    def export(self) -> dict[str, bytes]:
        """The partial tables, as Parquet."""
        found = {}
        place = os.path.join(self._named, "export.parquet")
        for (name,) in self.rows("select table_name from duckdb_tables() order by 1"):
            self.run(f"copy {name} to {_duckdb.literal(place)} (format parquet, compression zstd)")
            found[str(name)] = Path(place).read_bytes()
        return found

    def load(self, tables: dict[str, bytes]) -> None:
        """Adds the partial tables of another store."""
        existing = {row[0] for row in self.rows("select table_name from duckdb_tables()")}
        place = os.path.join(self._named, "import.parquet")
        source = f"read_parquet({_duckdb.literal(_duckdb.pattern(place))})"
        for name, data in tables.items():
            Path(place).write_bytes(data)
            if name in existing:
                self.run(f"insert into {name} by name from {source}")
            else:
                self.run(f"create table {name} as from {source}")

    def _sweep(self, shift: int) -> None:
        """Fills `sweep`: how long each set of lanes was open. docs/report.md explains it."""
        for name in STAGES:
            sql = statement(name, pipe=PIPE, lock=LOCK, life=LIFE)
            self.run(f"create or replace table {name} as {sql}")
        bits = "coalesce(bit_or(1::bigint << bit) filter (class = '{0}'), 0)::bigint as {0}_bits"
        masks = ", ".join(bits.format(name) for name in CLASSES)
        for name, wanted in LANES.items():
            masks += f", coalesce(bit_or(1::bigint << bit) filter ({wanted}), 0)::bigint"
            masks += f" as {name}_bits"
        self.run(f"create or replace table masks as select {masks} from lanes")
        self.run(
            "create or replace table sweep (pass bigint, kind bigint, process bigint, key bigint, "
            "lanes bigint, ns bigint)"
        )
        io = dict(self.rows("select bit, cat from lanes where class = 'io'"))
        (last,) = self.rows("select max(pass) from lanes")
        counts = self.rows("select process, count(*) from e where dur > 0 group by 1 order by 1")
        for number in range((last[0] or 0) + 1):
            for low, high in _ranges(counts):
                spans = self.connection.sql(
                    "select e.process::bigint, l.bit::bigint, e.ts, e.ts + e.dur "
                    "from e join kinds k using (c, n) "
                    "left join trainers t on t.process = e.process and t.waits and t.tid <> e.tid "
                    "join lanes l on l.cat = k.cat and l.gradients = k.gradients and l.way = k.way "
                    "and l.class is not distinct from "
                    "case when k.class <> 'fetch' or t.process is null then k.class end "
                    f"where (l.known or l.pass = {number}) and e.ts is not null and e.dur > 0 "
                    f"and e.process between {low} and {high}"
                )
                windows = self.connection.sql(
                    "select process::bigint, id::bigint, start, stop from windows "
                    f"where {number} = 0 and process between {low} and {high}"
                )
                gather = sum(1 << lane for lane in io if number == 0)
                found, intervals = _duckdb.interruptible(
                    self.connection, _reader.sweep, spans, windows, shift=shift, gather=gather
                )
                self.connection.register("swept", Longs(found))
                self.fill("p_open", [(io[lane], packed) for lane, packed in intervals.items()])
                self.run(f"insert into sweep select {number}, * from swept")
                self.connection.unregister("swept")

    def _sweep_batches(self, base: int) -> None:
        """Fills `task_sweep`: what the threads that make batches did in each piece of them."""
        slice_shift = 0
        for name in TASK_STAGES:
            sql = statement(name, exact=EXACT, base=base, slice=slice_shift)
            self.run(f"create or replace table {name} as {sql}")
            if name == "tasks":
                ((mean,),) = self.rows("select avg(stop - ts) from tasks")
                slice_shift = int(mean or 0).bit_length()
        self.run("create or replace table task_sweep (key bigint, lanes bigint, ns bigint)")
        counts = self.rows(
            "select thread, big(coalesce(sum(calls), 0)) from tasks "
            "left join task_files using (id) group by 1 order by 1"
        )
        for low, high in _ranges(counts):
            spans = self.connection.sql(
                "select t.thread::bigint, l.lane::bigint, e.ts, e.ts + e.dur "
                "from e join task_lanes l using (c, n) "
                "join (select distinct process, tid, thread from tasks) t using (process, tid) "
                f"where e.ts is not null and e.dur > 0 and t.thread between {low} and {high}"
            )
            windows = self.connection.sql(
                "select thread::bigint, piece::bigint, p.moment, p.stop from task_pieces p "
                "join tasks using (id) where p.stop > p.moment "
                f"and thread between {low} and {high}"
            )
            self._sweep_windows("task_sweep", spans, windows)

    def _sweep_windows(self, table: str, spans: Any, windows: Any) -> None:
        """Adds how long each set of lanes was open in each window."""
        found, _ = _duckdb.interruptible(
            self.connection, _reader.sweep, spans, windows, shift=62, gather=0
        )
        self.connection.register("swept", Longs(found))
        self.run(f"insert into {table} select key, lanes, ns from swept where kind = 1")
        self.connection.unregister("swept")

    def _sweep_gaps(self) -> None:
        """Fills `gap_sweep`: what processes did from one collective to the next."""
        self.run(f"create or replace table collectives as {statement('collectives')}")
        self.run("create or replace table gap_sweep (key bigint, lanes bigint, ns bigint)")
        if not self.rows("select 1 from collectives limit 1"):
            return
        counts = self.rows(
            "select process, count(*) from e where dur > 0 "
            "and process in (select process from collectives) group by 1 order by 1"
        )
        lanes = " ".join(f"when '{name}' then {lane}" for lane, name in enumerate(CLASSES))
        for low, high in _ranges(counts):
            spans = self.connection.sql(
                f"select e.process::bigint, (case k.class {lanes} end)::bigint, e.ts, e.ts + e.dur "
                "from e join kinds k using (c, n) "
                "left join trainers t on t.process = e.process and t.waits and t.tid <> e.tid "
                "where k.class is not null and (k.class <> 'fetch' or t.process is null) "
                f"and e.ts is not null and e.dur > 0 and e.process between {low} and {high} "
                "and e.process in (select process from collectives)"
            )
            windows = self.connection.sql(
                "select process::bigint, id::bigint, before, ts from collectives "
                f"where before < ts and process between {low} and {high}"
            )
            self._sweep_windows("gap_sweep", spans, windows)

    def tables(self) -> dict[str, list[tuple[Any, ...]]]:
        """The rows of every table of the report that is made by SQL."""
        self._number_processes()
        self._number_runs()
        for name in BETWEEN:
            self.run(f"create or replace table {name} as {statement(f'final/{name}')}")
        ((first, last),) = self.rows("select min(first_ns), max(last_ns) from p_blocks")
        shift = piece_shift(first, last) if first is not None else 0
        self._join_open_times()
        self._name_places()
        found = {}
        for name in FINALS:
            columns = ", ".join(f'"{column.name}"' for column in SCHEMAS[name].columns)
            found[name] = self.rows(
                f"select {columns} from ({statement(f'final/{name}', k=shift)})"
            )
        return found

    def evaluations(self) -> list[tuple[Any, ...]]:
        """Passes over validation sets: process, start and duration. After tables()."""
        return self.rows(
            "select number, start_ns, dur_ns from p_evaluations join numbers using (process) "
            "order by all"
        )

    def lines(self) -> list[tuple[Any, ...]]:
        """Places that made I/O calls, with a description of each. After tables()."""
        return self.rows(statement("final/lines"))

    def _name_places(self) -> None:
        """Fills `places`: the line or the function that each description of a call site means."""
        self.run("create or replace table places (site varchar, place varchar, shown varchar)")
        symbols = Symbols()
        rows = self.rows(
            "select site from p_sites union select site from p_costs where site is not null"
        )
        self.fill("places", [(text, *call_sites.place_of(text, symbols)) for (text,) in rows])

    def stragglers(self) -> list[dict[str, Any]]:
        """Steps that waited for a rank which came late to a collective, the one that they waited
        for longest, and what that rank did longer than the others before. After tables()."""
        names = (
            *("process", "start_ns", "waited_ns", "straggler", "rank", "operation", "function"),
            *("seq", "late_ns", "fetch_ns", "compute_ns", "checkpoint_ns", "transfer_ns"),
            *("communication_ns", "io_ns", "unattributed_ns"),
        )
        rows = self.rows(
            "select n.number, w.start_ns, w.waited_ns, k.number, m.rank, w.top.operation, "
            "w.top.function, w.top.seq, w.top.late_ns, r.fetch_ns, r.compute_ns, r.checkpoint_ns, "
            "r.transfer_ns, r.communication_ns, r.io_ns, r.other_ns "
            "from step_waits w join numbers n using (process) "
            "join numbers k on k.process = w.top.last_process "
            "join matched m on m.run = w.top.run and m.family = w.top.family "
            "and m.ranks = w.top.ranks and m.seq = w.top.seq and m.is_last "
            "left join reasons r on r.run = m.run and r.family = m.family and r.ranks = m.ranks "
            "and r.seq = m.seq order by 1, 2"
        )
        return [dict(zip(names, row)) for row in rows]

    def _join_open_times(self) -> None:
        """How long any process had an I/O call open, per category and in total."""
        self.run("create or replace table open_times (cat varchar, any_ns bigint)")
        sets: dict[str | None, list[bytes]] = {None: []}
        for cat, packed in self.rows("from p_open"):
            sets.setdefault(cat, []).append(packed)
            sets[None].append(packed)
        self.fill(
            "open_times",
            [(cat, min(_reader.union_length(each), MOST)) for cat, each in sets.items()],
        )

    def _number_processes(self) -> None:
        """In the order of the files, without processes that only appear in metadata."""
        self.run(
            "create or replace table numbers as "
            "select process, row_number() over (order by process) - 1 as number from p_processes "
            "where events > 0 or starts > 0"
        )

    def _number_runs(self) -> None:
        """Fills `run_numbers` (per process) and `run_ids`."""
        rows = self.rows(
            "select process, coalesce(run, ''), least(began_ns, first_ns), "
            "greatest(ended_ns, last_ns) from p_processes join numbers using (process) order by 1"
        )
        same = self._mpi_jobs()
        runs = runs_of([Life(same.get(row[0], row[1]), *row[2:]) for row in rows])
        self.run("create or replace table run_numbers (process bigint, run bigint)")
        self.run("create or replace table run_ids (run bigint, id varchar, guessed boolean)")
        self.fill(
            "run_numbers",
            [
                (rows[member][0], number)
                for number, run in enumerate(runs, 1)
                for member in run.members
            ],
        )
        self.fill(
            "run_ids", [(number, run.id or None, run.guessed) for number, run in enumerate(runs, 1)]
        )

    def _mpi_jobs(self) -> dict[int, str]:
        """The run of each rank of an MPI program whose launcher has named no job: where traces have
        each rank of MPI_COMM_WORLD once, and all of them lived at the same time, they are one."""
        rows = self.rows(
            "select process, coalesce(p.run, ''), p.rank, w.size, least(began_ns, first_ns), "
            "greatest(ended_ns, last_ns) from p_processes p join (select process, "
            "max(members_of(ranks))::bigint as size from p_collectives where family = 'MPI 0' "
            "and ranks like '0-%' group by process) w using (process) order by process"
        )
        jobs: dict[int, list[tuple[Any, ...]]] = {}
        for row in rows:
            jobs.setdefault(row[3], []).append(row)
        same = {}
        for count, ranks in jobs.items():
            whole = sorted(row[2] if row[2] is not None else -1 for row in ranks)
            if whole != list(range(count)) or max(r[4] for r in ranks) > min(r[5] for r in ranks):
                continue
            run = min(row[1] for row in ranks)
            same.update({row[0]: run for row in ranks})
        return same


def _quoted(words: Iterable[str]) -> str:
    return ", ".join(f"'{word}'" for word in words)


def _roles() -> str:
    """The reader's list of calls, as a view."""
    # A name does the same in every category.
    known = {name: (role, written) for name, role, _, written in _reader.calls()}
    rows = ", ".join(f"('{name}', '{role}', {written})" for name, (role, written) in known.items())
    return f"create or replace view roles as from (values {rows}) v(name, role, first_is_written)"


def _process_row(number: int, process: Process, ahead: int = 0) -> tuple[Any, ...]:
    def moment(time: int | None) -> int | None:
        return None if time is None else time - ahead

    return (
        number,
        process.pid,
        process.ppid,
        process.host or None,
        int(process.rank) if process.rank.isdecimal() else None,
        process.name or None,
        process.command or process.program or None,
        process.events,
        process.threads,
        moment(process.first),
        moment(process.last),
        min(process.lost, MOST),
        process.starts,
        process.ends,
        process.recovered,
        process.trace,
        moment(process.start),
        moment(process.end),
        process.cpu,
        process.cpu_wait,
        process.run,
        min(process.ring_requests, MOST),
    )


def _ranges(counts: Iterable[tuple[int, int]]) -> Iterable[tuple[int, int]]:
    """Ranges of processes with at most SWEPT spans together."""
    low = high = None
    total = 0
    for process, count in counts:
        if low is not None and high is not None and total + count > SWEPT:
            yield low, high
            low, total = None, 0
        low = process if low is None else low
        high = process
        total += count
    if low is not None and high is not None:
        yield low, high
