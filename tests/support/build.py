"""Compiles small programs against an installed tree, each once however many workers ask for it."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / "build" / "test-programs"


@contextlib.contextmanager
def file_lock(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def command(*words: str | Path, cwd: Path = ROOT) -> str:
    """Runs a tool of the build; its output is shown when it fails."""
    done = subprocess.run(
        [str(word) for word in words], cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}"
    return done.stdout


@functools.cache
def prefix() -> Path:
    """The installed tree: DFTRACER_PREFIX, or build/stage, which is made if it is not there."""
    given = os.environ.get("DFTRACER_PREFIX")
    if given:
        place = Path(given).resolve()
        assert (place / "include" / "dftracer" / "dftracer.h").is_file(), (
            f"DFTRACER_PREFIX={given} is not an installed tree"
        )
        return place
    stage = ROOT / "build" / "stage"
    if (stage / "lib" / "libdftracer_core.so").exists():
        return stage
    with file_lock(ROOT / "build" / "stage.lock"):
        if not (stage / "lib" / "libdftracer_core.so").exists():
            release = ROOT / "build" / "release"
            if not (release / "CMakeCache.txt").exists():
                command("cmake", "-S", ROOT, "-B", release, "-DCMAKE_BUILD_TYPE=RelWithDebInfo")
            command("cmake", "--build", release)
            command("cmake", "--install", release, "--prefix", stage)
    return stage


@functools.cache
def _headers() -> bytes:
    digest = hashlib.sha256()
    for header in sorted((prefix() / "include" / "dftracer").rglob("*")):
        if header.is_file():
            digest.update(header.read_bytes())
    return digest.digest()


def _compile(
    compiler: str,
    suffix: str,
    source: Path | str,
    out: Path | None,
    flags: tuple[str, ...],
    link: bool,
) -> Path:
    text = source.read_text() if isinstance(source, Path) else source
    tree = prefix()
    words = [f"-I{tree}/include", "-g", *flags]
    after = [f"-L{tree}/lib", "-ldftracer_core", f"-Wl,-rpath,{tree}/lib"] if link else []
    key = hashlib.sha256()
    for part in (compiler, text, *words, *after):
        key.update(part.encode() + b"\0")
    key.update(_headers())
    name = f"{source.stem if isinstance(source, Path) else 'inline'}-{key.hexdigest()[:20]}"
    made = CACHE / name
    if not made.exists():
        with file_lock(CACHE / f".{name}.lock"):
            if not made.exists():
                with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
                    # A program's own headers are looked for where it lies.
                    near = [f"-I{source.parent}"] if isinstance(source, Path) else []
                    file = Path(scratch) / f"source{suffix}"
                    file.write_text(text)
                    product = Path(scratch) / "product"
                    command(
                        compiler, *words, *near, file, "-o", product, *after, "-lpthread", "-ldl"
                    )
                    product.rename(made)
    if out is None:
        return made
    out.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(made, out)
    return out


def compile_c(source: Path | str, out: Path | None = None, *flags: str, link: bool = True) -> Path:
    """A C program, from a file or from its text, with plain cc. link=False: without our library."""
    chosen = flags if any(flag.startswith("-std=") for flag in flags) else ("-std=gnu11", *flags)
    return _compile("cc", ".c", source, out, chosen, link)


def compile_cpp(
    source: Path | str, out: Path | None = None, *flags: str, link: bool = True
) -> Path:
    chosen = flags if any(flag.startswith("-std=") for flag in flags) else ("-std=c++17", *flags)
    return _compile("c++", ".cpp", source, out, chosen, link)
