"""Each program of a group does one thing after the other and notes what its trace must say; the
trace says exactly that, in this order: name, category, file, arguments, result, error."""

from __future__ import annotations

import platform
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from support import calls, intercept

# What the programs must at least have called, so that a group cannot lose a function unnoticed. The
# names are those that a program has without _FILE_OFFSET_BITS=64.
GROUPS = {
    "cov_open": """open open64 openat openat64 creat creat64 mkstemp mkstemp64 mkostemp mkostemp64
        mkstemps mkstemps64 mkostemps mkostemps64 mkdtemp tmpfile tmpfile64 memfd_create shm_open
        shm_unlink close""",
    "cov_rw": """read write pread pread64 pwrite pwrite64 readv writev preadv preadv64 pwritev
        pwritev64 preadv2 preadv64v2 pwritev2 pwritev64v2 pipe2""",
    "cov_stat": """stat stat64 lstat lstat64 fstat fstat64 fstatat fstatat64 statx __xstat __xstat64
        __lxstat __lxstat64 __fxstat __fxstat64 __fxstatat __fxstatat64 access faccessat euidaccess
        eaccess statvfs statvfs64 fstatvfs fstatvfs64 statfs statfs64 fstatfs fstatfs64""",
    "cov_stdio": """fopen fopen64 fdopen freopen freopen64 fclose fread
        fread_unlocked fwrite fwrite_unlocked fgets fgets_unlocked fputs fputs_unlocked fgetc
        fgetc_unlocked fputc fputc_unlocked getc getc_unlocked putc putc_unlocked getchar
        getchar_unlocked putchar putchar_unlocked puts ungetc getw putw getline getdelim fscanf
        vfscanf scanf fprintf vfprintf printf fflush fflush_unlocked fseek fseeko fseeko64 ftell
        ftello ftello64 rewind fgetpos fgetpos64 fsetpos fsetpos64 setvbuf setbuf setbuffer
        setlinebuf feof ferror clearerr flockfile
        ftrylockfile funlockfile fmemopen open_memstream fputwc putwc fputws fgetwc
        getwc ungetwc fgetws""",
    "cov_desc": """lseek lseek64 fsync fdatasync syncfs sync_file_range truncate truncate64
        ftruncate ftruncate64 fallocate fallocate64 posix_fallocate posix_fallocate64 posix_fadvise
        posix_fadvise64 readahead dup dup2 dup3 fcntl fcntl64 close close_range closefrom flock
        lockf lockf64""",
    "cov_names": """unlink unlinkat rename renameat renameat2 link linkat symlink symlinkat readlink
        readlinkat mkdir mkdirat rmdir remove mknod mknodat mkfifo mkfifoat __xmknod __xmknodat
        chmod fchmod fchmodat chown fchown lchown fchownat utimensat futimens utimes lutimes futimes
        futimesat utime getcwd chdir fchdir realpath canonicalize_file_name
        umask setxattr lsetxattr fsetxattr getxattr lgetxattr fgetxattr listxattr llistxattr
        flistxattr removexattr lremovexattr fremovexattr""",
    "cov_dirs": """opendir fdopendir readdir readdir64 readdir_r readdir64_r closedir rewinddir
        telldir seekdir scandir scandir64 scandirat scandirat64 getdents64""",
    "cov_syscall": "openat openat2 read write pread64 pwrite64 readv writev lseek fsync close",
    "cov_rest": """fputwc_unlocked putwc_unlocked fputws_unlocked fgetwc_unlocked getwc_unlocked
        fgetws_unlocked feof_unlocked ferror_unlocked clearerr_unlocked open_wmemstream vprintf
        wprintf vwprintf vfwprintf putwchar vscanf getwchar perror vdprintf ftw ftw64 nftw nftw64
        getdirentries getdirentries64 get_current_dir_name lchmod chroot sync aio_read aio_read64
        aio_write aio_write64 aio_fsync aio_fsync64 aio_return aio_return64 aio_suspend
        aio_suspend64 lio_listio lio_listio64""",
    "cov_map": "mmap mmap64 munmap msync madvise posix_madvise mremap",
    "cov_move": """sendfile sendfile64 splice tee vmsplice copy_file_range ioctl pipe
        pipe2""",
}
OFFSETS = ("", "64")  # off_t as it is, and with _FILE_OFFSET_BITS=64: other names are called


@intercept.IN_EACH_MODE
@pytest.mark.parametrize("offsets", OFFSETS)
@pytest.mark.parametrize("name", GROUPS)
def test_every_call_with_its_arguments(tmp_path: Path, name: str, offsets: str, mode: str) -> None:
    flags = (f"-D_FILE_OFFSET_BITS={offsets}",) if offsets else ()
    place = tmp_path / "work"
    place.mkdir()
    program = intercept.program(name, mode, *intercept.ODD, *flags)
    run = intercept.traced(program, place, mode=mode, cwd=place, env={"DFTRACER_DATA_DIR": "all"})
    called = set(intercept.compare(run.one, place))
    if not offsets:
        missing = set(GROUPS[name].split()) - called
        assert not missing, f"{name}.c no longer calls {sorted(missing)}"


FORTIFY = ("-O2", "-D_FORTIFY_SOURCE=2", *intercept.ODD, "-fbuiltin")
FORTIFIED = """__open_2 __open64_2 __openat_2 __openat64_2 __read_chk __pread_chk __pread64_chk
    __readlink_chk __readlinkat_chk __getcwd_chk __realpath_chk __fprintf_chk __vfprintf_chk
    __printf_chk __dprintf_chk __vdprintf_chk __fgets_chk __fgets_unlocked_chk __fread_chk
    __fread_unlocked_chk __fgetws_chk"""


