"""What the machine's libc can do with paths, descriptors, streams and processes, against what is
intercepted: the difference is the list in omissions.txt, where each name has its reason."""

from __future__ import annotations

import ctypes.util
import functools
import re
import subprocess
from pathlib import Path

import pytest
from support import calls, intercept

OMISSIONS = Path(__file__).with_name("omissions.txt")

HEADERS = """aio.h dirent.h fcntl.h fts.h ftw.h glob.h grp.h gshadow.h mntent.h poll.h pty.h pwd.h
    sched.h shadow.h signal.h spawn.h stdio.h stdio_ext.h stdlib.h string.h sys/acct.h sys/epoll.h
    sys/eventfd.h sys/fanotify.h sys/file.h sys/inotify.h sys/ioctl.h sys/mman.h sys/mount.h
    sys/quota.h sys/select.h sys/sendfile.h sys/signalfd.h sys/socket.h sys/stat.h sys/statfs.h
    sys/statvfs.h sys/swap.h sys/time.h sys/timerfd.h sys/uio.h sys/vfs.h sys/wait.h sys/xattr.h
    termios.h unistd.h utime.h utmp.h wchar.h dlfcn.h"""

# A parameter that is a descriptor, a path, a stream; by its type, or by what the header calls it.
ABOUT = re.compile(
    r"""\b_*FILE\s*\*|\bDIR\s*\*|\bFTS(64)?\s*\*|\bstruct\ aiocb(64)?\b|\bstruct\ iovec\b
    |\bint\ _*(\w*fd\w*|fildes|fp)\b
    |\bchar\s*\*\s*(const\s*)?_*(\w*path\w*|\w*file\w*|\w*name|\w*dir|from|to|old|new|template)\b
    """,
    re.VERBOSE,
)
# Functions whose parameters do not tell.
BESIDES = """fork _Fork vfork clone daemon system wait wait3 wait4 waitid waitpid _exit _Exit exit
    quick_exit pipe pipe2 socket epoll_create epoll_create1 eventfd inotify_init inotify_init1
    fanotify_init timerfd_create posix_openpt getpt openpty forkpty getcwd getwd
    get_current_dir_name glob glob64 sync umask munmap msync madvise posix_madvise mremap mprotect
    mincore mlock munlock remap_file_pages printf vprintf puts putchar putchar_unlocked scanf vscanf
    getchar getchar_unlocked wprintf vwprintf wscanf vwscanf putwchar putwchar_unlocked getwchar
    getwchar_unlocked perror psignal psiginfo fcloseall _flushlbf tmpnam tmpnam_r poll ppoll syscall
    quotactl vhangup lckpwdf getpass io_submit io_getevents io_pgetevents"""
# Parameters that are called so and are something else: names of users, of variables, of hosts.
NO_FILES = """basename getenv secure_getenv setenv unsetenv putenv getgrnam getgrnam_r getpwnam
    getpwnam_r getsgnam getsgnam_r getspnam getspnam_r sethostname setdomainname setlogin swab dlsym
    dlvsym strptime memcpy memmove mblen mbtowc getdate initgroups getgrouplist hasmntopt
    pthread_setname_np pthread_getname_np getopt gethostname getdomainname getlogin_r
    process_mrelease process_madvise process_vm_readv process_vm_writev"""


