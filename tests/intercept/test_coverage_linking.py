"""Calls are seen however the code that makes them was linked, and however it was loaded."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support import intercept, traces
from support.build import command, compile_c
from support.run import run as run_bare

# What work() of cov_lib.c and cov_linked.c does to its file.
WORK = ["open", "write", "close", "open", "write", "close", "fopen", "fwrite", "fclose"]
TEXT = "direct\ntable\nstream\n"

# How the linker fills the table of imports, and what is read-only when the program runs.
LINKED = {
    "lazy": ("-Wl,-z,lazy,-z,norelro",),
    "partial": ("-Wl,-z,lazy,-z,relro",),
    "full": ("-Wl,-z,now,-z,relro",),
    "noplt": ("-Wl,-z,now,-z,relro", "-fno-plt"),
    "fixed": ("-no-pie", "-fno-pie", "-Wl,-z,lazy"),
    "static-pie-like": ("-pie", "-fPIE", "-Wl,-z,now,-z,relro,-z,separate-code"),
    "gnu-hash": ("-Wl,--hash-style=gnu",),
    "sysv-hash": ("-Wl,--hash-style=sysv",),
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    return work


def library(*flags: str) -> Path:
    source = intercept.PROGRAMS / "cov_lib.c"
    common = ("-shared", "-fPIC", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror")
    return compile_c(source, None, *common, *flags, link=False)


def names(process: intercept.Process, path: Path) -> list[str]:
    return [event.name for event in process.events if event.path == str(path)]


@intercept.IN_EACH_MODE
@pytest.mark.parametrize("how", LINKED)
def test_a_program_linked_so(place: Path, mode: str, how: str) -> None:
    program = intercept.program("cov_linked", mode, "-O2", *LINKED[how])
    before, during, after = (place / name for name in ("before", "during", "after"))
    run = intercept.traced(program, before, during, after, mode=mode, cwd=place)
    assert [path.read_text() for path in (before, during, after)] == [TEXT] * 3
    assert names(run.one, during) == WORK
    # Preloaded, all of the program is traced; called, what lies between start and end.
    assert names(run.one, before) == (WORK if mode == intercept.PRELOAD else [])
    assert names(run.one, after) == (WORK if mode == intercept.PRELOAD else [])


@pytest.mark.long(keep=24)
@intercept.IN_EACH_MODE
@pytest.mark.parametrize("how", ["lazy", "partial", "full", "noplt", "gnu-hash", "sysv-hash"])
@pytest.mark.parametrize(
    "way", ["early", "lazy", "local", "global", "deep", "lazydeep", "thread", "below"]
)
def test_a_library_loaded_so(place: Path, mode: str, way: str, how: str) -> None:
    program = intercept.program("cov_dl", mode)
    file = place / "file"
    words = (way, library(*LINKED[how]), file)
    run = intercept.traced(program, *words, mode=mode, cwd=place)
    assert file.read_text() == TEXT
    assert names(run.one, file) == WORK


@intercept.IN_EACH_MODE
@pytest.mark.parametrize("way", ["lazy", "local", "deep", "thread", "again"])
def test_a_library_found_by_its_name(place: Path, mode: str, way: str) -> None:
    """The loader looks for it along the caller's search path, which it goes on knowing."""
    folder = place.parent / "lib"
    folder.mkdir()
    shutil.copy(library(), folder / "libmine.so.1")
    program = intercept.program("cov_dl", mode, f"-Wl,-rpath,{folder}")
    file = place / "file"
    run = intercept.traced(program, way, "libmine.so.1", file, mode=mode, cwd=place)
    times = 5 if way == "again" else 1
    assert file.read_text() == TEXT * times
    assert names(run.one, file) == WORK * times


@intercept.IN_EACH_MODE
def test_libraries_that_come_and_go(place: Path, mode: str) -> None:
    program = intercept.program("cov_dl", mode)
    words: list[str | Path] = []
    expected: dict[Path, int] = {}
    for turn, way in enumerate(["again", "deep", "again", "local", "again", "below"] * 3):
        file = place / f"file{turn}"
        words += [way, library(f"-DTURN={turn % 4}"), file]
        expected[file] = 5 if way == "again" else 1
    run = intercept.traced(program, *words, mode=mode, cwd=place)
    for file, times in expected.items():
        assert file.read_text() == TEXT * times
        assert names(run.one, file) == WORK * times, file


