"""`dftracer run`: what passes through, what is recorded, what is said."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support import intercept
from support.build import compile_c
from support.command import COMMAND, dftracer, environment, summary
from support.limits import HANG

from dftracer import _libcore

FORKS = """
import multiprocessing, os, sys
def work(n):
    with open(f"part-{n}", "w") as file:
        file.write("x" * 100)
if __name__ == "__main__":
    multiprocessing.set_start_method(sys.argv[1])
    workers = [multiprocessing.Process(target=work, args=(n,)) for n in range(3)]
    [worker.start() for worker in workers]
    [worker.join() for worker in workers]
"""

HYBRID = """
from dftracer.python import dftracer
log = dftracer.initialize_log("elsewhere.pfw")
start = log.get_time()
with open("data", "w") as file:
    file.write("x")
log.log_event("region", "app", start, log.get_time() - start, {"n": 7})
log.finalize()
with open("after", "w") as file:
    file.write("x")
"""


def read(directory: Path) -> list[intercept.Process]:
    return intercept.read(directory, ended=True, open_parents=True)


def events_in(processes: list[intercept.Process]) -> int:
    return sum(len(one.trace.recorded) for one in processes)


def test_a_program_is_recorded_and_its_streams_pass_through(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("text\n")
    done = dftracer("run", "-o", "d", "--", "cat", "in", "-", cwd=tmp_path, stdin=b"from stdin\n")
    assert done.stdout == "text\nfrom stdin\n"
    said = summary(done.stderr)
    processes = read(tmp_path / "d")
    assert said["where"] == "d"
    assert said["processes"] == str(len(processes)) == "1"
    assert said["events"] == str(events_in(processes))
    assert str(tmp_path / "in") in {event.path for event in processes[0].events}
    assert "next: dftracer report d (or info; view shows the timeline)\n" in done.stderr
    sizes = sum(path.stat().st_size for path in (tmp_path / "d").glob("*.pfw.gz"))
    assert said["bytes"] in (f"{sizes} B", f"{sizes / 1000:.3g} KB")


def test_default_directory_has_name_and_time(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("open('x', 'w').close()")
    for _ in range(2):
        dftracer("run", "python", "-W", "ignore", "train.py", cwd=tmp_path)
    made = sorted(path.name for path in tmp_path.glob("dftracer-*"))
    assert len(made) == 2
    assert all(re.fullmatch(r"dftracer-train-\d{8}-\d{6}(-2)?", name) for name in made)


def test_the_words_of_the_program_are_its_own(tmp_path: Path) -> None:
    words = ["-o", "--name", "", "a b", "--", "--help", "-q", "*"]
    show = "import json, sys; print(json.dumps(sys.argv[1:]))"
    for dashes in ([], ["--"]):
        done = dftracer("run", "-o", "d", *dashes, "python", "-c", show, *words, cwd=tmp_path)
        assert json.loads(done.stdout) == words


@pytest.mark.parametrize("code", [0, 1, 3, 42, 255])
def test_exit_status(code: int, tmp_path: Path) -> None:
    dftracer("run", "-o", "d", "--", "sh", "-c", f"exit {code}", cwd=tmp_path, expect=code)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL", "SIGSEGV", "SIGINT"])
def test_a_program_that_a_signal_killed(name: str, tmp_path: Path) -> None:
    number = getattr(signal, name)
    script = f"cat /etc/passwd > copy; kill -{number} $$"
    done = dftracer("run", "-o", "d", "--", "sh", "-c", script, cwd=tmp_path, expect=-number)
    assert "1 process ended without exit()" in done.stderr
    assert int(summary(done.stderr)["events"]) == events_in(read(tmp_path / "d"))
    assert not [path for path in (tmp_path / "d").iterdir() if path.name.startswith(".")]


KILLED = """
import os, signal, sys
def write_and_die(n):
    if os.fork() == 0:
        file = open(f"part-{n}", "wb", buffering=0)
        for _ in range(20000):
            file.write(b"x")
        os.kill(os.getpid(), signal.SIGKILL)
    os.wait()
