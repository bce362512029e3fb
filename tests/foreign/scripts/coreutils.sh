# The small tools, right and wrong uses of each; says nothing that depends on time or place.
umask 022
say() { printf '== %s\n' "$*"; "$@"; printf '== %s\n' $?; }

printf 'three\none\ntwo\nthree\n' > words
seq 1 3000 > numbers
mkdir -p tree/a/b tree/c
say cat words numbers missing > joined
say cat -n words
say cat .
say head -n 3 numbers
say head -c -13880 numbers
say tail -n 3 numbers
say tail -c 20 numbers
say tac words
say rev words
say nl words
say wc words numbers joined
say sort -u words
say sort -rn -o reversed numbers
say sort -c numbers
say uniq -c words
say comm words words
say join words words
say paste words words
say cut -c 2- words
say tr a-z A-Z < words
say fold -w 3 words
say expand words
say split -n 3 -d numbers part.
say csplit -s -f cut. numbers 100 200
say shuf --random-source=numbers -n 5 numbers
say tee copy1 copy2 < words
say sha256sum numbers
say md5sum words missing
say cksum numbers words
say base64 words
say od -c words
say cp words tree/a/words
say cp -r --preserve=mode,timestamps,links tree tree2
say cp --sparse=always numbers sparse
say cp --reflink=auto numbers cloned
say cp -l words linked
say cp -s "$PWD/words" pointer
say cp missing there
say cp words missing/there
say cp tree nowhere
say mv tree2 tree3
say mv words tree3/
say mv missing other
say ln tree3/words words
say ln -s loop loop
say cat loop
say ln -sf numbers latest
say readlink latest
say realpath --relative-to=. latest
say rm tree3/words missing
say rm -r tree3
say rm tree
say mkdir tree
say mkdir -m 700 -p private/inside
say rmdir private
say rmdir --ignore-fail-on-non-empty private
say touch -d @1000000000 stamped
say touch -r stamped stamped2
say stat -c '%n %s %F %a %Y %h' stamped stamped2
say stat -c '%n %F %a %h' tree latest
say stat -L -c '%n %s' latest
say chmod -R u=rwX,go= private
say chmod 600 missing
say truncate -s 12345 grown
say truncate -s -1 grown
say install -m 640 -D numbers deep/down/numbers
say ls -A
say ls -R tree
say ls missing
say ls -l --time-style=+%s stamped
say du -a --apparent-size tree
say df --output=source missing
say dd if=numbers of=slice bs=100 skip=3 seek=2 count=5 conv=notrunc status=none
say dd if=numbers of=swapped conv=swab,sync bs=512 status=none
say dd if=missing status=none
say mkfifo fifo
(echo through the fifo > fifo) &
say cat fifo
wait
say test -s numbers
say test -p fifo
say timeout 10 cat words
say env -u HOME printenv HOME
say nohup cat words
say nice cat words
say seq -s , 10
say yes | head -n 2
say factor 1234567890
say printf '%s\n' out of printf
say echo written > /dev/full
say cat words > /dev/full
say sync numbers
say xargs -n 1 echo < words
head -n 60 numbers > few
say xargs -P 2 -n 1 cat < few > /dev/null 2> /dev/null
say grep -n t words
say grep -rl 300 . --include='numbers'
say grep nothing words
say sed -i s/three/3/ words
say sed -n 5,7p numbers
say awk '{ sum += $1; print > "column" } END { print sum }' numbers
say diff words tree/a/words
say cmp numbers reversed
say gzip -n -k numbers
say gzip -t numbers.gz
say gunzip -c numbers.gz > unzipped
say cmp numbers unzipped
say file-that-is-no-program
say ./words
say sh -c 'exit 42'
say sh -c 'kill -TERM $$'
exit 7