@intercept.IN_EACH_MODE
def test_a_library_that_asks_for_the_next_function(place: Path, mode: str) -> None:
    """Its own pointer may lead past us; then the bytes show as not seen, and nothing is doubled."""
    program = intercept.program("cov_dl", mode)
    file = place / "file"
    run = intercept.traced(program, "next", library(), file, mode=mode, cwd=place)
    assert file.read_text() == "next\n"
    found = names(run.one, file)
    assert found in (["open", "write", "close"], ["open", "close"])
    end = run.one.end
    if "write" not in found:
        assert end["write_total"] - end["write_seen"] >= len("next\n")


@intercept.IN_EACH_MODE
@pytest.mark.parametrize("how", ["gnu-hash", "sysv-hash"])
def test_a_library_that_stands_before_libc(place: Path, mode: str, how: str) -> None:
    """Its function is called as before, and the call is one event."""
    wrapper = library("-DWRAPS", *LINKED[how])
    source = """
        #include <fcntl.h>
        #include <unistd.h>
        #include "intercept.h"
        extern int wrapped;
        int main(void) {
          START();
          int fd = open("file", O_WRONLY | O_CREAT, 0600);
          for (int i = 0; i < 10; ++i)
            if (write(fd, "x", 1) != 1) return 1;
          close(fd);
          return wrapped == 10 ? 0 : 2;
        }
    """
    file = place / "main.c"
    file.write_text(source)
    words = ("-Wl,--no-as-needed", str(wrapper), f"-Wl,-rpath,{wrapper.parent}")
    program = intercept.program(file, mode, *words)
    run_bare(program, cwd=place, enable=False)
    run = intercept.traced(program, mode=mode, cwd=place)
    assert names(run.one, place / "file") == ["open", *["write"] * 10, "close"]


def test_no_bind_intercepts_nothing(place: Path) -> None:
    source = """
        #include <dftracer/dftracer.h>
        #include <fcntl.h>
        #include <unistd.h>
        int main(void) {
          DFTRACER_C_INIT_NO_BIND(NULL, NULL, NULL);
          DFTRACER_C_FUNCTION_START();
          close(open("file", O_WRONLY | O_CREAT, 0600));
          DFTRACER_C_FUNCTION_END();
          return 0;
        }
    """
    file = place / "main.c"
    file.write_text(source)
    program = intercept.program(file, intercept.FUNCTION)
    run = intercept.traced(program, mode=intercept.FUNCTION, cwd=place)
    assert run.one.events == []
    assert [event["name"] for event in run.one.trace.recorded] == ["main"]


def test_preloaded_and_idle(place: Path) -> None:
    """DFTRACER_INIT=FUNCTION: nothing happens until the program calls, and this one never does."""
    program = intercept.program("cov_linked", intercept.PRELOAD)
    run = intercept.traced(program, "a", "b", "c", cwd=place, env={"DFTRACER_INIT": "FUNCTION"})
    assert run.processes == []
    assert traces.spools(run.directory) == []


def test_preloaded_and_called(place: Path) -> None:
    """Both ways at once: each call is one event, in one file."""
    program = intercept.program("cov_linked", intercept.FUNCTION)
    env = {"LD_PRELOAD": str(intercept.library()), "DFTRACER_INIT": "PRELOAD"}
    words = ("before", "during", "after")
    run = intercept.traced(program, *words, mode=intercept.FUNCTION, cwd=place, env=env)
    found = [names(process, place / "during") for process in run.processes]
    assert [one for one in found if one] == [WORK]
    assert sum(len(names(process, place / "before")) for process in run.processes) == len(WORK)


def test_preloaded_for_a_program_that_calls(place: Path) -> None:
    program = intercept.program("cov_linked", intercept.FUNCTION)
    env = {"LD_PRELOAD": str(intercept.library()), "DFTRACER_INIT": "FUNCTION"}
    words = ("before", "during", "after")
    run = intercept.traced(program, *words, mode=intercept.FUNCTION, cwd=place, env=env)
    assert names(run.one, place / "before") == []
    assert names(run.one, place / "during") == WORK
    assert names(run.one, place / "after") == []


