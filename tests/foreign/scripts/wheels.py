"""What data and AI programs do to files, one library of their field at a time:

python wheels.py LIBRARY    in the directory where the files are to be; `START` in the environment
starts the trace from inside, before the library is imported.
"""

import os
import sys

if "START" in os.environ:
    from dftracer.python import dftracer

    dftracer.initialize_log()


def use_numpy() -> None:
    import numpy

    data = numpy.arange(50_000, dtype="f4")
    numpy.save("a.npy", data)
    assert (numpy.load("a.npy") == data).all()
    numpy.savez("a.npz", data=data)
    assert (numpy.load("a.npz")["data"] == data).all()
    assert float(numpy.load("a.npy", mmap_mode="r").sum()) > 0


def use_h5py() -> None:
    import h5py
    import numpy

    data = numpy.arange(50_000, dtype="f4")
    with h5py.File("a.h5", "w") as file:
        file.create_dataset("x", data=data, chunks=(1000,))
    with h5py.File("a.h5") as file:
        assert (file["x"][:] == data).all()


def use_pyarrow() -> None:
    import pyarrow
    from pyarrow import feather, parquet

    table = pyarrow.table({"x": range(50_000)})
    parquet.write_table(table, "a.parquet")
    assert parquet.read_table("a.parquet") == table
    feather.write_feather(table, "a.feather")
    assert feather.read_table("a.feather") == table


def use_pillow() -> None:
    from PIL import Image

    for name in ("a.png", "a.jpg", "a.bmp"):
        Image.new("RGB", (320, 200), (1, 2, 3)).save(name)
        Image.open(name).load()


def use_safetensors() -> None:
    import numpy
    from safetensors.numpy import load_file, save_file

    data = {"x": numpy.arange(50_000, dtype="f4")}
    save_file(data, "a.safetensors")
    assert (load_file("a.safetensors")["x"] == data["x"]).all()


def use_polars() -> None:
    import polars

    frame = polars.DataFrame({"x": range(50_000)})
    frame.write_parquet("a.parquet")
    assert polars.read_parquet("a.parquet").equals(frame)
    frame.write_csv("a.csv")
    assert polars.read_csv("a.csv").equals(frame)


def use_duckdb() -> None:
    import duckdb

    duckdb.sql("copy (select range as x from range(50000)) to 'a.parquet'")
    assert duckdb.sql("select count(*) from 'a.parquet'").fetchall() == [(50_000,)]


def use_sqlite() -> None:
    import sqlite3

    base = sqlite3.connect("a.db")
    base.execute("create table t(x)")
    base.executemany("insert into t values(?)", ((i,) for i in range(5000)))
    base.commit()
    base.close()


globals()[f"use_{sys.argv[1]}"]()
