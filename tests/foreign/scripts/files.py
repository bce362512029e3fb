"""What Python programs do with files and processes; started with one word, the part to play."""

import concurrent.futures
import gzip
import json
import mmap
import multiprocessing
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
from pathlib import Path


def data() -> None:
    records = [{"i": i, "name": f"n{i}", "half": i / 2} for i in range(2000)]
    with open("records.json", "w") as file:
        json.dump(records, file)
    with open("records.json") as file:
        assert json.load(file) == records
    with gzip.GzipFile("records.json.gz", "wb", mtime=0) as file:
        file.write(Path("records.json").read_bytes())
    with gzip.open("records.json.gz", "rt") as file:
        assert json.load(file) == records
    with open("raw", "wb", buffering=0) as file:
        for i in range(100):
            file.write(bytes([i]) * 1000)
    with open("raw", "r+b") as file:
        file.seek(5000)
        file.write(b"in the middle")
        file.truncate(90_000)
    descriptor = os.open("raw", os.O_RDWR)
    print(os.pread(descriptor, 15, 4999), os.pwritev(descriptor, [b"a", b"bc"], 10))
    os.lseek(descriptor, -5, os.SEEK_END)
    print(os.read(descriptor, 100), os.fstat(descriptor).st_size)
    os.close(descriptor)
    try:
        os.open("missing/file", os.O_RDONLY)
    except OSError as error:
        print(error)


def mapped() -> None:
    Path("mapped").write_bytes(bytes(range(256)) * 1024)
    with open("mapped", "r+b") as file, mmap.mmap(file.fileno(), 0) as view:
        print(view[255:258], view.find(b"\xfe\xff\x00"), len(view))
        view[1000:1005] = b"hello"
        view.flush()
        view.resize(512 * 1024)
        view[-1] = 7
    print(Path("mapped").stat().st_size)
    with mmap.mmap(-1, 4096) as anonymous:
        anonymous.write(b"nobody sees this")


def trees() -> None:
    for i in range(20):
        Path(f"tree/{i % 4}/{i}").mkdir(parents=True)
        Path(f"tree/{i % 4}/{i}/file").write_text("x" * i * 100)
    shutil.copytree("tree", "copy")
    shutil.move("copy/0", "moved")
    shutil.rmtree("copy/1")
    shutil.copy2("moved/4/file", "single")
    os.symlink("single", "link")
    print(sum(len(files) for _, _, files in os.walk(".")), sorted(os.listdir("copy")))
    print(shutil.make_archive("zipped", "zip", "moved")[-10:], shutil.disk_usage(".").total > 0)
    os.unlink("zipped.zip")  # holds the time
    with tempfile.TemporaryDirectory() as place, tempfile.NamedTemporaryFile(dir=place) as file:
        file.write(b"temporary")
        file.flush()
        print(os.stat(file.name).st_size)
    with tempfile.TemporaryFile() as file:
        file.write(b"without a name")
        file.seek(0)
        print(file.read())
    with tempfile.SpooledTemporaryFile(max_size=10) as file:
        file.write(b"first in memory, then not")


def children() -> None:
    print(subprocess.check_output(["cat", "-"], input=b"through a pipe"))
    done = subprocess.run("echo out; echo err >&2; exit 3", shell=True, capture_output=True)
    print(done)
    with open("output", "wb") as file:
        subprocess.run(["seq", "1000"], stdout=file, check=True)
    with open("output", "rb") as file:
        print(subprocess.check_output(["tail", "-n", "1"], stdin=file))
    print(subprocess.run(["false"]).returncode, os.system("exit 5") >> 8)
    print(os.popen("head -n 2 output").read())
    print(subprocess.run([sys.executable, "-c", "open('by_child', 'w').write('c' * 5000)"]))
    try:
        subprocess.run(["no-such-program"])
    except FileNotFoundError as error:
        print(error)
    print(subprocess.run(["env"], env={"ONLY": "this"}, capture_output=True).stdout)
    print(subprocess.run(["sh", "-c", "kill -9 $$"]).returncode)
    child = os.fork()
    if child == 0:
        Path("by_fork").write_text("f" * 3000)
        os._exit(6)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def part(number: int) -> int:
    path = Path(f"part{number}")
    path.write_bytes(bytes([number]) * (1000 + number))
    return len(path.read_bytes())


def pools() -> None:
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        print(list(pool.map(part, range(16))))
    for number, how in enumerate(("fork", "spawn", "forkserver"), 1):
        context = multiprocessing.get_context(how)
        with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
            print(how, list(pool.map(part, range(20 * number, 20 * number + 6))))
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(pool.map(part, range(100, 106)))


def database() -> None:
    connection = sqlite3.connect("db")
    print(connection.execute("PRAGMA journal_mode=WAL").fetchone())
    connection.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, who TEXT)")
    connection.commit()

    def insert(who: str) -> None:
        own = sqlite3.connect("db", timeout=60)
        for _ in range(20):
            with own:
                own.execute("INSERT INTO t(who) VALUES(?)", (who,))
        own.close()

    threads = [threading.Thread(target=insert, args=(f"thread {i}",)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(connection.execute("SELECT who, count(*) FROM t GROUP BY who").fetchall())
    # In whichever order they were made, the rows are the same from here on.
    connection.execute("DELETE FROM t")
    connection.executemany("INSERT INTO t(who) VALUES(?)", [(str(i),) for i in range(500)])
    connection.commit()
    print(connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone())
    print(connection.execute("PRAGMA integrity_check").fetchone())
    connection.close()
    print(sorted(os.listdir(".")))


if __name__ == "__main__":
    globals()[sys.argv[1]]()