def test_tracing_that_begins_again(place: Path) -> None:
    """Ended and started in turn: what lies between start and end is recorded, nothing else."""
    source = """
        #include <dftracer/dftracer.h>
        #include <fcntl.h>
        #include <stdio.h>
        #include <unistd.h>
        static void work(const char* name, int turn) {
          char path[32];
          snprintf(path, sizeof path, "%s%d", name, turn);
          int fd = open(path, O_WRONLY | O_CREAT, 0600);
          if (write(fd, "x", 1) != 1) _exit(1);
          close(fd);
        }
        int main(void) {
          for (int turn = 0; turn < 4; ++turn) {
            char log[32];
            snprintf(log, sizeof log, "../out/t%d.pfw", turn);
            work("without", turn);
            DFTRACER_C_INIT(log, NULL, NULL);
            work("with", turn);
            DFTRACER_C_FINI();
          }
          work("without", 4);
          return 0;
        }
    """
    file = place / "main.c"
    file.write_text(source)
    program = intercept.program(file, intercept.FUNCTION)
    out = place.parent / "out"
    run = intercept.traced(program, mode=intercept.FUNCTION, cwd=place, out=out)
    assert [(event.name, event.path) for event in run.events] == [
        (name, f"{place}/with{turn}") for turn in range(4) for name in ("open", "write", "close")
    ]


NEWER_LIBC = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
typedef int List(FILE*, const char*, va_list);
static int read_from(FILE* stream, const char* format, va_list list) {
  void* libc = dlopen("libc.so.6", RTLD_LAZY);
  return ((List*)dlsym(libc, "__isoc99_vfscanf"))(stream, format, list);
}
int __isoc23_vfscanf(FILE* stream, const char* format, va_list list) {
  return read_from(stream, format, list);
}
int __isoc23_vscanf(const char* format, va_list list) { return read_from(stdin, format, list); }
/* Never called: the tracer hands what it was given to the two above. */
int __isoc23_fscanf(FILE* stream, const char* format, ...) { return stream == 0 || *format == 0; }
int __isoc23_scanf(const char* format, ...) { return *format == 0; }
"""
READER = r"""
#include <stdarg.h>
#include <stdio.h>
int __isoc23_fscanf(FILE* stream, const char* format, ...);
int __isoc23_scanf(const char* format, ...);
int __isoc23_vfscanf(FILE* stream, const char* format, va_list list);
int __isoc23_vscanf(const char* format, va_list list);
static int listed(FILE* stream, const char* format, ...) {
  va_list list;
  va_start(list, format);
  const int found =
      stream != NULL ? __isoc23_vfscanf(stream, format, list) : __isoc23_vscanf(format, list);
  va_end(list);
  return found;
}
int main(int argc, char** argv) {
  FILE* stream = fopen(argv[argc - 1], "r");
  int a[4] = {0};
  double real = 0;
  char word[8];
  if (__isoc23_fscanf(stream, "%d %lf %7s", &a[0], &real, word) != 3) return 1;
  if (listed(stream, "%d", &a[1]) != 1) return 2;
  if (freopen(argv[argc - 1], "r", stdin) == NULL) return 3;
  if (__isoc23_scanf("%d %*f %*s", &a[2]) != 1 || listed(NULL, "%d", &a[3]) != 1) return 4;
  printf("%d %.2f %s %d, %d %d\n", a[0], real, word, a[1], a[2], a[3]);
  return fclose(stream);
}
"""


def test_a_program_built_for_a_newer_libc(place: Path) -> None:
    """Since glibc 2.38 compilers give `fscanf` another name, which this machine's may not have."""
    (place / "newer.c").write_text(NEWER_LIBC)
    (place / "reader.c").write_text(READER)
    newer = place / "libnewer.so"
    command("cc", "-shared", "-fPIC", place / "newer.c", "-o", newer)
    made = place / "reader"
    command("cc", place / "reader.c", newer, f"-Wl,-rpath,{place}", "-o", made)
    file = place / "file"
    file.write_text("12 3.25 word 34\n")
    run = intercept.traced(made, file, mode=intercept.PRELOAD, cwd=place)
    assert run.result.stdout == "12 3.25 word 34, 12 34\n"
    calls = ["fopen", "fscanf", "vfscanf", "freopen", "scanf", "vscanf", "fclose"]
    assert names(run.one, file) == calls


