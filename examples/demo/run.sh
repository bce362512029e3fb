#!/usr/bin/env bash
# `make demo`: traces a training that nobody annotated, and reports where its time went.
# run.sh DIRECTORY; dftracer and python are those of the PATH.
set -euo pipefail
directory=$1
mkdir -p "$directory"
# As the commands name it: where it is, seen from the demo's directory.
here=$(realpath --relative-to "$directory" "$(dirname "$0")")
cd "$directory"

say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }

say "a small data set"
if [[ ! -d data ]]; then
    rm -rf data.new
    python "$here/make_data.py" data.new
    mv data.new data
fi
rm -rf trace report.html

if python -c 'import torch' 2>/dev/null; then
    program=(--torch -- python "$here/train.py" data)
    say "dftracer run --torch -- python train.py data"
else
    # Without PyTorch: the same training in numpy, and a C program beside it.
    package=$(python -c 'import dftracer, os; print(os.path.dirname(dftracer.__file__))')
    cc -std=c99 -O2 -o program "$here/../demo.c" -I"$package/include" -L"$package/lib64" \
        -ldftracer_core -lm -Wl,-rpath,"$package/lib64"
    program=(-- sh -c "./program && python '$here/train_numpy.py' data")
    say "dftracer run -- sh -c './program && python train_numpy.py data' (PyTorch is not there)"
fi
dftracer run -q -o trace "${program[@]}"

say "dftracer report $directory/trace -o $directory/report.html"
dftracer report trace -o report.html

say "look at it"
cat <<TEXT
  $directory/report.html     open it in a browser: the whole report, in one file
  dftracer view $directory/trace    the timeline, in the browser, offline
  dftracer info $directory/trace    what each file holds
  (dftracer is in .venv/bin)
TEXT
