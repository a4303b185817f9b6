#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# compare.sh - shmem-perf of two OpenSHMEM libraries, in turns, and the ratios of their medians.
#
#     bench/compare.sh [-r ROUNDS] [-R LOW:HIGH] 'LAUNCH LINE A' 'LAUNCH LINE B' [shmem-perf option]...
#
# Each launch line starts that library's own build of shmem-perf, for example
#     'oshrun -n 2 /a/bin/shmem-perf --pin'   'mpirun -np 2 /b/bin/shmem-perf --pin'
# (the other library's comes from:  its-oshcc -O2 src/tools/perf/*.c -o shmem-perf).
# Each round runs A then B, the next B then A.  A run counts when its ruler, start and end, lies within
# LOW:HIGH ns (default: any).  Printed for each row: the median over the runs of A's and B's p50, and
# A / B.  A ratio below 1 says that A is faster.
set -eu

usage() {
    sed -n '3,13s/^# \{0,1\}//p' "$0" >&2
    exit 1
}

rounds=5
ruler=0:1000000
while getopts r:R: opt; do
    case $opt in
    r) rounds=$OPTARG ;;
    R) ruler=$OPTARG ;;
    *) usage ;;
    esac
done
shift $((OPTIND - 1))
[ $# -ge 2 ] || usage
case $rounds in
'' | *[!0-9]*) usage ;;
esac
line_a=$1
line_b=$2
shift 2

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM

# run LETTER ROUND LINE [OPTION]...: one job; its CSV goes to LETTER.ROUND.
run() {
    letter=$1
    round=$2
    line=$3
    shift 3
    echo "round $round: $letter" >&2
    sh -c "exec $line --csv \"\$@\"" run "$@" >"$dir/$letter.$round" </dev/null ||
        echo "compare: $letter, round $round: exit status $?; what it printed counts" >&2
}

i=1
while [ "$i" -le "$rounds" ]; do
    if [ $((i % 2)) -eq 1 ]; then
        run A "$i" "$line_a" "$@"
        run B "$i" "$line_b" "$@"
    else
        run B "$i" "$line_b" "$@"
        run A "$i" "$line_a" "$@"
    fi
    i=$((i + 1))
done

awk -F, -v ruler="$ruler" '
function median(list,    v, n, i, k, t) {
    n = split(list, v, " ")
    for (i = 2; i <= n; i++)
        for (k = i; k > 1 && v[k] + 0 < v[k - 1] + 0; k--) {
            t = v[k]; v[k] = v[k - 1]; v[k - 1] = t
        }
    return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
}
function flush_run(    i) {
    if (letter == "")
        return
    runs[letter]++
    if (inside) {
        counted[letter]++
        for (i = 1; i <= n; i++)
            all[letter, key[i]] = all[letter, key[i]] " " value[i]
        rulers[letter] = rulers[letter] " " start
    }
    n = 0
}
BEGIN { split(ruler, bound, ":") }
FNR == 1 {
    flush_run()
    letter = FILENAME; sub(/.*\//, "", letter); sub(/\..*/, "", letter)
    inside = 1
}
/^# ruler_/ {
    split($0, w, " ")
    if (w[2] == "ruler_start_ns") start = w[3]
    if (w[3] + 0 < bound[1] + 0 || w[3] + 0 > bound[2] + 0) inside = 0
    next
}
/^# library/ { name[letter] = substr($0, 11) }
/^#/ || $1 == "test" || NF < 14 { next }
{
    k = $1 "," $2 "," $3
    if (!(k in seen)) { seen[k] = 1; order[++rows] = k }
    key[++n] = k
    value[n] = $7
}
END {
    flush_run()
    for (l = 1; l <= 2; l++) {
        letter = l == 1 ? "A" : "B"
        printf "%s: %s; %d of %d runs count, ruler %.1f ns\n", letter, name[letter], counted[letter], runs[letter], \
            rulers[letter] == "" ? 0 : median(rulers[letter])
    }
    if (!counted["A"] || !counted["B"]) { print "nothing to compare"; exit 1 }
    printf "\n%-18s %9s %-6s %12s %12s %8s\n", "test", "bytes", "how", "A ns", "B ns", "A / B"
    for (i = 1; i <= rows; i++) {
        k = order[i]
        split(k, w, ",")
        a = all["A", k] == "" ? "-" : median(all["A", k])
        b = all["B", k] == "" ? "-" : median(all["B", k])
        if (a == "-" || b == "-" || b == 0)
            printf "%-18s %9s %-6s %12s %12s %8s\n", w[1], w[2], w[3], a, b, "-"
        else
            printf "%-18s %9s %-6s %12.1f %12.1f %8.2f\n", w[1], w[2], w[3], a, b, a / b
    }
}' "$dir"/[AB].*
