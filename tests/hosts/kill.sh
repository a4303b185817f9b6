#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# kill.sh - kills one PE at a random moment, over and over: each job ends in time with a status, and leaves nothing.
#
# MARROW_TEST_KILLS says how often (default 8; a full run is 100), MARROW_TEST_SEED repeats a run.  Ways in turn:
# launcher, nodes, transport, loss.  The launcher `deaf' is an mpirun that goes on when a process dies, as srun does
# without -K: there the library alone has to notice, and so only once it is up: when a PE dies while others connect to
# the launcher's PMIx server, these wait inside PMIx_Init for as long as PMIx likes (45 s and more were seen).
set -u
. "${top_srcdir:?}/tests/launch/lib.sh"
nic=$build/tests/softhca/softhca-run
work=$(own "$build/tests/hosts/net_job")
[ -x "$nic" ] || skip_all "no virtual NIC"
kills=${MARROW_TEST_KILLS:-8}
RANDOM=${MARROW_TEST_SEED:=$$}
echo "# seed $MARROW_TEST_SEED"
limit=20 # seconds, from the kill on: what the settings below add up to, and as much again for a loaded machine
export SHMEM_SYMMETRIC_SIZE=64M MARROW_IB_TIMEOUT=14 MARROW_IB_RETRY=3 MARROW_CONNECT_TIMEOUT=4 MARROW_TIMEOUT=8 MARROW_INIT_TIMEOUT=8
# What processes leave in a temporary folder is ours to see.
export TMPDIR=$dir OMPI_MCA_orte_tmpdir_base=$dir PRTE_MCA_prte_tmpdir_base=$dir
launchers=(oshrun)
[ "${MPIRUN:-no}" = no ] || [ "${MARROW_HAVE_PMIX:-yes}" != yes ] || launchers+=(deaf mpirun)

# started HOW NODES LOSS: the job in the background, its output in $dir/out.
started() {
    local -a line=("$nic" --faults "loss=$3" "$oshrun")
    case $1 in
    mpirun) line+=(--launcher mpirun) ;;
    deaf) line+=(--launcher mpirun --launcher-args "--enable-recovery") ;;
    esac
    : > "$dir/out" # here: the job's own redirection may come after our first look, which would see the pids of the last job
    timeout -k 5 90 "${line[@]}" --nodes "$2" -n 4 "$work" work 0 60000 > "$dir/out" 2> "$dir/err" < /dev/null &
    job=$!
}
pids() { sed -n 's/^pid //p' "$dir/out"; }
# left WORD: what can be said about the processes that should be gone, and the job's last words.
left() {
    local pid rest
    who_runs "$1" | while read -r pid rest; do
        echo "# left: $pid $(sed -n 's/^State:\t//p; s/^PPid:\t/child of /p' "/proc/$pid/status" | tr '\n' ' ')$rest"
        head -qn 1 "/proc/$pid/task"/*/{comm,wchan} 2> /dev/null | tr '\n' ' ' | sed 's/^/#   threads: /; s/$/\n/'
    done
    tail -n 20 "$dir/err" | sed 's/^/# stderr: /'
}
# In any phase: in the start-up exchange, in a connection's set-up, at work.
noticed='PE [0-3].* (failed on mlx5_0|has died|gave up|has not answered)|gave up .* PE [0-3]|start-up exchange (failed|for PE [0-3])|mpirun hangs'
slowest=0
ended() { ! kill -0 "$job" 2> /dev/null; }
all_up() { [ "$(grep -cx up "$dir/out")" = 4 ]; }
four_pids() { [ "$(pids | wc -l)" = 4 ]; }

for i in $(seq "$kills"); do
    how=${launchers[$((i % ${#launchers[@]}))]}
    nodes=$((i / 3 % 2 * 2 + 2))
    MARROW_TRANSPORT=$([ $((i / 6 % 2)) = 0 ] && echo ibgda || echo proxy)
    export MARROW_TRANSPORT
    loss=$((i / 2 % 2))%
    ms=$((RANDOM % 1500))
    victim=$((RANDOM % 4 + 1))
    what="$i: $how, $nodes nodes, $MARROW_TRANSPORT, loss $loss: PE's process $victim after $ms ms"
    took="" status=""
    started "$how" "$nodes" "$loss"
    begun=four_pids
    [ "$how" != deaf ] || begun=all_up
    if ! within 30 $begun; then
        kill "$job"
        wait "$job"
        status=$?
        point 1 "$what: it did not start"
        continue
    fi
    sleep "$((ms / 1000)).$(printf %03d $((ms % 1000)))"
    pid=$(pids | sed -n "${victim}p")
    why=""
    from=$(date +%s%N)
    kill -KILL "$pid" || { why="process '$pid' cannot be killed"; kill "$job"; }
    if ! within $limit ended; then
        why="$why, not within $limit s"
        left "$work"
        kill "$job"
    fi
    wait "$job"
    status=$?
    took=$((($(date +%s%N) - from) / 1000000))
    [ "$took" -le "$slowest" ] || slowest=$took
    if [ "$how" = deaf ]; then # which ends with 0 whatever became of the processes
        grep -Eq "$noticed" "$dir/err" || why="$why, no PE has noticed"
    else
        [ "$status" != 0 ] || why="$why, status 0"
    fi
    within 5 nobody_runs "$work" || why="$why, processes are left: $(who_runs "$work" | head -3 | cut -c 1-100 | tr '\n' ';')"
    [ -n "$why" ] || { point 0 "$what"; continue; }
    left "$work"
    point 1 "$what: ${why#, } (status $status after $took ms)"
done
echo "# the slowest job ended $slowest ms after the kill"
nothing_left() { [ -z "$(find "$dir" -maxdepth 1 -name 'softhca-*')" ]; }
holds "the virtual NIC's folders are gone" within 10 nothing_left
done_testing
