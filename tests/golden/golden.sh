#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# golden.sh - the generator's outputs for small tables, its messages for bad ones, with every awk of this machine.
# UPDATE=1 rewrites the expected outputs.
set -u
dir=$top_srcdir/tests/golden
gen=$top_srcdir/maint/gen-api.awk
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
        head -20 "$tmp/log" | sed 's/^/# /'
        bad=1
    fi
}

outputs="header device exthdr pshmem generic types list pages alias table calls gencalls devcalls man"
man=(-v version=9.9 -v date=2020-01-02)

awks=("$AWK")
for a in mawk gawk "gawk --posix" "busybox awk" original-awk; do
    [ "$a" = "$AWK" ] || ! ${a} 'BEGIN { exit 0 }' </dev/null 2>/dev/null || awks+=("$a")
done

for a in "${awks[@]}"; do
    for o in $outputs; do
        # shellcheck disable=SC2086
        $a "${man[@]}" -v out="$o" -f "$gen" "$dir/types.tab" "$dir/api.tab" >"$tmp/$o" 2>"$tmp/log"
        s=$?
        [ -z "${UPDATE:-}" ] || [ "$a" != "$AWK" ] || cp "$tmp/$o" "$dir/want/$o"
        [ $s -ne 0 ] || diff "$dir/want/$o" "$tmp/$o" >"$tmp/log"
        point $? "$a: $o"
    done
    for t in "$dir"/bad/*.tab; do
        want=$(sed -n '1s/^# expect: //p' "$t")
        # shellcheck disable=SC2086
        $a -v out=header -f "$gen" "$dir/types.tab" "$t" >"$tmp/out" 2>"$tmp/log"
        s=$?
        [ $s -ne 0 ] && [ $s -lt 128 ] && grep -qF -e "$want" "$tmp/log"
        point $? "$a: bad table $(basename "$t"): $want"
    done
done

printf 'int rr int\nint r int\n' >"$tmp/types.tab"
$AWK -v out=types -f "$gen" "$tmp/types.tab" "$dir/api.tab" >/dev/null 2>"$tmp/log"
[ $? -eq 1 ] && grep -q ':2: TYPENAME int twice' "$tmp/log"
point $? "a TYPENAME twice"
printf 'int\n' >"$tmp/types.tab"
$AWK -v out=types -f "$gen" "$tmp/types.tab" "$dir/api.tab" >/dev/null 2>"$tmp/log"
[ $? -eq 1 ] && grep -q ':1: want TYPENAME CLASSES TYPE' "$tmp/log"
point $? "a row of one word"
$AWK -v out=nothing -f "$gen" "$dir/types.tab" "$dir/api.tab" >/dev/null 2>"$tmp/log"
[ $? -eq 1 ] && grep -q 'unknown out=nothing' "$tmp/log"
point $? "an unknown output"
echo "1..$n"
exit $bad
