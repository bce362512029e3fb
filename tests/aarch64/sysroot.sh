#!/usr/bin/env bash
# Unpacks Debian packages below build/: aarch64-sysroot holds what a cross build needs of arm64, and a CPython;
# aarch64-qemu the emulator. Changes nothing on the machine: apt has a state of its own there.
set -euo pipefail
cd "$(dirname "$0")/../.."

root=$PWD/build/aarch64-sysroot
emulator=$PWD/build/aarch64-qemu
stamp=$(cksum <"$0")
[[ -e $root/.complete && $(<"$root/.complete") == "$stamp" ]] && exit 0

state=$PWD/build/aarch64-apt
trap 'rm -rf "$state"' EXIT

# unpack ARCHITECTURE RELEASE DIRECTORY PACKAGE...: with their dependencies, since none counts as installed.
unpack() {
    local architecture=$1 release=$2 directory=$3
    shift 3
    rm -rf "$state" "$directory"
    echo "aarch64: fetching $* from Debian ($architecture)"
    .venv/bin/python tools/debian.py "$state" "$release" "$architecture" "$directory" "$@"
}

# A static program, so it runs on older releases, too. Before version 8, qemu ignores MADV_WIPEONFORK.
unpack amd64 trixie "$emulator" qemu-user
ln -sf usr/bin/qemu-aarch64 "$emulator/qemu-aarch64"
unpack arm64 bookworm "$root" libc6-dev libstdc++-12-dev libisal-dev libyaml-dev zlib1g-dev python3-dev doctest-dev
# qemu-user looks for every absolute path below this directory first. The machine's own cache of libraries
# would otherwise be read, and the clock source be that of x86-64: qemu emulates the generic timer.
: >"$root/etc/ld.so.cache"
mkdir -p "$root/sys/devices/system/clocksource/clocksource0"
echo arch_sys_counter >"$root/sys/devices/system/clocksource/clocksource0/current_clocksource"
echo "$stamp" >"$root/.complete"
