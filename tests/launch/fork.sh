#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# fork.sh - oshrun by itself: exchange, exit statuses, signals, output, input, and what stays behind.
set -u
. "${top_srcdir:?}/tests/launch/lib.sh"
[ -x "$oshrun" ] || skip_all "no $oshrun"
job=$(own "$job")
mark=marrow-test-$$ # found in the command lines of what this script starts

# --- the exchange
for n in 1 2 3 4 7 33; do
    go 60 "$oshrun" -n $n "$job" exchange
    expect 0 "" "$n PEs exchange"
    holds "$n PEs say so" grep -qx "exchanged $n by fork key 1" "$dir/out"
done
go 30 "$job" exchange
holds "started bare it is a job of one" grep -qx "exchanged 1 by single key 1" "$dir/out"
go 30 "$oshrun" -n 2 sh -c "'$job' exchange && '$job' exchange"
holds "two programs one after the other in each PE" test "$(grep -c 'exchanged 2' "$dir/out")" = 2
ln -s "$job" "$dir/other_name"
go 30 "$oshrun" -n 1 "$job" exchange : -n 2 "$dir/other_name" exchange
holds "different executables in one job" grep -qx "exchanged 3 by fork key 1" "$dir/out"
go 30 "$oshrun" -n 2 bash -c "'$job' exchange 200<&-"
expect 3 "descriptor 200, which is not open" "a closed descriptor is named"
go 30 "$oshrun" -n 2 bash -c "'$job' exchange 200</dev/null"
expect 3 "descriptor 200 of MARROW_FORK_JOB is not the job's memory" "a reused descriptor is named"
go 30 env MARROW_FORK_JOB=banana "$job" exchange
expect 3 "MARROW_FORK_JOB=banana is not what oshrun writes" "a nonsense MARROW_FORK_JOB is named"
go 30 "$oshrun" -n 2 sh -c "'$job' sleep 0 2 & sleep 1; '$job' exchange; s=\$?; wait; exit \$s"
expect 3 "PE [01] has joined already as process" "two programs at once in one PE are refused"

# --- which bootstrap
go 30 env MARROW_BOOTSTRAP=banana "$job" exchange
expect 3 "MARROW_BOOTSTRAP=banana: no such bootstrap; auto, pmix, fork and single" "an unknown bootstrap is named"
go 30 env -u PMIX_NAMESPACE MARROW_BOOTSTRAP=pmix "$job" exchange
expect 3 "MARROW_BOOTSTRAP=pmix, but PMIX_NAMESPACE is not set" "pmix without a launcher is refused"
go 30 env MARROW_BOOTSTRAP=fork "$job" exchange
expect 3 "MARROW_BOOTSTRAP=fork, but MARROW_FORK_JOB is not set" "fork without oshrun is refused"
go 30 env -u PMIX_NAMESPACE SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=4 "$job" exchange
expect 3 "SLURM_STEP_NUM_TASKS=4.*srun --mpi=pmix" "a silent job of one under srun is refused"
go 30 env -u PMIX_NAMESPACE OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 "$job" exchange
expect 3 "OMPI_COMM_WORLD_SIZE=2" "a silent job of one under another launcher is refused"
go 30 env -u PMIX_NAMESPACE SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=4 MARROW_BOOTSTRAP=single "$job" exchange
expect 0 "" "but MARROW_BOOTSTRAP=single is obeyed"
go 30 env SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=4 PMIX_NAMESPACE=outer PMIX_RANK=3 "$oshrun" -n 2 "$job" exchange
holds "an outer launcher's environment does not reach the PEs" grep -qx "exchanged 2 by fork key 1" "$dir/out"

