#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# mpirun.sh - under mpirun, started plainly and through oshrun: exchange, failures, global exit.
set -u
. "${top_srcdir:?}/tests/launch/lib.sh"
[ "${MPIRUN:-no}" != no ] || skip_all "no mpirun"
[ "${MARROW_HAVE_PMIX:-yes}" = yes ] || skip_all "built without PMIx"
command -v mpirun > /dev/null || skip_all "no mpirun in PATH"
plain=("$MPIRUN" --bind-to none --oversubscribe)
[ "$(id -u)" != 0 ] || plain+=(--allow-run-as-root)
# The session folder of an mpirun that is killed goes with ours.
export OMPI_MCA_orte_tmpdir_base=$dir PRTE_MCA_prte_tmpdir_base=$dir

go 60 "${plain[@]}" -n 2 true
[ "$status" = 0 ] || skip_all "mpirun does not run here"

for n in 1 2 3 4 8; do
    go 60 "${plain[@]}" -n $n "$job" exchange
    expect 0 "" "$n PEs exchange"
    holds "$n PEs say so" grep -qx "exchanged $n by pmix key 0" "$dir/out"
done
go 60 "$oshrun" --launcher mpirun -n 3 "$job" exchange
holds "through oshrun" grep -qx "exchanged 3 by pmix key 0" "$dir/out"
go 60 env MARROW_LAUNCHER=mpirun "$oshrun" -np 2 --oversubscribe --mca btl self,vader -x FOO=bar --wdir "$dir" \
    sh -c 'echo $FOO $PWD'
holds "its options arrive" test "$(sort -u "$dir/out")" = "bar $dir"
go 60 "$oshrun" --launcher mpirun -n 1 "$job" exchange : -n 2 "$job" exchange
holds "several programs" grep -qx "exchanged 3 by pmix key 0" "$dir/out"
go 60 "$oshrun" --launcher mpirun -n 1 "$oshrun" -n 2 "$job" exchange
holds "oshrun inside mpirun" grep -qx "exchanged 2 by fork key 1" "$dir/out"
go 60 "$oshrun" -n 1 "${plain[@]}" -n 2 "$job" exchange
holds "mpirun inside oshrun" grep -qx "exchanged 2 by pmix key 0" "$dir/out"
go 60 "$oshrun" --launcher mpirun --show -n 2 --launcher-args '--display-map -v' prog arg
holds "--show" grep -Eqx "mpirun .*--oversubscribe .*--display-map -v -n 2 prog arg" "$dir/out"
go 60 env PATH="$dir" "$oshrun" --launcher mpirun -n 2 "$job" exchange
expect 127 "cannot execute the launcher mpirun: No such file" "no mpirun"

# One that never collects its dead child, as an mpirun that has locked itself up.
mkdir "$dir/hung"
printf '#!/bin/sh\nsleep 0.2 &\nexec sleep 60\n' > "$dir/hung/mpirun"
chmod +x "$dir/hung/mpirun"
go 50 env PATH="$dir/hung:$PATH" "$oshrun" --launcher mpirun -n 2 true
expect 137 "^oshrun: mpirun hangs: for 10 s it has not noticed that its process [0-9]+ is dead; killing it$" \
    "an mpirun that hangs is ended"

go 60 env PMIX_NAMESPACE=gone PMIX_RANK=0 "$job" exchange
expect 3 "PMIX_NAMESPACE=gone, but its PMIx server does not answer" "a PMIx server that is gone is named"

# A server that hangs, as one in which another process has died; without a limit the PE would sit there for good.
go 60 "${plain[@]}" -n 1 sh -c 'kill -STOP $PPID; MARROW_INIT_TIMEOUT=2 "$0" exchange 2> "$1"; echo "status $?" >> "$1"
    kill -CONT $PPID' "$job" "$dir/frozen"
holds "a PMIx server that hangs is named in time" eval 'grep -q "^status 1$" "$dir/frozen" &&
    grep -q "PMIx_Init has not come back in 2 s (MARROW_INIT_TIMEOUT)" "$dir/frozen"'

for code in 0 9; do
    go 60 "${plain[@]}" -n 3 "$job" abort 1 $code
    holds "abort $code" test "$status" = $code
    holds "and soon" soon 25000
done
go 60 "${plain[@]}" -n 3 "$job" killed 1
holds "a killed PE" test "$status" = 137
go 60 "${plain[@]}" -n 3 "$job" late 1
expect 8 "waited 1 s in the start-up exchange for PE 1$" "a late PE is named"
go 60 "${plain[@]}" -n 3 "$job" leave 1
expect 0 "" "PEs may end at different times"
go 60 "${plain[@]}" -n 3 "$job" inside 1 5
holds "a PE that fails inside init" test "$status" = 5
: > "$dir/out"
job=$(own "$job")
"${plain[@]}" -n 2 "$job" sleep 0 30 > "$dir/out" 2> "$dir/err" < /dev/null &
pid=$!
within 30 grep -q joined "$dir/out"
kill -KILL $pid
{ wait $pid; } 2> /dev/null
holds "kill -9 of mpirun leaves no PE" within 10 nobody_runs "$job"
done_testing
