"""Four workers of a multiprocessing pool, 100 marked reads each (tests/support/compare_runs.py).

harm_pool.py METHOD close|with [LOG]     LOG: starts the trace itself, in the parent only
"""

import json
import multiprocessing
import os
import sys


def begin(shared):
    global barrier
    barrier = shared


def work(number):
    barrier.wait()  # each worker has one of the four tasks
    fd = os.open("data", os.O_RDONLY)
    for i in range(100):
        os.pread(fd, 1000 + number, i)
    os.close(fd)
    return number, os.getpid(), os.getppid()


if __name__ == "__main__":
    method, how = sys.argv[1:3]
    if len(sys.argv) > 3:
        from dftracer.python import dftracer

        dftracer.initialize_log(sys.argv[3], data_dir=os.getcwd())
    context = multiprocessing.get_context(method)
    shared = context.Barrier(4)
    if how == "with":
        with context.Pool(4, begin, (shared,)) as pool:
            done = pool.map(work, range(4), chunksize=1)
    else:
        pool = context.Pool(4, begin, (shared,))
        done = pool.map(work, range(4), chunksize=1)
        pool.close()
        pool.join()
    fd = os.open("data", os.O_RDONLY)
    for i in range(50):
        os.pread(fd, 2000, i)
    print(json.dumps({"pid": os.getpid(), "workers": done}))