# --- exit statuses
go 30 "$oshrun" -n 3 true
expect 0 "" "all well"
go 30 "$oshrun" -n 3 sh -c 'test $MARROW_PE != 1 || exit 7; sleep 20'
expect 7 "^oshrun: PE 1 \(pid [0-9]+, sh\) exited with status 7$" "a failing PE's status, and its name"
holds "and soon" soon 8000
go 30 "$oshrun" -n 3 sh -c 'test $MARROW_PE != 2 || kill -SEGV $$; sleep 20'
expect 139 "^oshrun: PE 2 \(pid [0-9]+, sh\) was killed by signal 11 \(Segmentation fault\)" "a killed PE, and its signal"
go 30 "$oshrun" -n 3 sh -c 'trap "" TERM; test $MARROW_PE != 1 || exit 7; sleep 20; sleep 20'
expect 7 "PE 1" "PEs that ignore SIGTERM get SIGKILL"
holds "after a short grace" soon 12000
go 30 "$oshrun" -n 2 "$dir/no-such-program"
expect 127 "^oshrun: cannot execute $dir/no-such-program: No such file or directory$" "no such program"
holds "said once" test "$(wc -l < "$dir/err")" = 1
touch "$dir/plain"
go 30 "$oshrun" -n 2 "$dir/plain"
expect 126 "cannot execute $dir/plain: Permission denied" "not executable"
holds "said once" test "$(wc -l < "$dir/err")" = 1
(cd "$dir" && printf '#!/bin/sh\necho here\n' > localprog && chmod +x localprog)
go 30 sh -c "cd '$dir' && exec '$oshrun' -n 1 localprog"
expect 127 "is ./localprog meant" "a program of this folder without ./"
printf '#!/no/such/shell\n' > "$dir/odd" && chmod +x "$dir/odd"
go 30 "$oshrun" -n 2 "$dir/odd"
expect 127 "cannot execute $dir/odd: it is there, but not the interpreter" "a script whose interpreter is not there"
go 30 "$oshrun" -n 2 "" ring
expect 2 "^oshrun: the program's name is empty" "no name where the program should be"
go 30 "$oshrun" -n 2 --wdir "$dir/none" true
expect 126 "cannot run in folder $dir/none" "a folder that is not there"
go 30 "$oshrun" -n 2 --timeout 1 sleep 20
expect 124 "^oshrun: the job did not end within 1 s" "--timeout"

# --- the command line
for bad in "-n 0 true" "-n -3 true" "-n abc true" "-n 99999999999 true" "-n 2x true" "-n" "-n 2" "-zz true" \
    "--launcher banana true" "--timeout 0 true" "--hostfile x true" "--host other,another true" "true :" \
    "--launcher-args -O true" "--tag-output=3 true"; do
    # shellcheck disable=SC2086
    go 30 "$oshrun" $bad
    expect 2 "^oshrun: " "refused: $bad"
done
go 30 env MARROW_LAUNCHER=banana "$oshrun" true
expect 2 "MARROW_LAUNCHER=banana: no such launcher" "a wrong MARROW_LAUNCHER is named"
go 30 "$oshrun" -np 2 --oversubscribe -allow-run-as-root --mca btl self --map-by core --bind-to core -H localhost \
    "$job" exchange
expect 0 "" "options from mpirun scripts are accepted"
go 30 "$oshrun" -n=2 -x MARK=a=b -- sh -c 'echo $MARK : -n'
holds "-x VAR=VALUE, -n=N and --" test "$(sort "$dir/out" | uniq -c | tr -s ' ')" = " 2 a=b : -n"
go 30 "$oshrun" -n 2 --bind-to core sh -c 'grep Cpus_allowed_list /proc/self/status'
holds "--bind-to core gives one CPU each" test "$(grep -c '[-,]' "$dir/out")" = 0
go 30 "$oshrun" --help
holds "--help" grep -q "usage: oshrun" "$dir/out"

