#!/usr/bin/env bash
# The unit tests of build/aarch64 under qemu-user, without those of unit_exclusions.txt.
set -euo pipefail
cd "$(dirname "$0")/../.."

excluded=$(sed -e '/^#/d' -e '/^$/d' -e 's/,/\\,/g' tests/aarch64/unit_exclusions.txt | paste -sd,)
exec timeout --verbose "${AARCH64_SECONDS:-600}" \
    build/aarch64-qemu/qemu-aarch64 -L build/aarch64-sysroot build/aarch64/bin/dftracer_unit --no-intro \
    -tce="$excluded" "$@"
