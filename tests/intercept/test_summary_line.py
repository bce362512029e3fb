"""The line at the end of a run: what was recorded, what was not, and why there is nothing if there
is nothing. And what the trace itself says about the bytes that went past us."""

from __future__ import annotations

import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support import compare_runs, intercept
from support.build import compile_c
from support.compare_runs import DATA, nothing_else, program
from support.intercept import PROGRAMS, Process
from support.limits import HANG
from support.processes import place
from support.run import Result, environment, run

ON = {"DFTRACER_SUMMARY": "1", "DFTRACER_DISABLE_IO": "0"}


def steps(
    tmp_path: Path, *words: str, env: dict[str, str] | None = None, expect: int = 0
) -> tuple[str, Result]:
    """What the tracer says about a run of harm_steps, and the run."""
    cwd, out = place(tmp_path)
    settings = {**intercept.settings(out), **ON, **(env or {})}
    made = program("harm_steps")
    done = run(made, *words, cwd=cwd, env=settings, stderr=None, expect=expect)
    return done.stderr, done


def one_line(text: str) -> str:
    assert re.fullmatch(r"dftracer: [^\n]+\n", text), text
    return text


def number(line: str, word: str) -> int:
    """The number that stands before a word."""
    found = re.search(rf"(\d[\d,]*) (?:[a-z]+ )?{word}", line)
    assert found, f"no {word} in {line!r}"
    return int(found[1].replace(",", ""))


def recorded(processes: list[Process]) -> int:
    return sum(len(process.events) for process in processes)


# ---- The numbers ---------------------------------------------------------------------------------


def test_program_that_closes_stderr_on_its_way_out(tmp_path: Path) -> None:
    cwd, out = place(tmp_path)
    done = run("cat", "data", cwd=cwd, env={**intercept.settings(out), **ON}, stderr=None)
    assert number(one_line(done.stderr), "event") > 0


def test_one_process(tmp_path: Path) -> None:
    said, _ = steps(tmp_path, "marks=1000:300")
    line = one_line(said)
    found = intercept.read(tmp_path / "d")
    assert number(line, "event") == recorded(found)
    assert number(line, "file") == len({event.path for event in found[0].events if event.path})
    assert number(line, "process") == 1
    assert str(tmp_path / "d") in line or "/d/t" in line


def test_several_processes_have_one_line(tmp_path: Path) -> None:
    words = ("marks=1000:300", *["fork{", "marks=1001:50", "_exit=0", "}"] * 3)
    said, _ = steps(tmp_path, *words, "system=marks=1002:5", "spawn=marks=1003:5", "again=2:2000:5")
    line = one_line(said)
    nothing_else(tmp_path / "d")
    found = intercept.read(tmp_path / "d")
    assert number(line, "event") == recorded(found)
    assert number(line, "file") >= 1
    pids = {process.pid for process in found}
    assert number(line, "process") == len(pids)


def test_filtered_calls_are_counted(tmp_path: Path) -> None:
    cwd = tmp_path / "w"
    (tmp_path / "other").mkdir()
    env = {"DFTRACER_DATA_DIR": str(tmp_path / "other")}
    said, _ = steps(tmp_path, "marks=1000:300", "fork{", "marks=1001:50", "_exit=0", "}", env=env)
    line = one_line(said)
    # open, 300 marks, and 50 of the child; what else is filtered is not of this program.
    assert number(line, "filtered") >= 351
    assert cwd.exists()
    found = intercept.read(tmp_path / "d")
    assert sum(compare_runs.end(process, "filtered") for process in found) <= number(
        line, "filtered"
    )


def test_counts_of_the_end_record(tmp_path: Path) -> None:
    steps(tmp_path, "marks=1000:300")
    (process,) = intercept.read(tmp_path / "d")
    assert process.end["calls"] >= 301
    assert process.end["calls"] - process.end["filtered"] == len(process.events)