write_and_die(0)
os.spawnlp(os.P_WAIT, "sh", "sh", "-c", "cat part-0 >copy; true")
write_and_die(1)
if sys.argv[1] == "leader":
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("dies", ["leader", "workers"])
def test_the_summary_counts_what_killed_processes_had_written(dies: str, tmp_path: Path) -> None:
    """Blocks that the writer had put into the trace before the kill, and files; also where another
    process of the run completed the trace."""
    (tmp_path / "kills.py").write_text(KILLED)
    expect = -signal.SIGKILL if dies == "leader" else 0
    words = ["run", "-o", "d", "--", sys.executable, "kills.py", dies]
    said = summary(dftracer(*words, cwd=tmp_path, expect=expect).stderr)
    processes = intercept.read(tmp_path / "d", ended=False, open_parents=True)
    assert events_in(processes) > 40_000
    assert int(said["events"].replace(",", "")) == events_in(processes)
    assert int(said["processes"]) == len(processes)
    assert int(said["files"]) >= 2


def test_programs_that_cannot_be_started(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("no")
    (tmp_path / "tool.py").write_text("pass")
    (tmp_path / "lost").write_text("#!/no/such/interpreter\n")
    (tmp_path / "lost").chmod(0o755)
    for program, code, text in (
        ("no-such-program", 127, "no-such-program: no such program in PATH"),
        ("./nothing", 127, "./nothing: no such program"),
        ("./plain", 126, "./plain: not executable"),
        (
            "./tool.py",
            126,
            "./tool.py: not executable; did you mean: dftracer run -- python ./tool.py",
        ),
        ("./", 126, "./: is a directory"),
        ("./lost", 127, "./lost: its interpreter or loader is missing"),
    ):
        done = dftracer("run", "--", program, cwd=tmp_path, expect=code)
        assert done.stderr == f"dftracer: {text}\n"
    assert not list(tmp_path.glob("dftracer-*"))  # no litter


def test_a_script_without_an_interpreter_is_the_shells(tmp_path: Path) -> None:
    (tmp_path / "script").write_text('echo "got $1"\n')
    (tmp_path / "script").chmod(0o755)
    assert dftracer("run", "-o", "d", "./script", "x", cwd=tmp_path).stdout == "got x\n"


def test_wrong_usage_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for words, code in (
        (["run"], 2),
        (["run", "-o", "d"], 2),
        (["run", "--data-dir", "a:b", "true"], 2),
        (["run", "--name", "a/b", "true"], 2),
        (["run", "-o", "file", "true"], 125),
        (["run", "-o", "/proc/nothing", "true"], 125),
    ):
        done = dftracer(*words, cwd=tmp_path, expect=code)
        assert len(done.stderr.splitlines()) == 1, done.stderr
    assert dftracer("run", "--no-such", "true", cwd=tmp_path, expect=2).stdout == ""


def test_signals_that_are_sent_to_the_command_reach_the_program(tmp_path: Path) -> None:
    script = "trap 'echo term; exit 9' TERM; trap 'echo usr' USR1; trap 'echo hup' HUP; echo ready;"
    script += "while :; do sleep 0.05; done"
    running = subprocess.Popen(
        [COMMAND, "run", "-o", "d", "--", "sh", "-c", script],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stdout is not None
    for number, answer in (
        (None, "ready"),
        (signal.SIGUSR1, "usr"),
        (signal.SIGHUP, "hup"),
        (signal.SIGTERM, "term"),
    ):
        if number is not None:
            running.send_signal(number)
        assert running.stdout.readline() == answer + "\n"
    _, err = running.communicate(timeout=HANG)
    assert running.returncode == 9
    assert int(summary(err)["processes"]) >= 1


def test_inherited_signal_settings_are_the_programs(tmp_path: Path) -> None:
    show = "grep -E 'Sig(Blk|Ign)' /proc/self/status"
    bare = subprocess.run(
        ["sh", "-c", f"trap '' HUP; {show}"], stdout=subprocess.PIPE, check=True, env=environment()
    )
    through = ("sh", "-c", "trap '' HUP; exec \"$@\"", "sh")
    done = dftracer("run", "-o", "d", "--", "sh", "-c", show, cwd=tmp_path, through=through)

    def masks(shown: bytes | str) -> list[int]:
        # Signals 32 and 33 are libc's own, which it ignores in whatever it spawns.
        return [int(line.split()[1], 16) & 0x7FFFFFFF for line in shown.splitlines()]

    assert masks(done.stdout) == masks(bare.stdout)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_python_workers_are_followed(method: str, tmp_path: Path) -> None:
    (tmp_path / "forks.py").write_text(FORKS)
    done = dftracer("run", "-o", "d", "--", "python", "forks.py", method, cwd=tmp_path)
    processes = read(tmp_path / "d")
    written = {event.path for one in processes for event in one.named("write")}
    assert {str(tmp_path / f"part-{n}") for n in range(3)} <= written
    said = summary(done.stderr)
    assert said["processes"] == str(len(processes))
    assert said["events"] == str(events_in(processes))
    assert len({one.trace.one("start")["args"]["run"] for one in processes}) == 1


def test_annotations_and_calls_are_in_one_trace(tmp_path: Path) -> None:
    (tmp_path / "hybrid.py").write_text(HYBRID)
    dftracer("run", "-o", "d", "--", "python", "hybrid.py", cwd=tmp_path)
    (process,) = read(tmp_path / "d")
    (region,) = [one for one in process.trace.recorded if one["name"] == "region"]
    assert region["args"]["n"] == 7
    paths = {event.path for event in process.named("write")}
    assert {str(tmp_path / "data"), str(tmp_path / "after")} <= paths
    assert not list(tmp_path.glob("elsewhere*"))


def test_what_is_not_traced_is_named(tmp_path: Path) -> None:
    static = tmp_path / "static"
    source = tmp_path / "static.c"
    source.write_text("int main(void) { return 0; }")
    subprocess.run(["cc", "-static", "-o", static, source], check=True)
    script = "env -i /bin/cat /etc/passwd > copy; ./static; ./static"
    done = dftracer("run", "-o", "d", "--", "sh", "-c", script, cwd=tmp_path)
    assert "not traced: 1 x cat (without LD_PRELOAD), 2 x static (statically linked)" in done.stderr
    done = dftracer("run", "-o", "e", "--", "./static", cwd=tmp_path)
    assert "nothing was recorded: ./static is statically linked" in done.stderr
    assert "next: dftracer doctor e" in done.stderr


GO = """
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>
__attribute__((section(".note.go.buildid"), used, aligned(4))) static const struct {
  unsigned name_size, size, type;
  char name[4], id[8];
} note = {4, 8, 4, "Go", "build/id"};
int main(void) {
  close(open("seen", O_CREAT | O_WRONLY, 0600));
  syscall(SYS_exit_group, 0);
}
"""


def test_a_go_program_is_named_and_did_not_end_suddenly(tmp_path: Path) -> None:
    """Go's runtime makes its system calls itself, the last one too."""
    (tmp_path / "main.c").write_text(GO)
    compile_c(tmp_path / "main.c", tmp_path / "go", link=False)
    done = dftracer("run", "-o", "d", "--", "./go", cwd=tmp_path)
    why = "a Go program, whose runtime makes system calls without libc"
    assert f"partly traced: ./go ({why})" in done.stderr
    assert "suddenly" not in done.stderr
    dftracer("run", "-o", "e", "--", "sh", "-c", "exec ./go", cwd=tmp_path)
    assert f"1 x go: {why}" in dftracer("doctor", "e", cwd=tmp_path).stdout
    (process,) = intercept.read(tmp_path / "e", ended=False, open_parents=True)
    assert str(tmp_path / "seen") in {event.path for event in process.events}


def test_without_proc_the_summary_counts_what_was_recorded(tmp_path: Path) -> None:
    """A process that cannot look at its ancestors does not find the run that it belongs to."""
    (tmp_path / "in").write_text("text")
    hide = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh")
    if subprocess.run([*hide, "true"], capture_output=True, check=False).returncode != 0:
        hide = ("unshare", "--map-root-user", *hide[1:])
    done = dftracer("run", "-o", "d", "--", "cat", "in", cwd=tmp_path, through=hide)
    assert "nothing was recorded" not in done.stderr
    said = summary(done.stderr)
    processes = read(tmp_path / "d")
    assert said["events"] == str(events_in(processes)) != "0"
    assert said["processes"] == str(len(processes)) == "1"
    assert len(done.stderr.splitlines()) == 2, done.stderr


SECRET = "import os; os.system('true --password=hunter2'); os.popen('true api_key=hunter2').read()"


def everything_in(directory: Path) -> bytes:
    return b"".join(gzip.decompress(path.read_bytes()) for path in directory.glob("*.pfw.gz"))


def test_secrets_do_not_reach_the_trace(tmp_path: Path) -> None:
    command = (sys.executable, "-c", SECRET, "--token", "hunter2", "https://bob:hunter2@host/x")
    dftracer("run", "-o", "d", "--", *command, cwd=tmp_path)
    text = everything_in(tmp_path / "d")
    assert b"hunter2" not in text
    for part in (b"--password=***", b"api_key=***", b";--token;***;", b"https://bob:***@host/x"):
        assert part in text, part
    assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "d").iterdir())


