"""Packages of Debian without installing them: apt with lists and caches of its own."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path


class NoPackages(Exception):
    """apt is missing, or has not what was asked for."""


class Apt:
    """apt as the machine has it set up, but for the kind of entry and, if given, the suite."""

    def __init__(self, home: Path, kind: str, suite: str = "", architecture: str = "") -> None:
        if shutil.which("apt-get") is None:
            raise NoPackages("apt-get is missing")
        self._home = home
        for name in ("lists/partial", "cache/archives/partial", "sources"):
            (home / name).mkdir(parents=True, exist_ok=True)
        # Nothing counts as installed, so that all dependencies are fetched.
        (home / "status").write_text("")
        entries = [_entries(path, kind, suite) for path in _lists()]
        (home / "sources" / "all.sources").write_text("\n".join(entries))
        self._options = [
            *("-o", "Dir::Etc::sourcelist=-"),
            *("-o", f"Dir::Etc::sourceparts={home / 'sources'}"),
            *("-o", f"Dir::State::lists={home / 'lists'}"),
            *("-o", f"Dir::State::status={home / 'status'}"),
            *("-o", f"Dir::Cache={home / 'cache'}"),
            *("-o", "APT::Sandbox::User=root"),
            *("-o", "Debug::NoLocking=true"),
        ]
        if architecture:
            self._options += ["-o", f"APT::Architecture={architecture}"]
            self._options += ["-o", f"APT::Architectures={architecture}"]
        self._run("update")

    def _run(self, *words: str, cwd: Path | None = None) -> None:
        done = subprocess.run(
            ["apt-get", *self._options, *words],
            cwd=cwd,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise NoPackages(f"apt-get {' '.join(words)}: {done.stderr or done.stdout}")

    def source(self, package: str, into: Path) -> None:
        """Downloads a source package."""
        self._run("source", "--download-only", package, cwd=into)

    def unpack_alone(self, package: str, into: Path) -> None:
        """Unpacks a package without what it depends on."""
        self._run("download", package, cwd=self._home)
        into.mkdir(parents=True, exist_ok=True)
        for file in self._home.glob("*.deb"):
            subprocess.run(["dpkg", "-x", file, into], check=True)

    def unpack(self, packages: list[str], into: Path) -> None:
        """Unpacks packages and all that they depend on, without running their scripts."""
        self._run("install", "-y", "--download-only", "--no-install-recommends", *packages)
        into.mkdir(parents=True, exist_ok=True)
        for package in sorted((self._home / "cache" / "archives").glob("*.deb")):
            subprocess.run(["dpkg", "-x", package, into], check=True)


def _lists() -> list[Path]:
    directory = Path("/etc/apt")
    found = [directory / "sources.list", *sorted((directory / "sources.list.d").glob("*"))]
    return [path for path in found if path.is_file() and path.suffix in (".list", ".sources")]


def _entries(path: Path, kind: str, suite: str) -> str:
    """The entries of one list, in the newer of both formats."""
    text = path.read_text()
    if path.suffix == ".sources":
        text = re.sub(r"^Types:.*$", f"Types: {kind}", text, flags=re.M)
        if not suite:
            return text
        # The archive of security updates names its suites in another way.
        stanzas = [s for s in re.split(r"\n\s*\n", text) if "-security" not in s]
        return "\n\n".join(
            re.sub(r"^Suites:.*$", f"Suites: {suite}", stanza, flags=re.M) for stanza in stanzas
        )
    stanzas = []
    for line in text.splitlines():
        match = re.match(r"deb\s+(?:\[([^]]*)\]\s+)?(\S+)\s+(\S+)\s+(.*)", line)
        if match is None or (suite and "-security" in match[3]):
            continue
        options = "".join(
            f"{name.title()}: {value}\n"
            for name, _, value in (word.partition("=") for word in (match[1] or "").split())
            if name == "signed-by"
        )
        stanzas.append(
            f"Types: {kind}\nURIs: {match[2]}\nSuites: {suite or match[3]}\n"
            f"Components: {match[4]}\n{options}"
        )
    return "\n".join(stanzas)


def main() -> None:
    """debian.py HOME SUITE ARCHITECTURE DIRECTORY PACKAGE...: unpacks packages there."""
    home, suite, architecture, directory, *packages = sys.argv[1:]
    try:
        Apt(Path(home), "deb", suite, architecture).unpack(packages, Path(directory))
    except NoPackages as error:
        sys.exit(f"debian.py: {error}")


if __name__ == "__main__":
    main()
