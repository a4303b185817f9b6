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

# The mean of the run whose p50 is shown: far from it when the samples have two humps.
function average(lib, row,    k) {
    k = value[lib, row, 1] != "" && best(lib, row) == value[lib, row, 1] ? 1 : 2
    return mean[lib, row, k]
}

function text(v) { return v == "" ? "-" : v }

FNR == 1 { n = split(FILENAME, part, "/"); split(part[n], w, "."); lib = w[1]; turn = w[2] }
/^#/ { next }
FILENAME ~ /bars\.tab$/ { bar[$1] = pes == 4 ? $3 : $2; next }
{
    split($0, f, ",")
    if (f[1] == "row" || f[7] == "") next
    if (!(f[1] in unit)) { unit[f[1]] = f[2]; order[++rows] = f[1] }
    value[lib, f[1], turn] = f[3] + 0
    mean[lib, f[1], turn] = f[4] + 0
    p999[lib, f[1], turn] = f[5] + 0
    if (f[7] > 0) { wrong[lib, f[1]] = f[7]; any_wrong = 1 }
    seen[lib] = 1
}
END {
    printf "%-25s %-5s %9s %9s %7s %5s %9s %9s %7s %8s %8s %6s %7s  %s\n", "row", "unit", "Marrow", "mean", "spread%", "tail", "NVSHMEM", "mean",
        "spread%", "NCCL", "mean", "ahead", "bar", "verdict"
    if (csv != "") print "row,unit,marrow,marrow_mean,marrow_spread,marrow_tail,nvshmem,nvshmem_mean,nvshmem_spread,nccl,nccl_mean,ahead,bar,verdict" > csv
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
        line = sprintf("%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s", row, unit[row], text(m), text(average("marrow", row)),
            spread("marrow", row), tail(row), text(v), text(average("nvshmem", row)), spread("nvshmem", row), text(c),
            text(average("nccl", row)), ahead, limit, verdict)
        split(line, c_, ",")
        printf "%-25s %-5s %9s %9s %7s %5s %9s %9s %7s %8s %8s %6s %7s  %s\n", c_[1], c_[2], c_[3], c_[4], c_[5], c_[6], c_[7],
            c_[8], c_[9], c_[10], c_[11], c_[12], c_[13], c_[14]
        if (csv != "") print line > csv
    }
    printf "bars met: %d of %d; ahead of NVSHMEM in %d of %d rows\n", met, counted, first, both
    exit any_wrong
}
