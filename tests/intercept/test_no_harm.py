"""A traced program does what it does bare: results, errno, offsets, buffers, files, descriptors,
environment, signals, cancellation and exit status are compared, each program run both ways."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from support import compare_runs, intercept
from support.build import ROOT
from support.compare_runs import assert_marks, both, marks, program
from support.run import run

LARGE = ("-D_FILE_OFFSET_BITS=64", "-D_TIME_BITS=64")


# ---- Programs of a kind of their own -------------------------------------------------------------


@intercept.IN_EACH_MODE
@pytest.mark.parametrize("flags", [(), ("-rdynamic",), ("-rdynamic", "-O2", "-Wl,-z,now")])
def test_program_with_functions_called_open_and_read(
    tmp_path: Path, flags: tuple[str, ...], mode: str
) -> None:
    both(tmp_path, program("harm_own", "-fno-builtin", *flags), mode=mode)


@intercept.IN_EACH_MODE
def test_allocator_of_the_program_that_does_io(tmp_path: Path, mode: str) -> None:
    done = both(tmp_path, program("harm_malloc", "-fno-builtin"), mode=mode)
    assert_marks(marks(done.one), {1000: 2000})


@intercept.IN_EACH_MODE
@pytest.mark.parametrize("form", [(), LARGE], ids=["plain", "64"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_walk_over_a_file(
    tmp_path: Path, seed: int, form: tuple[str, ...], mode: str
) -> None:
    both(tmp_path, program("harm_fsx", *form), seed, 3000, mode=mode)


@intercept.IN_EACH_MODE
def test_little_of_everything(tmp_path: Path, mode: str) -> None:
    done = both(tmp_path, program("harm_io"), 8, mode=mode)
    assert_marks(marks(*done.processes), {1000: 1000})
    compare_runs.one_run(done.processes)


@pytest.mark.parametrize(
    "setting",
    [
        {"DFTRACER_ENABLE": "0"},
        {"DFTRACER_DISABLE_IO": "1"},
        {"DFTRACER_DISABLE_POSIX": "1"},
        {"DFTRACER_DISABLE_STDIO": "1"},
        {"DFTRACER_DATA_DIR": "all"},
        {"DFTRACER_DATA_DIR": "/nothing"},
        {"DFTRACER_INC_METADATA": "0"},
        {"DFTRACER_INIT": "FUNCTION"},
        {"DFTRACER_TRACE_COMPRESSION": "0"},
        {"DFTRACER_WRITE_BUFFER_SIZE": "0"},
    ],
    ids=str,
)
def test_little_of_everything_under_every_setting(tmp_path: Path, setting: dict[str, str]) -> None:
    both(tmp_path, program("harm_io"), 4, traced_env=setting)


@intercept.IN_EACH_MODE
def test_our_own_calls_are_never_seen(tmp_path: Path, mode: str) -> None:
    """With everything traced, also the directory of the trace: files that only the tracer uses."""
    done = both(tmp_path, program("harm_io"), 4, traced_env={"DFTRACER_DATA_DIR": "all"}, mode=mode)
    assert [event for event in done.events if str(done.directory) in (event.path or "")] == []
    # One event a call, however it is nested inside: marks are single calls.
    assert_marks(marks(*done.processes), {1000: 1000})


PYTHON = """
import os, sys, tempfile, threading, subprocess, shutil, mmap, select, signal, io
print(sys.argv, os.getcwd() == os.path.realpath('.'), sorted(os.listdir('.')))
with tempfile.TemporaryDirectory(dir='.') as place:
    path = os.path.join(place, 'file')
    with open(path, 'w') as file:
        print(file.write('text' * 1000), file.fileno(), file.tell())
    with open(path, 'rb', buffering=0) as file:
        print(len(file.read(100)), file.seek(-5, 2), file.read(), file.readinto(bytearray(3)))
    os.rename(path, path + '2')
    print(os.stat(path + '2').st_size, shutil.copyfile(path + '2', path) == path)
    with open(path, 'r+b') as file, mmap.mmap(file.fileno(), 0) as memory:
        memory[0:4] = b'TEXT'
        memory.flush()
    print(open(path).read(8), sorted(entry.name for entry in os.scandir(place)))
    def work(number):
        for _ in range(100):
            with open(path) as file:
                file.read(10)
    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
for name in ('missing', 'a' * 300, 'nul\\0byte', ''):
    try:
        open(name)
    except (OSError, ValueError) as error:
        print(type(error).__name__, getattr(error, 'errno', None))
print(subprocess.run(['cat'], input=b'through', stdout=subprocess.PIPE).stdout)
print(subprocess.run(['false']).returncode, os.system('exit 3'))
with os.popen('echo popen') as shell:
    print(shell.read())
r, w = os.pipe()
print(os.write(w, b'x'), select.select([r], [], [], 0)[0] == [r], os.read(r, 5))
try:
    os.read(999, 1)
except OSError as error:
    print(error)
print(os.open('data', os.O_RDONLY))
"""


@intercept.IN_EACH_MODE
def test_python_program(tmp_path: Path, mode: str) -> None:
    both(tmp_path, sys.executable, "-c", PYTHON, "word", mode=mode)


def test_interpreters_exit_codes_and_tracebacks(tmp_path: Path) -> None:
    both(tmp_path, sys.executable, "-c", "open('missing')", expect=1)


SCRIPTS = [
    "cp data a; mv a b; ln -s b c; cat c | sha256sum; rm b c; ls -l data | cut -c 1-10",
    "dd if=data of=copy bs=100 count=50 2>/dev/null; cmp -n 5000 data copy; stat -c %s copy",
    "tar cf t.tar data; mkdir x; tar xf t.tar -C x; cmp data x/data; tar tf t.tar; rm t.tar",
    "seq 1000 | sort -R --random-source=data | sort -n | tail -n 1; rm -rf none",
    "find . -type f -exec wc -c {} + | sort; grep -c . /etc/passwd >/dev/null; echo $?",
    "touch -d @1000 f; date -r f +%s; chmod 600 f; mkfifo p; (echo in > p &) ; cat p",
]


@intercept.IN_EACH_MODE
@pytest.mark.parametrize("script", SCRIPTS)
def test_shell_programs(tmp_path: Path, script: str, mode: str) -> None:
    both(tmp_path, "bash", "-c", script, mode=mode)


def test_library_needs_nothing_of_ours_in_the_working_directory(tmp_path: Path) -> None:
    """Neither the package nor the source tree need be there, only the two libraries."""
    copied = tmp_path / "somewhere" / "lib"
    shutil.copytree(intercept.library().parent, copied)
    cwd = tmp_path / "w"
    cwd.mkdir()
    (cwd / "data").write_bytes(compare_runs.DATA)
    settings = intercept.settings(tmp_path / "d")
    settings["LD_PRELOAD"] = str(copied / intercept.library().name)
    run(program("harm_io"), 1, cwd=cwd, env=settings)
    assert str(ROOT) not in settings["LD_PRELOAD"]
    assert_marks(marks(*intercept.read(tmp_path / "d")), {1000: 1000})
