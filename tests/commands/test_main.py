"""The frame of the command: help, mistakes, exit codes, pipes, colour, completion."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.command import COMMAND, dftracer, environment

from dftracer.commands._cli.main import SUMMARIES

ROOT = Path(__file__).resolve().parents[2]
# What nobody who asks for help should wait for.
HEAVY = ("dftracer._libcore", "ctypes", "dftracer.trace", "http", "json", "argparse")


def test_help_names_every_verb_and_imports_none(tmp_path: Path) -> None:
    done = dftracer("--help", cwd=tmp_path)
    assert done == dftracer("help", cwd=tmp_path)
    for verb, summary in SUMMARIES.items():
        assert f"  {verb:<12}{summary}\n" in done.stdout
    show = "import sys\nfrom dftracer.commands._cli.main import main\n"
    show += "try: main(['--help'])\nexcept SystemExit: pass\nprint(*sys.modules, file=sys.stderr)"
    loaded = subprocess.run(
        [sys.executable, "-c", show], capture_output=True, text=True, check=True, env=environment()
    ).stderr.split()
    verbs = {f"dftracer.commands.{verb}" for verb in SUMMARIES}
    assert not (verbs | set(HEAVY)) & set(loaded)


@pytest.mark.parametrize("verb", SUMMARIES)
def test_each_verb_has_help_with_examples(verb: str, tmp_path: Path) -> None:
    done = dftracer(verb, "--help", cwd=tmp_path)
    assert done.stdout.startswith(f"usage: dftracer {verb}")
    assert done == dftracer("help", verb, cwd=tmp_path)
    assert f"\n  dftracer {verb}" in done.stdout or f"$(dftracer {verb}" in done.stdout


def test_mistakes(tmp_path: Path) -> None:
    for words, text in (
        (["inof"], "dftracer: unknown verb 'inof'; did you mean 'info'?\n"),
        (["xyzzy"], "dftracer: unknown verb 'xyzzy'; see dftracer --help\n"),
        (["-x"], "dftracer: unknown option '-x' before the verb; see dftracer --help\n"),
        (["top", "nowhere"], "dftracer: nowhere: no such directory\n"),
    ):
        assert dftracer(*words, cwd=tmp_path, expect=2).stderr == text
    done = dftracer(cwd=tmp_path, expect=2)
    assert done.stdout == ""
    assert done.stderr.startswith("usage: dftracer VERB")


def test_version(tmp_path: Path) -> None:
    version = (ROOT / "VERSION").read_text().strip()
    assert dftracer("--version", cwd=tmp_path).stdout == f"dftracer {version}\n"
    module = [sys.executable, "-m", "dftracer", "--version"]
    again = subprocess.run(module, capture_output=True, text=True, check=True, env=environment())
    assert again.stdout == dftracer("--version", cwd=tmp_path).stdout


def test_a_reader_that_leaves_and_a_full_disk(tmp_path: Path) -> None:
    script = f"{COMMAND} doctor | head -n 1; echo ${{PIPESTATUS[0]}}; {COMMAND} --help > /dev/full"
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, env=environment(), cwd=tmp_path
    )
    assert len(done.stdout.splitlines()) == 2
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    closed = subprocess.run(
        ["bash", "-c", f"{COMMAND} doctor >&-"], capture_output=True, text=True, env=environment()
    )
    assert "Traceback" not in closed.stderr


def on_terminal(words: list[str], cwd: Path, env: dict[str, str]) -> str:
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(cwd)
        os.execve(COMMAND, [str(COMMAND), *words], environment(env))
    text = b""
    while True:
        try:
            piece = os.read(fd, 65536)
        except OSError:
            break
        if not piece:
            break
        text += piece
    os.waitpid(pid, 0)
    os.close(fd)
    return text.decode()


def test_colour_is_for_terminals(tmp_path: Path) -> None:
    assert "\033[" in on_terminal(["doctor"], tmp_path, {"TERM": "xterm"})
    assert "\033[" not in on_terminal(["doctor"], tmp_path, {"TERM": "xterm", "NO_COLOR": "1"})
    assert "\033[" not in on_terminal(["doctor"], tmp_path, {"TERM": "dumb"})


def complete(script: Path, cwd: Path, *words: str) -> list[str]:
    """What bash would offer for the last of the words."""
    quoted = " ".join(f"'{word}'" for word in words)
    asked = f"source {script}; COMP_WORDS=(dftracer {quoted}); COMP_CWORD={len(words)};"
    asked += '_dftracer; printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(
        ["bash", "--norc", "-c", asked],
        capture_output=True,
        text=True,
        check=True,
        env=environment(),
        cwd=cwd,
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_completion_in_bash(tmp_path: Path) -> None:
    script = tmp_path / "c.sh"
    script.write_text(dftracer("completion", "bash", cwd=tmp_path).stdout)
    subprocess.run(["bash", "-n", script], check=True)
    assert set(complete(script, tmp_path, "")) == {*SUMMARIES, "--help", "--version"}
    assert complete(script, tmp_path, "vi") == ["view"]
    assert complete(script, tmp_path, "view", "--no-b") == ["--no-browser"]
    assert complete(script, tmp_path, "run", "--no-m") == ["--no-metadata"]
    assert complete(script, tmp_path, "completion", "z") == ["zsh"]
    # Values and traces are files, which bash completes where nothing is offered.
    assert complete(script, tmp_path, "view", "--port", "--no") == []
    assert complete(script, tmp_path, "info", "x") == []
    # The program's words are not ours.
    assert "gzip" in complete(script, tmp_path, "run", "-o", "d", "gzi")
    assert "gzip" in complete(script, tmp_path, "run", "--", "gzi")
    assert complete(script, tmp_path, "run", "gzip", "--no-m") == []
    assert complete(script, tmp_path, "run", "-o", "d", "--", "gzip", "--no-m") == []


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_completion_in_other_shells(shell: str, tmp_path: Path) -> None:
    text = dftracer("completion", shell, cwd=tmp_path).stdout
    assert all(verb in text for verb in SUMMARIES)
    script = tmp_path / "script"
    script.write_text(text)
    need(shell)
    subprocess.run([shell, "-n", script], check=True)
    assert dftracer("completion", "tcsh", cwd=tmp_path, expect=2).stdout == ""


def need(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A program and a file that are the only ones of their kind."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "zzqprogram"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (tmp_path / "zzqfile").touch()
    return tmp_path


# What is typed, and what the word at its end becomes.
TYPED = {
    "dftracer run -- zzqp": "zzqprogram",
    "dftracer run zzqp": "zzqprogram",
    "dftracer run -o d --no-io -- zzqp": "zzqprogram",
    "dftracer run -- cat zzqf": "zzqfile",
    "dftracer run -o d cat --number zzqf": "zzqfile",
    "dftracer run --no-m": "--no-metadata",
    "dftracer run -o zzqf": "zzqfile",
    "dftracer info zzqf": "zzqfile",
    "dftracer vali": "validate",
    "dftracer completion fi": "fish",
}


@pytest.mark.parametrize("typed", TYPED)
def test_fish_completes_the_words_of_a_program(typed: str, shop: Path) -> None:
    need("fish")
    script = dftracer("completion", "fish", cwd=shop).stdout
    (shop / "script").write_text(script)
    done = subprocess.run(
        ["fish", "--no-config", "-c", f"source script; complete -C '{typed}'"],
        cwd=shop,
        env=environment({"PATH": f"{shop / 'bin'}:{os.environ['PATH']}", "HOME": str(shop)}),
        capture_output=True,
        text=True,
        check=True,
    )
    assert [line.partition("\t")[0] for line in done.stdout.splitlines()] == [TYPED[typed]]


# Completes the line, writes what became of it, and ends.
ZSH = """
autoload -U compinit && compinit -u -D
source ./script
finish() { zle complete-word; print -r -- $BUFFER > done.new; mv done.new done; exit }
zle -N finish
bindkey '^X' finish
print rea''dy
"""


@pytest.mark.parametrize("typed", TYPED)
def test_zsh_completes_the_words_of_a_program(typed: str, shop: Path) -> None:
    need("zsh")
    (shop / "script").write_text(dftracer("completion", "zsh", cwd=shop).stdout)
    (shop / "setup").write_text(ZSH)
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(shop)
        path = f"{shop / 'bin'}:{os.environ['PATH']}"
        os.execvpe("zsh", ["zsh", "-f", "-i"], environment({"PATH": path, "TERM": "dumb"}))
    os.write(fd, b"source ./setup\n")
    text = b""
    try:
        while b"ready" not in text:
            text += os.read(fd, 65536)
        os.write(fd, typed.encode() + b"\x18")
        while True:
            text += os.read(fd, 65536)
    except OSError:  # zsh has ended
        pass
    os.waitpid(pid, 0)
    os.close(fd)
    assert (shop / "done").exists(), text
    before = typed.rpartition(" ")[0]
    assert (shop / "done").read_text().rstrip() == f"{before} {TYPED[typed]}"