# --- output
go 60 "$oshrun" -n 4 sh -c 'i=0; while [ $i -lt 2000 ]; do echo "$MARROW_PE-$i-abcdefghijklmnopqrstuvwxyz"; i=$((i+1)); done'
holds "lines stay whole" test "$(grep -Ecx '[0-3]-[0-9]+-abcdefghijklmnopqrstuvwxyz' "$dir/out")" = 8000
go 60 "$oshrun" -n 3 sh -c 'for i in 1 2 3; do printf "abc"; sleep 0.1; echo "def$i"; done'
holds "lines written by pieces too" test "$(grep -cx 'abcdef[123]' "$dir/out")" = 9
go 30 "$oshrun" -n 3 printf x
holds "a last line without newline" test "$(tr -d '\n' < "$dir/out")" = xxx
go 30 "$oshrun" -n 1 printf 'a\r\nb\tc\004\003d'
holds "no byte is changed" test "$(od -An -c < "$dir/out" | tr -d ' \n')" = 'a\r\nb\tc004003d'
go 60 "$oshrun" -n 2 -l sh -c 'echo out; echo err >&2'
holds "--tag-output" test "$(sort "$dir/out" "$dir/err" | tr '\n' ,)" = "[0] err,[0] out,[1] err,[1] out,"
go 120 "$oshrun" -n 2 head -c 20000000 /dev/zero
holds "40 MB without a newline come through" test "$(tr -d '\n' < "$dir/out" | wc -c)" = 40000000
go 60 "$oshrun" -n 1 head -c 20000000 /dev/zero
holds "20 MB of one PE are not touched" test "$(wc -c < "$dir/out")" = 20000000
go 60 bash -c "'$oshrun' -n 2 seq 1 300000 | { sleep 2; wc -l; }"
holds "a slow reader gets all" grep -qx 600000 "$dir/out"
go 60 bash -c "'$oshrun' -n 2 yes $mark | head -2; echo \${PIPESTATUS[0]}"
holds "| head ends the job with 141" test "$(tr '\n' , < "$dir/out")" = "$mark,$mark,141,"
holds "and its PEs" within 5 nobody_runs "yes $mark"
cat > "$dir/crash.c" <<'C'
#include <stdio.h>
#include <stdlib.h>
int main(void) { printf("last words\n"); abort(); }
C
if ${CC:-cc} -o "$dir/crash" "$dir/crash.c" 2> /dev/null; then
    go 30 "$oshrun" -n 1 "$dir/crash"
    expect 134 "killed by signal 6" "a crash"
    holds "loses no line" grep -qx "last words" "$dir/out"
    go 30 bash -c "'$oshrun' -n 2 '$dir/crash' 2>&1"
    holds "what a PE said comes before the line about its end" \
        test "$(grep -n 'last words' "$dir/out" | head -1 | cut -d: -f1)" = 1
fi
go 30 "$oshrun" -n 2 --no-pty sh -c 'test -t 1 || echo pipe'
holds "--no-pty" test "$(grep -c pipe "$dir/out")" = 2
if [ -w /dev/full ]; then
    go 30 bash -c "'$oshrun' -n 2 sh -c 'echo x; sleep 20' > /dev/full"
    expect 1 "cannot write standard output: No space left" "a full disk"
fi

# --- input
printf 'one\ntwo\n' > "$dir/in"
input=$dir/in go 30 "$oshrun" -n 3 sh -c 'cat | wc -l'
holds "PE 0 gets the input, the others none" test "$(sort "$dir/out" | tr -d ' ' | tr '\n' ,)" = "0,0,2,"
go 30 bash -c "printf 'a\nb\n' | { '$oshrun' -n 2 true; cat; }"
holds "input that PE 0 does not read stays where it is" test "$(tr '\n' , < "$dir/out")" = "a,b,"

# --- a PE that does not come
go 60 "$oshrun" -n 3 "$job" never 1
expect 1 "PE 1 \(pid [0-9]+, .*boot_job\) exited with status 0 without having called shmem_init, while PE [02] waits" \
    "a PE that ends without init is named"