@pytest.mark.parametrize(
    ("code", "least", "most"),
    [
        ("while time.process_time() < 0.2: pass", 150_000, 10**9),
        # Asleep, a process uses no processor: what it takes to begin and end Python is less.
        ("time.sleep(3)", 0, 2_500_000),
    ],
)
def test_processor_time_of_the_end_record(tmp_path: Path, code: str, least: int, most: int) -> None:
    cwd, out = place(tmp_path)
    words = f"import time\nopen('f', 'w').close()\n{code}"
    run(sys.executable, "-c", words, cwd=cwd, env={**intercept.settings(out), **ON}, stderr=None)
    (process,) = intercept.read(out)
    assert least <= process.end["cpu_us"] <= most


@pytest.mark.skipif(
    not Path("/proc/self/schedstat").exists(), reason="the kernel does not count it"
)
def test_time_of_waiting_for_a_processor_is_the_kernels(tmp_path: Path) -> None:
    """As the program itself reads it, while others have its processor."""
    cwd, out = place(tmp_path)
    words = """
import os, subprocess, sys, time
def waited():
    with open("/proc/self/schedstat") as file:
        return int(file.read().split()[1]) // 1000
before = waited()
os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
spin = "import time\\nend = time.monotonic() + 60\\nwhile time.monotonic() < end: pass"
other = subprocess.Popen([sys.executable, "-c", spin])
while waited() - before < 100_000: pass
other.kill()
other.wait()
print(waited() - before)
"""
    done = run(
        sys.executable, "-c", words, cwd=cwd, env={**intercept.settings(out), **ON}, stderr=None
    )
    told = next(p.end["cpu_wait_us"] for p in intercept.read(out) if p.end and "cpu_us" in p.end)
    least = int(done.stdout)
    assert 100_000 <= least <= told <= least + 60_000_000


def test_lost_events_are_said(tmp_path: Path) -> None:
    """A file system that is full."""
    mounted = tmp_path / "full"
    mounted.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=400k", "none", str(mounted)]
    if subprocess.run(words, capture_output=True, check=False).returncode != 0:
        pytest.skip("a file system cannot be mounted here (needs root)")
    try:
        cwd, _ = place(tmp_path)
        settings = {**intercept.settings(mounted), **ON, "DFTRACER_TRACE_COMPRESSION": "0"}
        done = run(*(program("harm_steps"), "marks=1000:60000"), cwd=cwd, env=settings, stderr=None)
        last = done.stderr.splitlines()[-1]
        assert number(last, "lost") > 0
        assert len(done.stderr.splitlines()) <= 2
    finally:
        subprocess.run(["umount", str(mounted)], check=True)


# ---- Off, and nothing ----------------------------------------------------------------------------


@pytest.mark.parametrize("off", ["0", "off", "false", "no"])
def test_off(tmp_path: Path, off: str) -> None:
    said, _ = steps(tmp_path, "marks=1000:3", env={"DFTRACER_SUMMARY": off})
    assert said == ""


@pytest.mark.parametrize("disabled", [{"DFTRACER_ENABLE": "0"}, {"DFTRACER_ENABLE": ""}])
def test_disabled_is_silent_and_leaves_no_file(tmp_path: Path, disabled: dict[str, str]) -> None:
    words = ("marks=1000:3", "fork{", "marks=1000:3", "}", "system=marks=1000:3", "_exit=0")
    said, _ = steps(tmp_path, *words, env=disabled)
    assert said == ""
    assert list((tmp_path / "d").iterdir()) == []
    assert [path.name for path in (tmp_path / "w").iterdir()] == ["data"]


def test_disabled_starts_no_thread(tmp_path: Path) -> None:
    cwd, out = place(tmp_path)
    code = "import os; print(len(os.listdir('/proc/self/task')), len(os.listdir('/proc/self/fd')))"
    said = []
    for env in ({}, {**intercept.settings(out), "DFTRACER_ENABLE": "0"}):
        done = run(sys.executable, "-c", code, cwd=cwd, env=env, enable=False)
        said.append(done.stdout)
    assert said[0] == said[1]


def test_everything_filtered(tmp_path: Path) -> None:
    said, _ = steps(tmp_path, "marks=1000:300", env={"DFTRACER_DATA_DIR": "/nothing/there"})
    line = one_line(said)
    assert number(line, "filtered") >= 301
    assert "DFTRACER_DATA_DIR" in line
    assert list((tmp_path / "d").iterdir()) == []


