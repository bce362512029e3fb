# Every way in which a shell moves descriptors about.
set -e
exec 3>a 4>b
echo to a >&3
echo to b >&4
printf '%s\n' more >&3 4>&-
exec 5>&3 3>&-
echo a again >&5
exec 5>&- 6<a 7<>both
read -r -u 6 line && echo "first: $line"
cat <&6
printf 'read and written\n' >&7
exec 6<&- 7>&-
exec {chosen}>chosen
echo "number above nine: $((chosen > 9))" >&"$chosen"
exec {chosen}>&-
echo appended >> a
echo clobbered >| b
set -C
(echo refused > b) 2>&1 | sed 's/.*: b: /b: /'
set +C
{ echo out; echo err >&2; } > out 2> err
{ echo out; echo err >&2; } &> two
{ echo out; echo err >&2; } 2>&1 >> two | cat > piped
cat missing 2> complaint || true
cat <<END > here
a here document, $((6 * 7))
END
cat <<< "a here string" >> here
cat <(sort -r here) <(echo substituted) > joined
tee >(tr a-z A-Z > upper) < here > /dev/null
# The shell does not wait for what it substituted.
until [ -s upper ] && [ "$(wc -c < upper)" = "$(wc -c < here)" ]; do sleep 0.01; done
diff <(sort a) <(sort a) && echo the same
while read -r one two; do echo "$two $one"; done < a > swapped
mapfile -t lines < a
echo "${#lines[@]} lines: $(< b)"
seq 1 500 | tee numbers | sort -n | tail -n 1
seq 1 100000 | head -n 1
(exec > inner; echo inside a subshell; exec cat numbers) && echo and out
coproc UP { while read -r word; do echo "up: $word"; done; }
echo hello >&"${UP[1]}"
read -r answer <&"${UP[0]}" && echo "$answer"
exec {input}>&"${UP[1]}" {input}>&-
eval "exec ${UP[1]}>&-"
wait
sleep 0 & wait $!
: > empty
[ ! -s empty ] && exec 8<&0 0< numbers && head -c 8 && exec 0<&8 8<&-
trap 'echo at the end > trapped' EXIT
exec 9> nine
(echo inherited >&9)
bash -c 'echo inherited over exec >&9'
false || exit 3