def test_secrets_are_kept_when_asked_for(tmp_path: Path) -> None:
    command = (sys.executable, "-c", SECRET, "--token", "hunter2")
    env = {"DFTRACER_MASK_SECRETS": "0"}
    dftracer("run", "-o", "d", "--", *command, cwd=tmp_path, env=env)
    text = everything_in(tmp_path / "d")
    assert b";--token;hunter2" in text
    assert b"--password=hunter2" in text


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("-c", "open('x', 'w').write('a secret text')"), "python"),
        (("-X", "dev", "script.py", "-c", "x"), "script.py"),
        (("-m", "script"), "script"),
    ],
)
def test_the_text_of_a_program_is_not_its_name(
    words: tuple[str, ...], name: str, tmp_path: Path
) -> None:
    (tmp_path / "script.py").write_text("open('x', 'w').close()")
    dftracer("run", "--no-metadata", "-o", "d", "--", "python", *words, cwd=tmp_path)
    assert b"secret text" not in everything_in(tmp_path / "d")
    (process,) = read(tmp_path / "d")
    (called,) = [one for one in process.trace.metadata if one["name"] == "process_name"]
    assert called["args"]["name"].startswith(name)


def test_why_there_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    source = tmp_path / "aside.c"
    source.write_text('#include <unistd.h>\nint main(void) { return access("/proc", R_OK); }')
    subprocess.run(["cc", "-o", tmp_path / "aside", source], check=True)
    for words, text in (
        (["--data-dir", "elsewhere", "cat", "x"], f"all outside {tmp_path / 'elsewhere'}"),
        (["--no-io", "cat", "x"], "I/O calls are disabled, and the program has no regions"),
        (["./aside"], "--data-dir all records those as well"),
    ):
        done = dftracer("run", "-o", "d", *words, cwd=tmp_path)
        assert re.search(rf"nothing was recorded: .*{re.escape(text)}", done.stderr), done.stderr


