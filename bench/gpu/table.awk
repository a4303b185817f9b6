# SPDX-License-Identifier: BSD-3-Clause
# table.awk - the results of a run side by side.
#
#     awk -v pes=2 -v bars=1 -v csv=FILE -f table.awk bars.tab DIR/marrow.1 DIR/marrow.2 DIR/nvshmem.1 DIR/nvshmem.2 DIR/nccl.1
#
# Each figure is the better run's p50; spread is the difference of the two runs' p50 in % of it.  Rates (units with /s) are
# better when larger, and their ratio is turned round: above 1, ours is always ahead.  bars=0: no bars (several PEs on a GPU).
function larger_is_better(row) { return unit[row] ~ /\/s$/ }

function best(lib, row,    a, b) {
    a = value[lib, row, 1]; b = value[lib, row, 2]
    if (a == "" || b == "") return a b
    return (larger_is_better(row) ? a + 0 >= b + 0 : a + 0 <= b + 0) ? a : b
}

function spread(lib, row,    a, b) {
    a = value[lib, row, 1]; b = value[lib, row, 2]
    if (a == "" || b == "" || a + b == 0) return "-"
    return sprintf("%.0f", 100 * (a > b ? a - b : b - a) / best(lib, row))
}

function tail(row,    t, k, r) {
    t = ""
    for (k = 1; k <= 2; k++)
        if (value["marrow", row, k] + 0 > 0) {
            r = p999["marrow", row, k] / value["marrow", row, k]
            if (t == "" || r < t) t = r
        }
    return t == "" ? "-" : sprintf("%.2f", t)
}

function text(v) { return v == "" ? "-" : v }

FNR == 1 { n = split(FILENAME, part, "/"); split(part[n], w, "."); lib = w[1]; turn = w[2] }
/^#/ { next }
FILENAME ~ /bars\.tab$/ { bar[$1] = pes == 4 ? $3 : $2; next }
{
    split($0, f, ",")
    if (f[1] == "row" || f[6] == "") next
    if (!(f[1] in unit)) { unit[f[1]] = f[2]; order[++rows] = f[1] }
    value[lib, f[1], turn] = f[3] + 0
    p999[lib, f[1], turn] = f[4] + 0
    if (f[6] > 0) { wrong[lib, f[1]] = f[6]; any_wrong = 1 }
    seen[lib] = 1
}
END {
    printf "%-25s %-5s %10s %7s %6s %10s %7s %10s %7s %8s  %s\n", "row", "unit", "Marrow", "spread%", "tail", "NVSHMEM", "spread%",
        "NCCL", "ahead", "bar", "verdict"
    if (csv != "") print "row,unit,marrow,marrow_spread,marrow_tail,nvshmem,nvshmem_spread,nccl,ahead,bar,verdict" > csv
    for (i = 1; i <= rows; i++) {
        row = order[i]
        m = best("marrow", row); v = best("nvshmem", row); c = best("nccl", row)
        ahead = m == "" || v == "" || m == 0 || v == 0 ? "-" : sprintf("%.2f", larger_is_better(row) ? m / v : v / m)
        limit = bars && (row in bar) ? bar[row] : "-"
        verdict = ""
        if (limit != "-" && m != "")
            verdict = (larger_is_better(row) ? m >= limit : m <= limit) ? "meets" : "SHORT"
        if (limit != "-") { counted++; if (verdict == "meets") met++ }
        if (ahead != "-") { both++; if (ahead >= 1) first++ }
        if (wrong["marrow", row]) verdict = verdict " WRONG VALUES"
        if (wrong["nvshmem", row]) verdict = verdict " (NVSHMEM: wrong values)"
        printf "%-25s %-5s %10s %7s %6s %10s %7s %10s %7s %8s  %s\n", row, unit[row], text(m), spread("marrow", row), tail(row), text(v),
            spread("nvshmem", row), text(c), ahead, limit, verdict
        if (csv != "")
            printf "%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s\n", row, unit[row], text(m), spread("marrow", row), tail(row), text(v),
                spread("nvshmem", row), text(c), ahead, limit, verdict > csv
    }
    printf "bars met: %d of %d; ahead of NVSHMEM in %d of %d rows\n", met, counted, first, both
    exit any_wrong
}
