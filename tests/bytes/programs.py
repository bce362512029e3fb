"""Programs and libraries that nobody here wrote, each with the bytes that it must move."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

MIB = 1 << 20
SIZE = 24 * MIB
ROWS = 400_000

Words = Sequence[object]


@dataclass(frozen=True)
class Case:
    """A program, what it needs, and the bytes that pass at each file (or object, or peer)."""

    name: str
    command: Callable[[Path], Words]
    # Pattern of a path, and the files whose sizes, added up, must have passed there.
    reads: dict[str, str] = field(default_factory=dict)
    writes: dict[str, str] = field(default_factory=dict)
    programs: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    prepare: str = ""  # Python, run in the directory before, untraced
    # Why not all of it can be seen: what the report or the end records must name instead.
    gap: str = ""


def python(text: str) -> Callable[[Path], Words]:
    return lambda place: (sys.executable, "-c", text)


def tool(*words: object) -> Callable[[Path], Words]:
    return lambda place: words


def fio(engine: str, way: str = "read", **more: object) -> Callable[[Path], Words]:
    options = {"name": "job", "filename": "data", "size": SIZE, "bs": "64k", "rw": way, "thread": 1,
               "ioengine": engine, "iodepth": 8, "fallocate": "none", **more}  # fmt: skip
    return lambda place: ("fio", "--output=log", *(f"--{k}={v}" for k, v in options.items()))


DATA = f"import os; open('data', 'wb').write(os.urandom({SIZE}))"
TABLE = f"""
import numpy as np, pandas as pd
rng = np.random.default_rng(1)
table = pd.DataFrame({{c: rng.integers(0, 1 << 40, {ROWS}) for c in 'abcdef'}})
"""
CSV = TABLE + "table.to_csv('data.csv', index=False)"
PARQUET = TABLE + "table.to_parquet('data.parquet', compression=None)"
ARRAY = f"import numpy as np; np.save('data.npy', np.random.default_rng(1).random({SIZE} // 8))"

CASES = (
    Case("fio psync", fio("psync"), {"*/data": "data"}, programs=("fio",), prepare=DATA),
    Case(
        "fio libaio", fio("libaio", direct=0), {"*/data": "data"}, programs=("fio",), prepare=DATA
    ),
    Case("fio posixaio", fio("posixaio"), {"*/data": "data"}, programs=("fio",), prepare=DATA),
    Case("fio mmap", fio("mmap"), {"*/data": "data"}, programs=("fio",), prepare=DATA),
    Case(
        "fio psync, writing",
        fio("psync", "write"),
        writes={"*/data": "data"},
        programs=("fio",),
        prepare=DATA,
    ),
    Case(
        "fio io_uring",
        fio("io_uring"),
        {"*/data": "data"},
        programs=("fio",),
        prepare=DATA,
        gap="io_uring",
    ),
    Case(
        "pandas.read_csv",
        python("import pandas as pd; pd.read_csv('data.csv')"),
        {"*/data.csv": "data.csv"},
        modules=("pandas",),
        prepare=CSV,
    ),
    Case("pandas.to_csv", python(CSV), writes={"*/data.csv": "data.csv"}, modules=("pandas",)),
    Case(
        "pandas.read_parquet",
        python("import pandas as pd; pd.read_parquet('data.parquet')"),
        {"*/data.parquet": "data.parquet"},
        modules=("pandas", "pyarrow"),
        prepare=PARQUET,
    ),
    Case(
        "polars.read_csv",
        python("import polars as pl; pl.read_csv('data.csv')"),
        {"*/data.csv": "data.csv"},
        modules=("polars", "pandas"),
        prepare=CSV,
    ),
    Case(
        "polars.scan_parquet",
        python("import polars as pl; pl.scan_parquet('data.parquet').collect()"),
        {"*/data.parquet": "data.parquet"},
        modules=("polars", "pandas", "pyarrow"),
        prepare=PARQUET,
    ),
    Case(
        "pyarrow.csv",
        python("import pyarrow.csv as c; c.read_csv('data.csv')"),
        {"*/data.csv": "data.csv"},
        modules=("pyarrow", "pandas"),
        prepare=CSV,
    ),
    Case(
        "pyarrow.memory_map",
        python("""
