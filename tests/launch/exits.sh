#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# exits.sh - shmem_global_exit from exit handlers, signals and threads ends the job, soon, with its status.
set -u
. "${top_srcdir:?}/tests/launch/lib.sh"
[ -x "$oshrun" ] || skip_all "no $oshrun"
job=$(own "$build/tests/launch/exit_job")

# Something that can be read from and never gives a byte.
mkfifo "$dir/silent" || exit 99
exec 3<> "$dir/silent"
input=$dir/silent

for where in finalizes meets again older reads signal prints threads; do
    go 30 "$oshrun" -n 2 "$job" $where
    expect 7 "^oshrun: PE 0 .* ended the job with status 7$" "global exit: $where"
    holds "soon: $where" soon 25000
done
holds "no process is left" within 5 nobody_runs "$job"
done_testing
