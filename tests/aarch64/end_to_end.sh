#!/usr/bin/env bash
# The tests of this directory, and those of other directories that reused.txt names, with programs for
# aarch64. Called by `make test-aarch64` through enter.sh.
set -euo pipefail
cd "$(dirname "$0")/../.."

chosen='^[^#]'
# Programs that exec others need a kernel that starts aarch64 programs; enter.sh sets this where it does not.
if [[ -n ${DFTRACER_TEST_EMULATOR:-} ]]; then chosen='^[^#!]'; fi
mapfile -t reused < <(grep "$chosen" tests/aarch64/reused.txt | sed 's/^!//')
PATH=$PWD/tests/aarch64/bin:$PATH .venv/bin/python -m pytest -q -n "${PYTEST_WORKERS:-2}" \
    --dist worksteal tests/aarch64 "${reused[@]}" "$@"
