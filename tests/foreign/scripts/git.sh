# A repository's life, with everything that a commit's name depends on fixed.
set -e
export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.org GIT_AUTHOR_DATE='2020-01-01T00:00:00Z'
export GIT_COMMITTER_NAME=C GIT_COMMITTER_EMAIL=c@example.org GIT_COMMITTER_DATE='2020-01-02T00:00:00Z'
export GIT_CONFIG_NOSYSTEM=1 GIT_PAGER=cat
git init -q -b main repository
cd repository
git config gc.auto 0
git config pack.threads 1
for i in 1 2 3 4 5 6 7 8; do mkdir -p "d$i" && seq 1 "$((i * 100))" > "d$i/file"; done
git add .
git commit -qm 'the first'
git checkout -qb side
seq 5 500 > d1/file && ln -s d1/file link
git add -A
git commit -qm 'on the side'
git checkout -q main
git mv d2 moved
echo changed >> d3/file
git commit -qam 'the second'
git merge -q side -m 'both'
git stash list
git tag -a v1 -m 'a tag'
git gc -q --prune=now
git fsck --strict --full --no-progress
git log --stat --format='%H %an %s'
git diff --stat v1~1 v1
git grep -n 300 -- d5
git status --short
git clone -q --no-local . ../copy
git -C ../copy rev-parse HEAD
git archive --format=tar v1 | tar -tf - | sort
git checkout -q no-such-branch
