#!/usr/bin/env bash
# Prepares a machine for one level of work: build (make demo), test (make test, make check), bench.
# System packages come from apt where that is permitted, Python packages go into .venv. What is done is
# stamped, so that a second call neither takes time nor needs a network.
set -euo pipefail
cd "$(dirname "$0")/.."

level=${1:-build}
python=${PYTHON:-python3}
venv=.venv

case $level in
    build) requirements=(requirements-build.txt) ;;
    test | bench) requirements=(requirements-build.txt requirements-dev.txt) ;;
    *)
        echo "usage: tools/bootstrap.sh [build|test|bench]" >&2
        exit 2
        ;;
esac

state=$({ cat "$0" "${requirements[@]}" && echo "$PWD"; } | cksum | tr ' ' '-')
stamp=$venv/.ready-$level
if [[ -x $venv/bin/python && -f $stamp && $(<"$stamp") == "$state" ]]; then
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
    [[ $level == build ]] && return
    have_header doctest/doctest.h || required+=(doctest-dev)
    have_command pkg-config || required+=(pkg-config)
    have_command jq || optional+=(jq)
    have_command node || optional+=(nodejs)
    have_command strace || optional+=(strace)
    if ! have_command valgrind; then
        if [[ $level == bench ]]; then required+=(valgrind); else optional+=(valgrind); fi
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
    if ! apt_install "${required[@]}" "${optional[@]}" && ((${#required[@]} > 0)); then
        apt_install "${required[@]}" || tail -n 5 "$apt_log" >&2
    fi
    hash -r
    find_missing
fi
if ((${#required[@]} > 0)); then
    echo "bootstrap: please install these Debian packages and try again: ${required[*]}" >&2
    exit 1
fi
if ((${#optional[@]} > 0)); then
    echo "bootstrap: going on without ${optional[*]}: the tests that need them will be skipped" >&2
fi

if ! [[ -x $venv/bin/python ]] || ! "$venv/bin/python" -c 'import pip' 2>/dev/null; then
    echo "bootstrap: creating $venv"
    rm -rf "$venv"
    "$python" -m venv "$venv"
fi
arguments=()
for file in "${requirements[@]}"; do arguments+=(-r "$file"); done
echo "bootstrap: installing Python packages (${requirements[*]})"
if ! "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "${arguments[@]}"; then
    echo "bootstrap: the Python packages could not be installed; is a package index reachable?" >&2
    exit 1
fi

# With an optional package missing it is worth asking again next time; nothing else changes meanwhile.
if ((${#optional[@]} == 0 || ${#apt[@]} == 0)); then
    echo "$state" >"$stamp"
fi
