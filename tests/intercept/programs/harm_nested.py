"""A tree of processes, each of another kind, each with marked reads: main, a multiprocessing child
(spawn), its fork, a Python started by subprocess, bash, cat. Each adds a line "name pid ppid" to
the file `tree`."""

import multiprocessing
import os
import subprocess
import sys

SHELL = 'echo "bash $$ $PPID" >> tree; cat data > copy & echo "cat $! $$" >> tree; wait $!'


def mark(name, who):
    fd = os.open("tree", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(fd, f"{name} {os.getpid()} {os.getppid()}\n".encode())
    os.close(fd)
    fd = os.open("data", os.O_RDONLY)
    for i in range(20):
        os.pread(fd, who, i)
    os.close(fd)


def spawned():
    mark("spawn", 1001)
    child = os.fork()
    if child == 0:
        mark("fork", 1002)
        subprocess.run([sys.executable, __file__, "inner"], check=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


if __name__ == "__main__":
    if sys.argv[1:] == ["inner"]:
        mark("python", 1003)
        subprocess.run(["bash", "-c", SHELL], check=True)
    else:
        mark("main", 1000)
        process = multiprocessing.get_context("spawn").Process(target=spawned)
        process.start()
        process.join()
        sys.exit(process.exitcode)
