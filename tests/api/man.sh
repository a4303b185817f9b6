#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# man.sh - every routine has a page, every page is well-formed, every variable of env.def is described.
set -u
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
export LC_ALL=C
n=0 bad=0

point() { # STATUS TEXT
    n=$((n + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $n - $2"
    else
        echo "not ok $n - $2"
        head -40 "$tmp/log" | sed 's/^/# /'
        bad=1
    fi
}

man=$top_builddir/man
(cd "$man/man3" && ls ./*.3) | sed 's|./||; s/\.3$//' | sort >"$tmp/pages"
awk '{ print $3 }' "$top_builddir/api.list" | sort -u | diff - "$tmp/pages" >"$tmp/log"
point $? "each family has its page and each page its family"

awk '{ print $1 }' "$man/man3.alias" | cat - "$tmp/pages" | sort >"$tmp/all"
uniq -d "$tmp/all" >"$tmp/log"
[ ! -s "$tmp/log" ]
point $? "no page name twice"
awk '{ print $1 }' "$top_builddir/api.list" | sort | comm -23 - "$tmp/all" >"$tmp/log"
[ ! -s "$tmp/log" ]
point $? "each routine is a page or an alias of one"
awk '{ print $2 }' "$man/man3.alias" | sort -u | comm -23 - "$tmp/pages" >"$tmp/log"
[ ! -s "$tmp/log" ]
point $? "each alias leads to a page"

sed -n 's/^SHMEMI_ENV([^,]*, SPEC, "\([^"]*\)".*/SHMEM_\1/p; s/^SHMEMI_ENV([^,]*, OWN, "\([^"]*\)".*/MARROW_\1/p' \
    "$top_srcdir/api/env.def" | sort >"$tmp/rows"
sed -n 's/^\.B \([A-Z_]*\)$/\1/p' "$man/shmem_env.7" | sort | diff "$tmp/rows" - >"$tmp/log"
point $? "shmem_env(7) has each variable of env.def"

if command -v mandoc >/dev/null; then
    shopt -s nullglob
    mandoc -T lint -W style "$man"/man3/*.3 "$man/shmem_env.7" >"$tmp/log" 2>&1
    [ ! -s "$tmp/log" ]
    point $? "mandoc finds nothing in the generated pages"
    mandoc -T lint -W warning "$top_srcdir"/man/*.[1-8] "$top_srcdir"/man/man?/*.[1-8] >"$tmp/log" 2>&1
    [ ! -s "$tmp/log" ]
    point $? "mandoc has no warning for the other pages"
else
    for what in "nothing in the generated pages" "no warning for the other pages"; do
        n=$((n + 1))
        echo "ok $n - mandoc finds $what # SKIP no mandoc"
    done
fi
echo "1..$n"
exit $bad
