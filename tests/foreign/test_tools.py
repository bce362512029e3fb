"""Programs that everybody uses, bare and traced: the same result, and a trace that tells what they
did. The slower ones are in slow/ (make test-programs) and cpython/ (make test-cpython)."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from support.foreign import OPENS, SCRIPTS, Seen, both, need_program

BLOCK = 4096


def numbers(count: int) -> bytes:
    """Bytes that no tool can shrink to nothing or take for a hole."""
    return b"".join(b"%d\n" % (i * 7919 % 1_000_003) for i in range(count))


def opened(seen: Seen, path: str | Path) -> bool:
    return bool(seen.events(*OPENS, path=path))


# ---- coreutils, find, tar ------------------------------------------------------------------------


def test_cat(tmp_path: Path) -> None:
    def prepare(work: Path) -> None:
        (work / "a").write_bytes(numbers(30_000))
        (work / "b").write_bytes(numbers(100))

    # A pipe between them: where it can, cat lets the kernel copy.
    seen = both("bash", "-c", "cat a b - < a | cat > out", place=tmp_path, prepare=prepare)
    sizes = {name: (seen.work / name).stat().st_size for name in ("a", "b", "out")}
    assert sizes["out"] == 2 * sizes["a"] + sizes["b"]
    assert seen.read("a") == 2 * sizes["a"]
    assert seen.read("b") == sizes["b"]
    assert seen.written("out") == sizes["out"]
    first, second = sorted(seen.of("cat"), key=lambda image: len(image.command), reverse=True)
    assert first.command == ["cat", "a", "b", "-"]
    assert second.command == ["cat"]
    assert first.ppid == second.ppid
    pipes = {event.path for event in first.calls("write")}
    assert pipes == {event.path for event in second.calls("read")}
    assert len(pipes) == 1
    assert str(pipes.pop()).startswith("pipe:[")


def test_cat_of_a_missing_file(tmp_path: Path) -> None:
    seen = both("cat", "missing", "/", place=tmp_path, expect=1)
    (failed,) = seen.events("open", "openat", path="missing")
    assert failed.args["ret"] == -1
    assert failed.args["errno"] == 2
    (directory,) = seen.events("read", path="/")
    assert directory.args["errno"] == 21


@pytest.mark.parametrize("reflink", ["auto", "never"])
def test_cp(tmp_path: Path, reflink: str) -> None:
    def prepare(work: Path) -> None:
        (work / "from" / "below").mkdir(parents=True)
        (work / "from" / "large").write_bytes(numbers(50_000))
        (work / "from" / "below" / "small").write_bytes(numbers(10))
        (work / "from" / "below" / "link").symlink_to("small")
        os.link(work / "from" / "large", work / "from" / "below" / "hard")
        with (work / "from" / "sparse").open("wb") as file:
            file.write(b"begin")
            file.truncate(1_000_000)

    seen = both(
        "cp", "-a", f"--reflink={reflink}", "from", "to", place=tmp_path, prepare=prepare
    )  # fmt: skip
    for name in ("sparse", "below/small"):
        assert opened(seen, f"from/{name}")
        assert opened(seen, f"to/{name}")
    if reflink == "never":
        # Of two names for a file, one is read and the other linked.
        size = (seen.work / "from" / "large").stat().st_size
        assert seen.read("from/large") + seen.read("from/below/hard") == size
        assert seen.written("to/large") + seen.written("to/below/hard") == size
    assert seen.events("mkdir", "mkdirat", path="to/below")
    (link,) = seen.events("symlink", "symlinkat", path="to/below/link")
    assert link.args["target"] == "small"
    (second,) = seen.events("link", "linkat")
    assert {second.path, second.args["path2_hash"]} == {
        str(seen.work / "to" / name) for name in ("large", "below/hard")
    }


def test_dd(tmp_path: Path) -> None:
    def prepare(work: Path) -> None:
        (work / "a").write_bytes(numbers(1_600_000)[: 2600 * BLOCK])

    seen = both(
        "dd", "if=a", "of=b", "bs=4k", "count=2500", "status=noxfer", place=tmp_path,
        prepare=prepare,
    )  # fmt: skip
    for name, path in (("read", "a"), ("write", "b")):
        found = seen.events(name, path=path)
        assert len(found) == 2500
        assert {(event.args["count"], event.args["ret"]) for event in found} == {(BLOCK, BLOCK)}
    assert len(seen.images) == 1


def test_sort_with_temporary_files(tmp_path: Path) -> None:
    def prepare(work: Path) -> None:
        (work / "in").write_bytes(numbers(15_000))

    seen = both(
        "sort", "-n", "-S", "40K", "--parallel=2", "in", "-o", "out", place=tmp_path,
        prepare=prepare,
    )  # fmt: skip
    size = (seen.work / "in").stat().st_size
    assert seen.read("in") == size
    assert seen.written("out") == size
    scratch = str(tmp_path / "tmp")
    made = {
        event.path
        for event in seen.events("mkostemp", "mkstemp", "open", "openat")
        if (event.path or "").startswith(scratch)
    }
    removed = {event.path for event in seen.events("unlink") if event.args["ret"] == 0}
    assert len(made) > 1
    assert made <= removed
    assert list((tmp_path / "tmp").iterdir()) == []


def test_find(tmp_path: Path) -> None:
    def prepare(work: Path) -> None:
        for i in range(40):
            place = work / "tree" / f"{i % 5}" / f"{i}"
            place.mkdir(parents=True)
            for j in range(i % 7):
                (place / f"f{j}").write_bytes(b"x" * j)
            (place / "link").symlink_to("..")

    words = "find tree ( -name 'f*' -size +0 -printf '%p %s %m\\n' ) -o ( -type l -delete )"
    seen = both(
        "bash", "-c", words.replace("(", "\\(").replace(")", "\\)") + " | sort", place=tmp_path,
        prepare=prepare,
    )  # fmt: skip
    image = seen.one("find")
    directories = [path for path in (seen.work / "tree").rglob("*") if path.is_dir()]
    assert len(directories) == 45
    for path in directories:
        assert image.calls("open", "openat", "opendir", path=path), path
        # What is there, the deleted link, `.` and `..`, and the call that says that it was all.
        links = 1 if len(path.relative_to(seen.work).parts) == 3 else 0
        entries = len(list(path.iterdir())) + links
        assert len(image.calls("readdir", path=path)) == entries + 3, path
    assert len(image.calls("unlinkat", "unlink")) == 40


def test_tar_with_gzip(tmp_path: Path) -> None:
    def prepare(work: Path) -> None:
        (work / "tree" / "below").mkdir(parents=True)
        (work / "tree" / "large").write_bytes(numbers(30_000))
        (work / "tree" / "below" / "small").write_bytes(b"small\n")
        (work / "tree" / "link").symlink_to("large")
        os.link(work / "tree" / "large", work / "tree" / "hard")
        (work / "tree" / "below" / "small").chmod(0o640)

    fixed = "--sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner"
    script = (
        f"tar {fixed} -czf t.tgz tree && mkdir out && tar -xzf t.tgz -C out && "
        "tar -tzf t.tgz && tar -df t.tgz --gzip && cmp tree/large out/tree/large; rm -r out; "
        "tar -xf missing.tar"
    )
    seen = both("bash", "-c", script, place=tmp_path, prepare=prepare, expect=2)
    large = (seen.work / "tree" / "large").stat().st_size
    archive = (seen.work / "t.tgz").stat().st_size
    packer = next(image for image in seen.of("tar") if "-czf" in image.command)
    unpacker = next(image for image in seen.of("tar") if "-xzf" in image.command)
    assert packer.read("tree/hard") == large
    assert unpacker.written("out/tree/hard") == large
    zippers = seen.of("gzip")
    assert len(zippers) >= 4
    assert sum(image.written("t.tgz") for image in zippers) == archive
    assert sum(image.read("t.tgz") for image in zippers) == 3 * archive
    assert all("tar" in seen.above(image) for image in zippers)
    assert unpacker.calls("link", "linkat")
    assert unpacker.calls("symlink", "symlinkat")


def test_many_small_tools_right_and_wrong(tmp_path: Path) -> None:
    seen = both("bash", SCRIPTS / "coreutils.sh", place=tmp_path, expect=7)
    programs = {image.program for image in seen.images}
    wanted = "awk mv rm ln mkdir touch stat chmod truncate install ls split tee sha256sum grep sed"
    assert set(wanted.split()) - {"awk"} <= programs
    assert seen.events("rename", "renameat", "renameat2", path="tree2")
    assert seen.events("truncate", "ftruncate", path="grown")
    assert seen.events("mkfifo", "mknod", path="fifo")
    assert seen.one("sha256sum").read("numbers") == (seen.work / "numbers").stat().st_size


# ---- Shells, interpreters ------------------------------------------------------------------------


def test_bash_redirections(tmp_path: Path) -> None:
    seen = both("bash", SCRIPTS / "redirections.sh", place=tmp_path, expect=3)
    shell = [image for image in seen.of("bash") if image.command[1:2] != ["-c"]]
    written = {
        name: sum(image.written(name) for image in shell)
        for name in ("a", "b", "chosen", "both", "swapped", "trapped")
    }
    size = {name: (seen.work / name).stat().st_size for name in written}
    assert written == {**size, "b": size["b"] + len("to b\n")}
    assert seen.written("nine") == (seen.work / "nine").stat().st_size
    (heir,) = [image for image in seen.of("bash") if image.command[1:2] == ["-c"]]
    assert heir.written("nine") == len("inherited over exec\n")
    # What a subshell and a process substitution turned into.
    assert any(image.calls(*OPENS, path="numbers") for image in seen.of("cat"))
    assert seen.written("upper") == (seen.work / "here").stat().st_size
    assert seen.events("pipe", "pipe2")
    assert seen.events("dup2")


def test_perl(tmp_path: Path) -> None:
    need_program("perl")
    seen = both("perl", SCRIPTS / "files.pl", place=tmp_path, expect=9)
    first = next(image for image in seen.of("perl") if image.command[1] != "-e")
    size = (seen.work / "lines").stat().st_size
    assert first.written("lines") == size
    assert first.read("lines") >= 2 * size
    assert first.calls("flock", path="raw")
    (cut,) = first.calls("ftruncate", path="raw")
    assert cut.args["length"] == 40
    assert first.calls("rename", path="sorted")
    # exec keeps the process: its second program is in the trace of the same pid.
    (second,) = [image for image in seen.of("perl") if image.command[1] == "-e"]
    assert second.pid == first.pid
    assert second.written("after-exec") == len("done\n")


def test_node(tmp_path: Path) -> None:
    need_program("node")
    seen = both("node", SCRIPTS / "files.js", place=tmp_path, expect=4)
    # It forks for its children; before they exec, they are node as well.
    image = max(seen.of("node"), key=lambda image: len(image.events))
    for name in ("sync", "tree/a/7", "large", "large.gz", "worker2"):
        assert image.written(name) == (seen.work / name).stat().st_size, name
    # Asynchronous calls are made by other threads.
    assert {event.tid for event in image.calls("read", "pread", path="tree/a/7")} != {image.pid}
    assert image.read("large") >= 300_000
    assert image.calls("fsync", path="numbered")
    assert seen.one("sort").written("sorted") == 6


@pytest.mark.parametrize("part", ["data", "mapped", "trees", "children", "pools", "database"])
def test_python(tmp_path: Path, part: str) -> None:
    # A copy: what is below a directory of the interpreter would not be shown.
    script = tmp_path / "files.py"
    shutil.copy(SCRIPTS / "files.py", script)
    env = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"}
    seen = both(sys.executable, script, part, place=tmp_path, env=env)
    check = {
        "data": python_data,
        "mapped": python_mapped,
        "trees": python_trees,
        "children": python_children,
        "pools": python_pools,
        "database": python_database,
    }
    check[part](seen)


def python_data(seen: Seen) -> None:
    size = (seen.work / "records.json").stat().st_size
    assert seen.written("records.json") == size
    assert seen.read("records.json") == 2 * size
    assert seen.written("records.json.gz") == (seen.work / "records.json.gz").stat().st_size
    writes = [event.args["ret"] for event in seen.events("write", path="raw")]
    assert writes == [1000] * 100 + [13]
    (read,) = seen.events("pread", path="raw")
    assert (read.args["count"], read.args["offset"], read.args["ret"]) == (15, 4999, 15)
    (vector,) = seen.events("pwritev", "pwritev2", path="raw")
    assert (vector.args["iovcnt"], vector.args["offset"], vector.args["ret"]) == (2, 10, 3)
    (failed,) = seen.events("open", path="missing/file")
    assert failed.args["errno"] == 2


def python_mapped(seen: Seen) -> None:
    (first, *_) = seen.events("mmap", path="mapped")
    assert first.args["length"] == 256 * 1024
    assert seen.events("msync")
    assert seen.events("mremap") or seen.events("ftruncate", path="mapped")


def python_trees(seen: Seen) -> None:
    for i in (2, 19):
        size = (seen.work / f"tree/{i % 4}/{i}/file").stat().st_size
        assert seen.written(f"tree/{i % 4}/{i}/file") == size
    assert seen.events("rename", path="copy/0")
    assert len([event for event in seen.events("rmdir") if "/copy/1" in str(event.path)]) >= 1
    assert seen.events("utimensat", path="single")
    scratch = [str(event.path) for event in seen.events("open") if "/tmp/" in str(event.path)]
    assert scratch


def python_children(seen: Seen) -> None:
    assert seen.one("seq").written("output") == (seen.work / "output").stat().st_size
    assert seen.one("tail").read("output") > 0
    assert seen.written("by_child") == 5000
    assert seen.written("by_fork") == 3000
    (writer,) = [image for image in seen.images if image.written("by_fork")]
    first = next(image for image in seen.images if "children" in image.command)
    assert writer.ppid == first.pid


def python_pools(seen: Seen) -> None:
    parts = [int(path.name.removeprefix("part")) for path in seen.work.glob("part*")]
    assert len(parts) == 16 + 18 + 6
    for number in parts:
        assert seen.written(f"part{number}") == 1000 + number
        assert seen.read(f"part{number}") == 1000 + number
    writers = {event.pid for event in seen.events("write") if "/part" in str(event.path)}
    assert len(writers) >= 5  # the threads' process, and at least one of each of four pools


def python_database(seen: Seen) -> None:
    assert seen.written("db") > 0
    assert seen.written("db-wal") > 0
    assert seen.events("mmap", path="db-shm")
    assert seen.events("unlink", path="db-wal")
    assert seen.events("fcntl", path="db")


# ---- Databases, version control, compilers -------------------------------------------------------


def test_sqlite3_with_wal(tmp_path: Path) -> None:
    need_program("sqlite3")
    script = f"sqlite3 db < '{SCRIPTS / 'sqlite.sql'}'; sqlite3 db .dump | sha256sum"
    seen = both("bash", "-c", script, place=tmp_path)
    assert seen.written("db-wal") > 100_000
    assert seen.read("db-wal") > 0
    assert seen.written("db") > 100_000
    assert seen.events("fdatasync", "fsync", path="db-wal")
    assert seen.events("mmap", path="db-shm")
    assert seen.events("mmap", path="db")
    assert [event.args["ret"] for event in seen.events("unlink", path="db-wal")][-1] == 0


def test_git(tmp_path: Path) -> None:
    need_program("git")
    # The index holds times and inode numbers.
    seen = both("bash", SCRIPTS / "git.sh", place=tmp_path, expect=1, ignore=["*/.git/index"])
    turned = seen.events("rename", path="repository/.git/index.lock")
    assert len(turned) >= 3
    assert {event.args["newpath_hash"] for event in turned} == {
        str(seen.work / "repository" / ".git" / "index")
    }
    packs = list((seen.work / "repository" / ".git" / "objects" / "pack").glob("*.pack"))
    assert len(packs) == 1
    assert opened(seen, packs[0])
    commands = {image.command[1] for image in seen.of("git") if len(image.command) > 1}
    assert {"init", "add", "commit", "merge", "gc", "repack", "pack-objects"} <= commands
    assert seen.read("repository/d5/file") >= (seen.work / "repository/d5/file").stat().st_size


def test_gcc_and_make(tmp_path: Path) -> None:
    def prepare(work: Path) -> None:
        shutil.copytree(SCRIPTS / "project", work, dirs_exist_ok=True)

    script = "make -j2 -s && ./app && touch sum.h && make -j2 -s && make -s broken"
    seen = both("bash", "-c", script, place=tmp_path, prepare=prepare, expect=2)
    assert seen.outcome
    assert seen.outcome.stdout == b"the sum is 15\n"
    compilers = seen.of("cc1")
    assert len(compilers) == 4 + 4 + 1
    for name in ("main", "sum", "text", "table"):
        size = (seen.work / f"{name}.c").stat().st_size
        assert seen.read(f"{name}.c") >= 2 * size
    assert seen.read("sum.h") >= 8 * (seen.work / "sum.h").stat().st_size
    assert opened(seen, "app")
    assert seen.written("main.o") > 0
    (app,) = seen.of("app")
    assert app.pid
    assert all({"gcc", "make", "bash"} <= seen.above(image) for image in compilers)