import pyarrow as pa
with pa.memory_map('data.arrow') as source:
    table = pa.ipc.open_file(source).read_all()
    print(sum(int(column.to_numpy().sum()) for column in table.columns))
"""),
        {"*/data.arrow": "data.arrow"},
        modules=("pyarrow", "pandas"),
        prepare=TABLE
        + """
import pyarrow as pa
made = pa.Table.from_pandas(table)
with pa.OSFile('data.arrow', 'wb') as sink, pa.ipc.new_file(sink, made.schema) as writer:
    writer.write_table(made)
""",
    ),
    Case(
        "DuckDB, Parquet",
        python(
            "import duckdb; duckdb.sql('select sum(a),sum(b),sum(c),sum(d),sum(e),sum(f) from \\'data.parquet\\'').fetchall()"
        ),
        {"*/data.parquet": "data.parquet"},
        modules=("duckdb", "pandas", "pyarrow"),
        prepare=PARQUET,
    ),
    Case(
        "DuckDB, CSV",
        python("import duckdb; duckdb.sql('select sum(a) from \\'data.csv\\'').fetchall()"),
        {"*/data.csv": "data.csv"},
        modules=("duckdb", "pandas"),
        prepare=CSV,
    ),
    Case(
        "h5py",
        python("import h5py; h5py.File('data.h5')['x'][:]"),
        {"*/data.h5": "data.h5"},
        modules=("h5py",),
        prepare=f"""