def test_nothing_done(tmp_path: Path) -> None:
    cwd, out = place(tmp_path)
    made = compile_c("int main(void) { return 0; }\n", link=False)
    done = run(made, cwd=cwd, env={**intercept.settings(out), **ON}, stderr=None)
    line = one_line(done.stderr)
    assert re.search(r"\b(no|nothing|0)\b", line)
    assert list(out.iterdir()) == []


def test_io_switched_off(tmp_path: Path) -> None:
    said, _ = steps(tmp_path, "marks=1000:300", env={"DFTRACER_DISABLE_IO": "1"})
    assert "DFTRACER_DISABLE_IO" in one_line(said)
    assert list((tmp_path / "d").iterdir()) == []


def test_program_that_never_starts_its_trace(tmp_path: Path) -> None:
    """FUNCTION mode, preloaded, and nobody calls: nothing is recorded and nothing is said."""
    said, _ = steps(tmp_path, "marks=1000:3", env={"DFTRACER_INIT": "FUNCTION"})
    assert said == "" or "FUNCTION" in one_line(said)
    assert list((tmp_path / "d").iterdir()) == []


# ---- Where it goes -------------------------------------------------------------------------------


def test_diagnostics_have_a_file_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "diagnostics"
    said, _ = steps(tmp_path, "marks=1000:3", env={"DFTRACER_LOG_PATH": str(path)})
    assert said == ""
    one_line(path.read_text())


@pytest.mark.parametrize("leave", ["exit=5", "_exit=5", "_Exit=5", "quick_exit=5"])
def test_however_the_first_process_leaves(tmp_path: Path, leave: str) -> None:
    said, _ = steps(tmp_path, "marks=1000:30", leave, expect=5)
    found = intercept.read(tmp_path / "d")
    assert number(one_line(said), "event") == recorded(found)


def test_first_process_that_execs(tmp_path: Path) -> None:
    """It is the same process, and says one line when it ends, for all that it was."""
    said, _ = steps(tmp_path, "marks=1000:30", "again=5:2000:10")
    found = intercept.read(tmp_path / "d")
    line = one_line(said)
    assert number(line, "event") == recorded(found)
    assert number(line, "process") == 1


def test_child_says_nothing_of_its_own(tmp_path: Path) -> None:
    """A shell, its children, and theirs: one line."""
    cwd, out = place(tmp_path)
    env = {**intercept.settings(out), **ON}
    script = "cat data > a; (cat a > b; sh -c 'cat b > c; cat c > d'); cat d | wc -c"
    done = run("sh", "-c", script, cwd=cwd, env=env, stderr=None)
    assert done.stdout.split() == [str(len(DATA))]
    line = one_line(done.stderr)
    found = intercept.read(out)
    assert number(line, "event") == recorded(found)
    assert number(line, "process") == len(found)
    compare_runs.one_run(found)


def test_two_runs_beside_each_other_have_a_line_each(tmp_path: Path) -> None:
    cwd, out = place(tmp_path)
    env = environment({**intercept.settings(out), **ON})
    running = [
        subprocess.Popen(
            [program("harm_steps"), f"marks=1000:{100 * n + 100}", "fork{", "marks=1001:5", "}"],
            cwd=cwd,
            env=env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for n in range(2)
    ]
    said = [process.communicate(timeout=HANG)[1] for process in running]
    nothing_else(out)
    for n, text in enumerate(said):
        line = one_line(text)
        assert number(line, "process") == 2
        assert 100 * n + 105 <= number(line, "event") < 100 * n + 150


def test_python_in_function_mode(tmp_path: Path) -> None:
    cwd, out = place(tmp_path)
    words = (PROGRAMS / "harm_pool.py", "fork", "close", out / "t.pfw")
    done = run(sys.executable, *words, cwd=cwd, env=ON, stderr=None)
    line = one_line(done.stderr)
    found = intercept.read(out)
    assert number(line, "event") == recorded(found)
    assert number(line, "process") == len(found)


# ---- Settings that are wrong ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DFTRACER_DATA_DIRS", "/x"),
        ("DFTRACER_ENABLED", "1"),
        ("DFTRACER_INC_METADATA", "perhaps"),
        ("DFTRACER_DISABLE_POSIX", "2"),
        ("DFTRACER_SUMMARY", "maybe"),
        ("DFTRACER_INIT", "SOMEHOW"),
    ],
)
def test_a_wrong_setting_is_named_once(tmp_path: Path, name: str, value: str) -> None:
    """In one line, however many processes read it."""
    words = ("marks=1000:3", "fork{", "marks=1001:3", "}", "system=marks=1002:3")
    said, _ = steps(tmp_path, *words, env={"DFTRACER_SUMMARY": "0", name: value})
    about = [line for line in said.splitlines() if name in line]
    assert len(about) == 1, said
    assert about[0].startswith("dftracer: ")


