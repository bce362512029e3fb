#!/usr/bin/env bash
# Runs a command where the kernel starts aarch64 programs through qemu-user: in a user and mount namespace
# with its own binfmt_misc, which Linux has since 6.7; the machine is not changed. Elsewhere it sets
# DFTRACER_TEST_EMULATOR instead: tests start their programs through qemu, and those that exec others cannot
# be run.
set -euo pipefail

here=$(cd "$(dirname "$0")/../.." && pwd)
qemu=$(readlink -f "$here/build/aarch64-qemu/qemu-aarch64")
if [[ ${1:-} == --register ]]; then
    shift
    mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc
    magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
    mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
    echo ":aarch64:M::$magic:$mask:$qemu:FP" >/proc/sys/fs/binfmt_misc/register
    exec "$@"
fi

in_namespace() { unshare --user --map-root-user --mount "$0" --register "$@"; }
if [[ -z ${AARCH64_NO_BINFMT:-} ]] && in_namespace "$QEMU_LD_PREFIX/usr/bin/python3.11" -c '' 2>/dev/null; then
    in_namespace "$@"
else
    echo "aarch64: binfmt_misc cannot be mounted here: tests of programs that exec others are left out" >&2
    DFTRACER_TEST_EMULATOR="$qemu -L $QEMU_LD_PREFIX" "$@"
fi
