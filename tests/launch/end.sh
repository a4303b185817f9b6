#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# end.sh - how jobs of the whole library end, under oshrun and mpirun: status, output, names, nothing left.
set -u
. "${top_srcdir:?}/tests/launch/lib.sh"
[ -x "$oshrun" ] || skip_all "no $oshrun"
end=$(own "$build/tests/launch/end_job")
cd "$dir" || exit 99

# ends STATUS HOW CODE WHAT: one job of three, whose PEs all said their line.
ends() {
    rm -f kept.*
    go 60 "${launch[@]}" -n 3 "$end" "$2" "$3" "$4"
    holds "$name: $2 $3, others in $4: status $1" test "$status" = "$1"
    holds "$name: and all were heard" test "$(grep -c "was here" out)" = 3
    holds "$name: and soon" soon 25000
}
kept() { test "$(cat kept.* | sort | tr '\n' ,)" = "kept 0,kept 1,kept 2,"; }

for name in oshrun mpirun; do
    launch=("$oshrun")
    if [ $name = mpirun ]; then
        [ "${MPIRUN:-no}" != no ] && [ "${MARROW_HAVE_PMIX:-yes}" = yes ] || continue
        launch=("$MPIRUN" --bind-to none --oversubscribe)
        [ "$(id -u)" != 0 ] || launch+=(--allow-run-as-root)
    fi
    ends 0 return 0 barrier
    ends 0 handler 0 barrier
    ends 0 global 0 barrier
    holds "$name: files of waiting PEs are flushed" kept
    ends 0 global 0 compute
    ends 5 global 5 barrier
    holds "$name: files of waiting PEs are flushed" kept
    ends 5 global 5 sleep
    ends 255 global 256 barrier # no failure looks like success
    ends 7 global 263 barrier
    ends 1 exit 0 barrier
    ends 4 exit 4 barrier
    ends 1 _exit 0 barrier
    ends 139 kill 0 barrier
done
launch=("$oshrun") name=oshrun
ends 3 return 3 barrier
holds "oshrun: a status after shmem_finalize lets the others end well" kept
holds "oshrun: and names the PE" grep -Eq "^oshrun: PE [0-2] \(pid [0-9]+, .*end_job\) exited with status 3$" err
holds "no process is left" within 5 nobody_runs "$end"
done_testing
