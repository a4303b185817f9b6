#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# slurm.sh - a Slurm over two pretended hosts runs tests/launch/srun.sh.
set -u
. "${top_srcdir:?}/tests/hosts/lib.sh"
[ "${MARROW_HAVE_PMIX:-yes}" = yes ] || { echo "1..0 # SKIP built without PMIx"; exit 0; }
PATH=$PATH:/usr/sbin
for tool in munged slurmctld slurmd srun; do
    command -v $tool > /dev/null || { echo "1..0 # SKIP no $tool"; exit 0; }
done
on_hosts 2 "$0"
"$HOSTS" slurm || { echo "Bail out! Slurm does not start"; exit 99; }
bash "$top_srcdir/tests/launch/srun.sh"
