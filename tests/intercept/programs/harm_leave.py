"""Marked reads, and then an end of one kind or another.

harm_leave.py return|exit|_exit|abort|kill|raise|thread|execv|fork|subprocess
"""

import os
import signal
import subprocess
import sys
import threading


def mark(who, count):
    fd = os.open("data", os.O_RDONLY)
    for i in range(count):
        os.pread(fd, who, i)
    os.close(fd)


def leave_thread():
    mark(1001, 100)
    raise SystemExit(5)


how = sys.argv[1]
mark(1000, 500)
if how == "exit":
    sys.exit(3)
if how == "_exit":
    os._exit(3)
if how == "abort":
    os.abort()
if how == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
if how == "raise":
    raise ValueError("unhandled")
if how == "thread":
    thread = threading.Thread(target=leave_thread)
    thread.start()
    thread.join()
if how == "execv":
    os.execv(sys.executable, [sys.executable, __file__, "return"])
if how == "fork" and os.fork() == 0:
    mark(1001, 100)
    os._exit(0)
if how == "fork":
    os.wait()
if how == "subprocess":
    # Of these the first is started by vfork and exec, the second by fork and exec.
    again = [sys.executable, "-c", "import os; os.pread(os.open('data', 0), 1001, 0)"]
    subprocess.run(again, check=True)
    subprocess.run(again, check=True, preexec_fn=lambda: None)