@intercept.IN_EACH_MODE
@pytest.mark.parametrize("offsets", OFFSETS)
def test_fortified_calls_have_the_names_that_were_written(
    tmp_path: Path, offsets: str, mode: str
) -> None:
    flags = [*FORTIFY, f"-D_FILE_OFFSET_BITS={offsets}"] if offsets else FORTIFY
    place = tmp_path / "work"
    place.mkdir()
    program = intercept.program("cov_fortify", mode, *flags)
    if not offsets:
        # The compiler has to have made of them what this is about.
        assert set(FORTIFIED.split()) <= imports(program)
    run = intercept.traced(program, place, mode=mode, cwd=place, env={"DFTRACER_DATA_DIR": "all"})
    intercept.compare(run.one, place)


# Rows that are about processes or come from other libraries have their own tests; some spellings
# cannot be called from a new program.
ELSEWHERE = """_Exit _exit _Fork fork __fork vfork __vfork daemon posix_spawn posix_spawnp system
    popen pclose execl execle execlp execv execve execveat execvp execvpe fexecve wait wait3 wait4
    waitid waitpid __wait __waitpid prctl dlopen dlmopen dlsym dlclose io_submit io_getevents
    io_pgetevents setuid seteuid setreuid setresuid setgid setegid setregid setresgid setgroups
    initgroups capset unshare setns
    __overflow __uflow _IO_popen __isoc23_fscanf __isoc23_scanf __isoc23_vfscanf __isoc23_vscanf"""


def imports(program: Path) -> set[str]:
    done = subprocess.run(["nm", "-u", program], capture_output=True, text=True, check=True)
    return {line.split()[-1].split("@")[0] for line in done.stdout.splitlines()}


def test_every_row_is_called_by_a_program() -> None:
    """A new row is a call in one of the programs."""
    called = set()
    for name in GROUPS:
        for offsets in OFFSETS:
            flags = (f"-D_FILE_OFFSET_BITS={offsets}",) if offsets else ()
            called |= imports(intercept.program(name, intercept.PRELOAD, *intercept.ODD, *flags))
    called |= imports(intercept.program("cov_fortify", intercept.PRELOAD, *FORTIFY))
    for flags in ((), FORTIFY):  # test_sockets.py runs it
        called |= imports(intercept.program("cov_net", intercept.PRELOAD, *intercept.ODD, *flags))
    rows = calls.symbols(calls.read_table())
    missing = sorted(rows - called - set(ELSEWHERE.split()))
    assert not missing, f"no coverage program calls {' '.join(missing)}"


# Which functions are exactly one system call, and which one, on x86_64.
SAME_NAME = """read write readv writev close fsync fdatasync syncfs sync_file_range readahead dup
    dup2 dup3 flock rename renameat renameat2 link linkat symlink symlinkat unlinkat mkdir mkdirat
    rmdir chmod fchmod fchmodat chown fchown lchown fchownat chdir fchdir access statx
    copy_file_range splice tee vmsplice msync"""
SYSTEM_CALLS = {
    **{name: name for name in SAME_NAME.split()},
    "openat": "open open64 openat openat64",
    "creat": "creat creat64",
    "pread64": "pread pread64",
    "pwrite64": "pwrite pwrite64",
    "preadv": "preadv preadv64",
    "pwritev": "pwritev pwritev64",
    "preadv2": "preadv2 preadv64v2",
    "pwritev2": "pwritev2 pwritev64v2",
    "lseek": "lseek lseek64",
    "ftruncate": "ftruncate ftruncate64",
    "truncate": "truncate truncate64",
    "fadvise64": "posix_fadvise posix_fadvise64",
    "unlink": "unlink remove",
    "sendfile": "sendfile sendfile64",
}
RESULT = re.compile(r".* = (-?\d+|\?)(?:<.*>)?(?: [A-Z].*)?$")
LOADER = re.compile(r"/lib/|/ld\.so\.")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="other machines have other calls")
@pytest.mark.parametrize("name", ["cov_rw", "cov_desc", "cov_names", "cov_map", "cov_move"])
def test_the_kernel_saw_the_same(tmp_path: Path, name: str) -> None:
    """Calls and results of the traced program against what strace says about the bare one."""
    program = intercept.program(name, intercept.PRELOAD, *intercept.ODD)
    bare, place = tmp_path / "bare", tmp_path / "work"
    bare.mkdir()
    place.mkdir()
    lines = intercept.strace(program, bare, cwd=bare, calls=SYSTEM_CALLS, log=tmp_path / "strace")
    kernel: Counter[tuple[str, int]] = Counter()
    for call, rest in lines:
        result = RESULT.match(rest)
        if result and not LOADER.search(rest) and intercept.EXPECTED not in rest:
            # An interrupted call has no result yet; the program gets -1.
            kernel[call, -1 if result[1] == "?" else int(result[1])] += 1
    run = intercept.traced(program, place, cwd=place, env={"DFTRACER_DATA_DIR": "all"})
    which = {name: call for call, names in SYSTEM_CALLS.items() for name in names.split()}
    traced = Counter(
        (which[event.name], event.args["ret"])
        for event in run.one.events
        if event.name in which and event.path != str(place / intercept.EXPECTED)
    )
    assert kernel
    assert traced == kernel