go 60 "$oshrun" -n 3 "$job" inside 0
expect 1 "PE 0 .* exited with status 0 inside shmem_init, while PE [12] waits" "a PE that ends inside init is named"
go 60 "$oshrun" -n 3 "$job" inside 2 5
expect 5 "PE 2 .* exited with status 5" "or fails there"
go 60 "$oshrun" -n 3 "$job" killed 1
expect 137 "PE 1 .* was killed by signal 9" "or is killed there"
go 60 "$oshrun" -n 3 "$job" late 1
expect 8 "waited 1 s in the start-up exchange for PE 1" "a late PE is named by those who wait"
go 60 "$oshrun" -n 3 "$job" leave 1
expect 0 "" "PEs may end at different times"

# --- global exit
for code in 0 9 255; do
    go 60 "$oshrun" -n 3 "$job" abort 1 $code
    if [ $code = 0 ]; then expect 0 "" "abort 0 ends all well"; else
        expect $code "PE 1 .* ended the job with status $code" "abort $code"; fi
    holds "and soon" soon 8000
done
go 60 "$oshrun" -n 2 sh -c "'$job' abort 1 4; sleep 20"
expect 4 "PE 1 .* ended the job with status 4" "abort through a wrapper script"
holds "and soon" soon 8000

# --- signals, and nothing left behind
# started N COMMAND...: in the background, once N lines in $dir/out say that a PE is up; its pid in $pid.
started() {
    local n=$1

    shift
    : > "$dir/out" # not the lines of the last one
    "$@" > "$dir/out" 2> "$dir/err" < /dev/null &
    pid=$!
    within 20 lines_up "$n"
}
lines_up() { [ "$(grep -c 'up\|joined' "$dir/out")" = "$1" ]; }
ended() {
    { wait $pid; } 2> /dev/null
    status=$?
}
# Signals that this shell ignores would be ignored by oshrun too, rightly.
catching="trap 'echo got; exit 0' INT TERM HUP USR1; echo up; while :; do sleep 0.1; done # $mark"
for sig in INT TERM HUP USR1; do
    started 2 env --default-signal=$sig "$oshrun" -n 2 bash -c "$catching"
    kill -$sig $pid
    ended
    holds "SIG$sig reaches the PEs" test "$(grep -c got "$dir/out") $status" = "2 0"
done
started 2 env --default-signal=INT "$oshrun" -n 2 bash -c "echo up; exec sleep 30.$$"
kill -INT $pid
ended
holds "SIGINT ends the job with 130" test $status = 130
holds "without a word" test ! -s "$dir/err"
started 2 "$oshrun" -n 2 bash -c "echo up; exec sleep 30.$$"
kill -TERM $pid
ended
holds "SIGTERM ends it with 143" test $status = 143
started 2 "$oshrun" -n 2 sh -c "echo up; sleep 30.$$; :"
kill -TSTP $pid
stopped() { grep -q '^State:.T' "/proc/$pid/status"; }
holds "SIGTSTP stops oshrun" within 5 stopped
children_stopped() {
    local p n=0

    for p in /proc/[0-9]*; do
        [ "$({ tr '\0' ' ' < "$p/cmdline"; } 2> /dev/null)" = "sleep 30.$$ " ] || continue
        grep -q '^State:.[Tt]' "$p/status" || return 1
        n=$((n + 1))
    done
    [ $n = 2 ]
}
holds "and the PEs" within 20 children_stopped
kill -CONT $pid
not_stopped() { ! stopped; }
holds "SIGCONT lets them run" within 5 not_stopped
kill -KILL $pid
ended
holds "kill -9 of oshrun leaves no PE and no child of a PE" within 5 nobody_runs "sleep 30.$$"
started 1 nohup "$oshrun" -n 1 sh -c "echo up; exec sleep 2.$$"
kill -HUP $pid
ended
holds "nohup is respected" test $status = 0
started 1 "$oshrun" -n 3 "$job" sleep 0 30
kill -KILL $pid
ended
holds "kill -9 of oshrun while PEs run" within 5 nobody_runs "$job"
done_testing