PRIVATE = r"""
#include <linux/aio_abi.h>
int io_submit(void* context, long count, struct iocb** requests) {
  return context != 0 && requests[0]->aio_fildes > 2 ? (int)count : -22;
}
"""
PRIVATE_USER = r"""
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <unistd.h>
int io_submit(void* context, long count, struct iocb** requests);
int work(const char* path) {
  struct iocb request = {.aio_fildes = (unsigned)open(path, O_WRONLY | O_CREAT, 0600)};
  struct iocb* requests[] = {&request};
  const int submitted = io_submit(&request, 1, requests);
  close((int)request.aio_fildes);
  return submitted == 1 ? 0 : submitted;
}
"""


@intercept.IN_EACH_MODE
@pytest.mark.parametrize("way", ["local", "lazy", "deep", "again"])
def test_a_function_of_a_library_that_only_its_user_sees(place: Path, mode: str, way: str) -> None:
    """As extensions of Python bring libaio with them: nobody else finds its functions by name."""
    folder = place.parent / "lib"
    folder.mkdir()
    for name, text in (("private", PRIVATE), ("user", PRIVATE_USER)):
        (folder / f"{name}.c").write_text(text)
    private, user = folder / "libprivate.so", folder / "libuser.so"
    command("cc", "-shared", "-fPIC", folder / "private.c", "-o", private)
    linked = ("-L", folder, "-lprivate", f"-Wl,-rpath,{folder}")
    command("cc", "-shared", "-fPIC", folder / "user.c", *linked, "-o", user)
    file = place / "file"
    program = intercept.program("cov_dl", mode)
    run = intercept.traced(program, way, user, file, mode=mode, cwd=place)
    assert names(run.one, file) == ["open", "io_submit", "close"] * (5 if way == "again" else 1)


LOADING_ERROR = """
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include "intercept.h"
int main(void) {
  START();
  struct stat info;
  if (dlopen("/not/there.so", RTLD_NOW) != NULL) return 1;
  /* None of these has been called before. */
  int fd = open("file", O_WRONLY | O_CREAT, 0600);
  if (fd < 0 || stat("file", &info) != 0 || write(fd, "x", 1) != 1 || close(fd) != 0) return 2;
  const char* text = dlerror();
  printf("%s\\n", text);
  fflush(stdout);
  fputs(text, stdout);
  puts("");
  fprintf(stdout, "%s\\n", text);
  return dlerror() == NULL ? 0 : 3;
}
"""


@intercept.IN_EACH_MODE
def test_what_the_loader_said_is_still_there(place: Path, mode: str) -> None:
    """Finding out where a call goes must not be a question that the loader forgets others for."""
    file = place / "main.c"
    file.write_text(LOADING_ERROR)
    program = intercept.program(file, mode)
    bare = run_bare(program, cwd=place, enable=False).stdout
    assert "/not/there.so" in bare
    run = intercept.traced(program, mode=mode, cwd=place)
    assert run.result.stdout == bare


LOADS_IT_ITSELF = """
#include <dlfcn.h>
int main(int argc, char** argv) {
  if (argc != 4) return 98;
  void* preload = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
  void* user = dlopen(argv[2], RTLD_NOW);
  if (preload == 0 || user == 0) return 99;
  int (*work)(const char*) = (int (*)(const char*))dlsym(user, "work");
  int (*open_there)(const char*, int) = (int (*)(const char*, int))dlsym(preload, "open");
  return open_there(argv[2], 0) < 0 ? 97 : work(argv[3]);
}
"""


def test_a_preload_library_that_the_program_loads_itself(place: Path) -> None:
    """It stands behind libc then, and before whatever is loaded later."""
    file = place / "main.c"
    file.write_text(LOADS_IT_ITSELF)
    for name, text in (("private", PRIVATE), ("user", PRIVATE_USER)):
        (place / f"{name}.c").write_text(text)
    private, user = place / "libprivate.so", place / "libuser.so"
    command("cc", "-shared", "-fPIC", place / "private.c", "-o", private)
    command("cc", "-shared", "-fPIC", place / "user.c", private, "-o", user)
    env = intercept.settings(place.parent / "out")
    library = env.pop("LD_PRELOAD")
    program = intercept.program(file, intercept.PRELOAD)
    assert run_bare(program, library, user, place / "x", cwd=place, env=env).rc == 0