@functools.cache
def exported(library: Path) -> frozenset[str]:
    """The functions that a library defines for others."""
    done = subprocess.run(
        ["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True
    )
    found = set()
    for line in done.stdout.splitlines():
        words = line.split()
        if len(words) == 3 and words[1] in "TWi" and not words[2].endswith("GLIBC_PRIVATE"):
            found.add(words[2].split("@")[0])
    return frozenset(found)


def libc() -> Path:
    """The one that programs get."""
    with open("/proc/self/maps") as maps:
        for line in maps:
            if re.search(r"/libc[.-][^/]*so", line):
                return Path(line.split()[-1])
    pytest.skip(f"no libc is mapped here ({ctypes.util.find_library('c')})")


def without(text: str, word: str) -> str:
    """Drops `word (...)`, whatever the parentheses hold."""
    out = []
    at = 0
    while (found := text.find(word, at)) >= 0:
        out.append(text[at:found])
        at = text.index("(", found)
        depth = 0
        while True:
            depth += {"(": 1, ")": -1}.get(text[at], 0)
            at += 1
            if depth == 0:
                break
    return "".join([*out, text[at:]])


def prototypes() -> dict[str, str]:
    """Every function that the headers declare: its parameters and what it returns."""
    source = "\n".join(
        f"#if __has_include(<{header}>)\n#include <{header}>\n#endif" for header in HEADERS.split()
    )
    words = ["cc", "-E", "-P", "-D_GNU_SOURCE", "-D_LARGEFILE64_SOURCE", "-x", "c", "-"]
    done = subprocess.run(words, input=source, capture_output=True, text=True, check=True)
    text = without(without(done.stdout, "__attribute__"), "__asm__")
    text = re.sub(r"\b(__extension__|__restrict|__inline|extern)\b", " ", text)
    outside = []
    depth = 0
    for character in text:
        depth += {"{": 1, "}": -1}.get(character, 0)
        outside.append(character if depth == 0 else " ")
    found = {}
    for statement in "".join(outside).split(";"):
        line = " ".join(statement.split())
        match = re.match(r"^([\w \*]+?[\s\*])(\w+) ?\((.*)\)$", line)
        if match and not line.startswith("typedef"):
            found[match[2]] = f"{match[1]}({match[3]})"
    return found


def plain(name: str) -> str:
    """What a fortified, versioned or private spelling stands for."""
    for pattern in (
        r"__isoc\d\d_(\w+)",
        r"__(\w+?)_chk",
        r"__(\w+)_2",
        r"_IO_(\w+)",
        r"__(\w+)",
        r"__libc_(\w+)",
    ):
        match = re.fullmatch(pattern, name)
        if match:
            return plain(match[1])
    return name


@functools.cache
def candidates() -> frozenset[str]:
    there = exported(libc())
    declared = prototypes()
    about = {name for name, line in declared.items() if ABOUT.search(line)}
    about = (about | set(BESIDES.split())) - set(NO_FILES.split())
    about |= {"__xstat", "__lxstat", "__fxstat", "__fxstatat", "__xmknod", "__xmknodat"}
    about |= {f"{name}64" for name in about}
    # Other spellings of the same functions.
    return frozenset(name for name in there if name in about or plain(name) in about)


def is_own(name: str) -> bool:
    return name.startswith("dftracer_")


def omissions() -> dict[str, str]:
    """name -> reason; a line that begins with '#' gives the reason of the names below it."""
    reason = ""
    found: dict[str, str] = {}
    for line in OMISSIONS.read_text().splitlines():
        if line.startswith("#"):
            reason = line[1:].strip()
        elif line.strip():
            assert reason, f"{line}: no reason"
            assert line.strip() not in found, f"{line} twice"
            found[line.strip()] = reason
    return found


def test_nothing_is_left_out_by_accident() -> None:
    ours = exported(intercept.library())
    missing = candidates() - ours
    listed = set(omissions())
    # Another libc has functions that this list does not know, and lacks some that it does.
    unlisted = sorted(missing - listed)
    assert not unlisted, (
        f"neither intercepted nor in {OMISSIONS.name}, with a reason: {' '.join(unlisted)}"
    )


def test_the_list_of_omissions_is_up_to_date() -> None:
    ours = exported(intercept.library())
    both = sorted(set(omissions()) & ours)
    assert not both, f"intercepted by now, so no omission: {both}"
    there = exported(libc())
    strange = sorted(name for name in omissions() if name in there and name not in candidates())
    assert not strange, f"not about files: {strange}"


def test_the_preload_library_exports_the_table_and_no_more() -> None:
    rows = calls.symbols(calls.read_table())
    assert rows
    hooks = {"__cyg_profile_func_enter", "__cyg_profile_func_exit"}
    assert {name for name in exported(intercept.library()) if not is_own(name)} == rows | hooks


def test_every_row_is_a_function_of_this_libc() -> None:
    """A row that no libc has is a typing error; some come from elsewhere, or other versions."""
    elsewhere = {"io_submit", "io_getevents", "io_pgetevents", "dlmopen", "dlopen", "dlsym"}
    ours = exported(intercept.library())
    unknown = sorted(ours - exported(libc()) - elsewhere)
    unknown = [name for name in unknown if not name.startswith("__isoc23_") and not is_own(name)]
    assert not unknown