def test_options_and_their_variables(tmp_path: Path) -> None:
    show = "import os, json; print(json.dumps(dict(os.environ)))"
    command = ["python", "-c", show]
    options = ["--data-dir", "a", "--data-dir", "/b", "--no-io", "--no-metadata", "--no-net"]
    options += ["--torch", "-q"]
    done = dftracer("run", "-o", "d", "--name", "n", *options, *command, cwd=tmp_path)
    got = json.loads(done.stdout)
    assert got["DFTRACER_LOG_FILE"] == str(tmp_path / "d" / "n")
    assert got["DFTRACER_DATA_DIR"] == f"{tmp_path / 'a'}:/b"
    assert (got["DFTRACER_ENABLE"], got["DFTRACER_INIT"]) == ("1", "PRELOAD")
    assert (got["DFTRACER_DISABLE_IO"], got["DFTRACER_INC_METADATA"]) == ("1", "0")
    assert got["DFTRACER_DISABLE_NET"] == "1"
    assert (got["DFTRACER_TORCH"], got["DFTRACER_SUMMARY"]) == ("1", "0")
    assert (got["DFTRACER_STORES"], got["DFTRACER_OTEL"]) == ("1", "1")
    assert got["NVTX_INJECTION64_PATH"] == got["INTEL_LIBITTNOTIFY64"]
    assert "DFTRACER_FUNCTIONS" not in got
    assert done.stderr == ""
    given = {"DFTRACER_LOG_FILE": "e/m", "DFTRACER_DATA_DIR": "/b", "LD_PRELOAD": "libm.so.6"}
    done = dftracer("run", *command, cwd=tmp_path, env=given)
    got = json.loads(done.stdout)
    assert got["DFTRACER_LOG_FILE"] == str(tmp_path / "e" / "m")
    assert got["DFTRACER_DATA_DIR"] == "/b"
    assert got["LD_PRELOAD"].startswith("libm.so.6:/")


def test_a_misspelt_variable_is_named_once(tmp_path: Path) -> None:
    env = {"DFTRACER_DATA_DIRS": "/data"}
    done = dftracer("run", "-o", "d", "sh", "-c", "cat /etc/passwd; true", cwd=tmp_path, env=env)
    assert done.stderr.count("DFTRACER_DATA_DIRS is not a setting") == 1