import h5py, numpy as np
with h5py.File('data.h5', 'w') as file:
    file.create_dataset('x', data=np.random.default_rng(1).random(({SIZE} // 8192, 1024)), chunks=(64, 1024))
""",
    ),
    Case(
        "zarr",
        python("import zarr; zarr.open('data.zarr', mode='r')[:]"),
        {"*/data.zarr/*": "data.zarr/**/*"},
        modules=("zarr",),
        prepare=f"""
import numpy as np, zarr
made = zarr.create_array('data.zarr', shape=({SIZE} // 8,), chunks=(1 << 17,), dtype='f8', compressors=None)
made[:] = np.random.default_rng(1).random({SIZE} // 8)
""",
    ),
    Case(
        "LMDB",
        python("""
import lmdb
with lmdb.open('data.mdb', readonly=True, lock=False) as base, base.begin() as view:
    print(sum(len(value) for _, value in view.cursor()))
"""),
        {"*/data.mdb/data.mdb": "data.mdb/data.mdb"},
        modules=("lmdb",),
        prepare=f"""
import lmdb, os
with lmdb.open('data.mdb', map_size={4 * SIZE}) as base, base.begin(write=True) as view:
    for i in range({SIZE} // 100_000):
        view.put(b'%08d' % i, os.urandom(100_000))
""",
    ),
    Case(
        "safetensors",
        python("""
from safetensors import safe_open
with safe_open('data.safetensors', 'numpy') as file:
    print(sum(float(file.get_tensor(name).sum()) for name in file.keys()))
"""),
        {"*/data.safetensors": "data.safetensors"},
        modules=("safetensors", "numpy"),
        prepare=f"""
import numpy as np
from safetensors.numpy import save_file
rng = np.random.default_rng(1)
save_file({{f't{{i}}': rng.random({SIZE} // 64) for i in range(8)}}, 'data.safetensors')
""",
    ),
    Case(
        "numpy.memmap",
        python("import numpy as np; print(np.load('data.npy', mmap_mode='r').sum())"),
        {"*/data.npy": "data.npy"},
        modules=("numpy",),
        prepare=ARRAY,
    ),
    Case(
        "numpy.load",
        python("import numpy as np; np.load('data.npy')"),
        {"*/data.npy": "data.npy"},
        modules=("numpy",),
        prepare=ARRAY,
    ),
    Case("numpy.save", python(ARRAY), writes={"*/data.npy": "data.npy"}, modules=("numpy",)),
    Case(
        "torch.load",
        python("import torch; torch.load('data.pt', mmap=True)['x'].sum()"),
        {"*/data.pt": "data.pt"},
        modules=("torch",),
        prepare=f"import torch; torch.save({{'x': torch.rand({SIZE} // 4)}}, 'data.pt')",
    ),
    Case(
        "Hugging Face datasets",
        python("""
from datasets import Dataset
print(sum(len(row['x']) for row in Dataset.from_file('data/data-00000-of-00001.arrow')))
"""),
        {"*/data/data-00000-of-00001.arrow": "data/data-00000-of-00001.arrow"},
        modules=("datasets",),
        prepare=f"""
import os
from datasets import Dataset
Dataset.from_dict({{'x': [os.urandom(500).hex() for _ in range({SIZE} // 1000)]}}).save_to_disk('data')
""",
    ),
    Case(
        "sqlite",
        tool("sqlite3", "data.db", "select count(*), sum(length(x)) from t"),
        {"*/data.db": "data.db"},
        programs=("sqlite3",),
        prepare="""
import os, sqlite3
base = sqlite3.connect('data.db')
base.execute('create table t (x blob)')
base.executemany('insert into t values (?)', ((os.urandom(900),) for _ in range(20_000)))
base.commit()
""",
    ),
    Case(
        "sqlite, mapped",
        tool(
            "sqlite3", "data.db", "pragma mmap_size=1000000000; select sum(length(hex(x))) from t"
        ),
        {"*/data.db": "data.db"},
        programs=("sqlite3",),
        prepare="""
import os, sqlite3
base = sqlite3.connect('data.db')
base.execute('create table t (x blob)')
base.executemany('insert into t values (?)', ((os.urandom(900),) for _ in range(20_000)))
base.commit()
""",
    ),
    Case(
        "git hash-object",
        tool("git", "hash-object", "data"),
        {"*/data": "data"},
        programs=("git",),
        prepare=DATA,
    ),
    Case(
        "rsync",
        tool("rsync", "-W", "data", "copy"),
        {"*/data": "data"},
        {"*": "data"},
        programs=("rsync",),
        prepare=DATA,
    ),
    Case(
        "cp",
        tool("cp", "--reflink=never", "data", "copy"),
        {"*/data": "data"},
        {"*/copy": "data"},
        prepare=DATA,
    ),
    Case(
        "tar",
        tool("tar", "cf", "data.tar", "data"),
        {"*/data": "data"},
        {"*/data.tar": "data"},
        prepare=DATA,
    ),
    Case("sha256sum", tool("sha256sum", "data"), {"*/data": "data"}, prepare=DATA),
    Case("grep", tool("grep", "-c", "x", "data"), {"*/data": "data"}, prepare=DATA),
    Case(
        "node",
        tool(
            "node",
            "-e",
            "require('fs').createReadStream('data').pipe(require('fs').createWriteStream('copy'))",
        ),
        {"*/data": "data"},
        {"*/copy": "data"},
        programs=("node",),
        prepare=DATA,
    ),
    Case(
        "node, readFileSync",
        tool("node", "-e", "require('fs').readFileSync('data')"),
        {"*/data": "data"},
        programs=("node",),
        prepare=DATA,
    ),
    Case(
        "a Rust program",
        tool("./program", "data"),
        {"*/data": "data"},
        programs=("rustc",),
        prepare=DATA
        + """
import subprocess
open('p.rs', 'w').write('fn main() { println!("{}", std::fs::read(std::env::args().nth(1).unwrap()).unwrap().len()); }')
subprocess.run(['rustc', '-O', '-o', 'program', 'p.rs'], check=True)
""",
    ),
    Case(
        "a Go program",
        tool("./program", "data"),
        {"*/data": "data"},
        programs=("go",),
        gap="Go",
        prepare=DATA
        + """
import os, subprocess
open('p.go', 'w').write('package main\\nimport ("os"; "fmt")\\nfunc main() { b, _ := os.ReadFile(os.Args[1]); fmt.Println(len(b)) }\\n')
subprocess.run(['go', 'build', '-o', 'program', 'p.go'], check=True, env={**os.environ, 'GOCACHE': os.getcwd() + '/c', 'GO111MODULE': 'off'})
""",
    ),
)


def is_missing(case: Case) -> str:
    """What the machine lacks for it."""
    import importlib.util

    programs = [name for name in case.programs if shutil.which(name) is None]
    modules = [name for name in case.modules if importlib.util.find_spec(name) is None]
    return ", ".join([*programs, *modules])