# ---- What went past us ---------------------------------------------------------------------------

VOLUME = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <unistd.h>

static long direct(long number, long a, long b, long c) {
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c)
                   : "rcx", "r11", "memory");
  return result;
}

int main(int argc, char** argv) {
  static char block[1 << 16];
  (void)argv;
  int fd = open("big", O_RDWR | O_CREAT, 0600);
  for (int i = 0; i < 160; ++i) {
    if (write(fd, block, sizeof block) < 0) return 1;
  }
  for (int i = 0; i < 160; ++i) {
    if (pread(fd, block, sizeof block, (long)i << 16) < 0) return 1;
  }
  FILE* file = fopen("big", "r");
  for (int i = 0; i < 100; ++i) {
    if (fread(block, 1, sizeof block, file) == 0) return 1;
  }
  fclose(file);
  file = fopen("text", "w");
  for (int i = 0; i < 1000; ++i) fprintf(file, "%d %0*d\n", i, 500, 7);
  fclose(file);
  for (int i = 1; i < argc; ++i) {
    direct(8, fd, 0, 0);
    direct(0, fd, (long)block, sizeof block); /* read, and nobody sees it */
    direct(8, fd, 0, 0);
    direct(1, fd, (long)block, 1 << 15);
  }
  return 0;
}
"""


@pytest.mark.skipif("x86_64" not in platform.machine(), reason="x86-64 code")
@pytest.mark.parametrize("unseen", [0, 3])
def test_bytes_seen_against_the_kernels_count(tmp_path: Path, unseen: int) -> None:
    cwd, out = place(tmp_path)
    made = compile_c(VOLUME, None, "-O1", link=False)
    run(made, *["x"] * unseen, cwd=cwd, env=intercept.settings(out))
    (process,) = intercept.read(out)
    end = process.end
    for kind, hidden in (("read", unseen << 16), ("write", unseen << 15)):
        gap = end[f"{kind}_total"] - end[f"{kind}_seen"]
        assert end[f"{kind}_seen"] > 10_000_000
        # What the loader reads before us is in the kernel's count, and nothing else.
        assert 0 <= gap - hidden < end[f"{kind}_total"] / 1000


def test_bytes_of_filtered_files_are_seen_too(tmp_path: Path) -> None:
    cwd, out = place(tmp_path)
    (cwd / "kept").mkdir()
    settings = {**intercept.settings(out), "DFTRACER_DATA_DIR": str(cwd / "kept")}
    made = compile_c(VOLUME, None, "-O1", link=False)
    script = f'echo x > kept/file; exec "{made}"'
    run("sh", "-c", script, cwd=cwd, env=settings)
    found = intercept.read(out)
    assert sum(compare_runs.end(process, "write_seen") for process in found) > 10_000_000


@pytest.mark.parametrize("script", ["cat data > copy", "cp data a; cat a a > b; sort b > c"])
def test_gap_of_ordinary_tools(tmp_path: Path, script: str) -> None:
    cwd, out = place(tmp_path)
    (cwd / "data").write_bytes((b"x" * 999 + b"\n") * 8_000)
    run("sh", "-c", script, cwd=cwd, env=intercept.settings(out))
    for process in intercept.read(out):
        for kind in ("read", "write"):
            total = compare_runs.end(process, f"{kind}_total")
            gap = total - compare_runs.end(process, f"{kind}_seen")
            assert gap >= 0, compare_runs.command(process)
            if total > 5_000_000:
                assert gap < total / 1000, compare_runs.command(process)
