#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# abi.sh - the tables, the headers, the version script and the library list the same names, no more and no fewer.
set -u
lib=$top_builddir/src/.libs/libmarrow.so
list=$top_builddir/api.list
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
export LC_ALL=C
n=0 bad=0

same() { # FILE FILE TEXT
    n=$((n + 1))
    if cmp -s "$1" "$2"; then
        echo "ok $n - $3"
    else
        echo "not ok $n - $3"
        diff "$1" "$2" | grep '^[<>]' | head -40 | sed 's/^/# /'
        bad=1
    fi
}

# "int (name)(" or "int name(": the names that a header declares
declared() { sed -nE 's/^SHMEM_API .*[ *]([a-z_][A-Za-z0-9_]*)\(.*\)( SHMEM_NORETURN)?;$/\1/p' "$@" | sort; }

awk '{ print $1 }' "$list" | sort >"$tmp/names"
sed 's/^/p/' "$tmp/names" | sort - "$tmp/names" >"$tmp/both"

awk '$2 != "extension" { print $2 }' "$list" | sort | uniq -c | awk '{ print $2, $1 }' >"$tmp/counts"
# 1,778 synopses (93 of them deprecated) and the short and ushort forms of wait_until and test that the text adds
printf 'current 1685\ndeprecated 97\nold 12\n' >"$tmp/want"
same "$tmp/want" "$tmp/counts" "counts of OpenSHMEM 1.6"

uniq -d "$tmp/names" >"$tmp/twice"
: >"$tmp/none"
same "$tmp/none" "$tmp/twice" "no name twice"

declared "$top_builddir"/include/shmem/api.h "$top_builddir"/include/shmem/apix.h >"$tmp/header"
same "$tmp/names" "$tmp/header" "shmem.h and shmemx.h declare each name"

awk '$1 !~ /^shmemx_/ { print "p" $1 }' "$list" | sort >"$tmp/pnames"
declared "$top_builddir/include/pshmem.h" >"$tmp/pheader"
same "$tmp/pnames" "$tmp/pheader" "pshmem.h declares each profiling name"

$NM -D --defined-only "$lib" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort >"$tmp/library"
same "$tmp/both" "$tmp/library" "the library exports each name and profiling name, and nothing else"

$NM -D --defined-only "$lib" | awk '$2 != "A" && $3 !~ /@@MARROW_1$/ { print $3 }' >"$tmp/unversioned"
same "$tmp/none" "$tmp/unversioned" "each name carries the version of the map"

$NM -D --defined-only "$lib" | awk '$2 == "W" { sub(/@.*/, "", $3); print $3 }' | sort >"$tmp/weak"
same "$tmp/names" "$tmp/weak" "the standard names are weak, the profiling names are not"

# each pattern of the map matches a name, each name matches a pattern
sed -n '/global:/,/local:/p' "$top_srcdir/src/libmarrow.map" | sed -n 's/^ *\([A-Za-z_*]*\);$/\1/p' >"$tmp/patterns"
: >"$tmp/unmatched"
while read -r name; do
    hit=
    while read -r pattern; do
        # shellcheck disable=SC2254
        case $name in $pattern) hit=1; break ;; esac
    done <"$tmp/patterns"
    [ -n "$hit" ] || echo "$name" >>"$tmp/unmatched"
done <"$tmp/both"
same "$tmp/none" "$tmp/unmatched" "the map lets each name out"
: >"$tmp/idle"
while read -r pattern; do
    hit=
    while read -r name; do
        # shellcheck disable=SC2254
        case $name in $pattern) hit=1; break ;; esac
    done <"$tmp/both"
    [ -n "$hit" ] || echo "$pattern" >>"$tmp/idle"
done <"$tmp/patterns"
same "$tmp/none" "$tmp/idle" "each pattern of the map lets a name out"
echo "1..$n"
exit $bad