def test_a_file_may_be_named(tmp_path: Path) -> None:
    done = dftracer("run", "-o", "d/one.pfw.gz", "cp", "/etc/passwd", "x", cwd=tmp_path)
    assert [path.name for path in (tmp_path / "d").iterdir()] == ["one.pfw.gz"]
    assert summary(done.stderr)["bytes"] != "0 B"


def test_a_run_inside_a_run(tmp_path: Path) -> None:
    inner = [str(COMMAND), "run", "--", "cp", "/etc/passwd", "copy"]
    done = dftracer("run", "-o", "d", "--", *inner, cwd=tmp_path)
    processes = read(tmp_path / "d")
    assert summary(done.stderr)["processes"] == str(len(processes))
    assert len({one.trace.one("start")["args"]["run"] for one in processes}) == 1
    assert any(event.path == str(tmp_path / "copy") for one in processes for event in one.events)

    inner[2:2] = ["-o", "inner"]
    done = dftracer("run", "-o", "outer", "--", *inner, cwd=tmp_path)
    assert "inner" in done.stderr
    assert "outer" in done.stderr
    assert len(read(tmp_path / "inner")) == 1


def test_ranks_share_a_directory_and_one_speaks(tmp_path: Path) -> None:
    ranks = [
        subprocess.Popen(
            [COMMAND, "run", "--", "cp", "/etc/passwd", f"copy-{rank}"],
            cwd=tmp_path,
            env=environment({"RANK": str(rank), "WORLD_SIZE": "4"}),
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(4)
    ]
    said = [rank.communicate(timeout=HANG)[1] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0, 0, 0]
    assert said[1:] == ["", "", ""]
    assert said[0].startswith("dftracer: rank 0: 1 process, ")
    (directory,) = tmp_path.glob("dftracer-*")
    assert len(list(directory.glob("*.pfw.gz"))) == 4


def test_in_a_pipe_whose_reader_leaves(tmp_path: Path) -> None:
    script = f"{COMMAND} run -o d -- yes | head -n 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment(), capture_output=True, text=True
    )
    assert done.stdout.split() == ["y", str(128 + signal.SIGPIPE)]
    assert "Traceback" not in done.stderr


def test_as_a_module_and_in_a_directory_with_blanks(tmp_path: Path) -> None:
    place = tmp_path / "a b: $HOME"
    place.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "dftracer", "run", "-o", "d", "cp", "/etc/passwd", "c"],
        cwd=place,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert summary(done.stderr)["processes"] == "1"
    assert len(read(place / "d")) == 1


def test_processes_that_outlive_the_program_are_told_of(tmp_path: Path) -> None:
    script = "exec 9<>fifo; cat <&9 >copy 2>/dev/null & echo $!; echo x >&9;"
    script += "while ! [ -s copy ]; do sleep 0.01; done"
    os.mkfifo(tmp_path / "fifo")
    done = dftracer("run", "-o", "d", "--", "bash", "-c", script, cwd=tmp_path)
    try:
        assert "1 process is still running and recording" in done.stderr
    finally:
        os.kill(int(done.stdout), signal.SIGKILL)


def test_a_package_in_a_directory_with_blanks(tmp_path: Path) -> None:
    """LD_PRELOAD is split at blanks and colons, whatever is done to quote them."""
    (tmp_path / "a b").symlink_to(_libcore.PRELOAD.parent)
    script = "import sys; from pathlib import Path; from dftracer import _entry, _libcore as core;"
    script += "core.PRELOAD = Path('a b').absolute() / core.PRELOAD.name; sys.exit(_entry.main())"
    words = [sys.executable, "-c", script, "run", "-o", "d", "cp", "/etc/passwd", "c"]
    done = subprocess.run(words, cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert summary(done.stderr)["processes"] == "1"
    assert len(done.stderr.splitlines()) == 2


def test_a_yaml_file_may_say_where(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(f"profiler:\n  log_file: {tmp_path}/y/t\n")
    env = {"DFTRACER_CONFIGURATION": "c.yaml"}
    done = dftracer("run", "cp", "/etc/passwd", "c", cwd=tmp_path, env=env)
    assert summary(done.stderr)["where"] == "y"
    assert len(read(tmp_path / "y")) == 1
