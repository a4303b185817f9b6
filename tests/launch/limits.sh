#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# limits.sh - few descriptors or closed ones, small files, little memory: a message and an end, and never a hang.
set -u
. "${top_srcdir:?}/tests/launch/lib.sh"
[ -x "$oshrun" ] || skip_all "no $oshrun"
end=$(own "$build/tests/launch/end_job")
cd "$dir" || exit 99

# under LIMIT VALUE SECONDS COMMAND...: `go` with that limit; the output passes a pipe, as the limit is ours too.
under() {
    local limit=$1 value=$2 seconds=$3
    shift 3
    status=$(
        {
            { timeout -k 5 "$seconds" bash -c 'ulimit "$0" "$1" || exit 98; shift; exec "$@"' "-$limit" "$value" "$@" \
                < /dev/null 2>&1 >&4; echo $? >&3; } | cat > err
        } 3>&1 4> out
    )
}

under n 20 30 "$oshrun" -n 2 "$end" return 0 barrier
expect 0 "" "20 descriptors are enough for 2 PEs"
under n 20 30 "$oshrun" -n 16 "$end" return 0 barrier
expect 1 "cannot start PE [0-9]+ of 16: .*Too many open files" "and not for 16: said, and over"
under n 8 30 "$oshrun" -n 2 "$end" return 0 barrier
expect 1 "cannot start PE [0-9]+ of 2: .*Too many open files" "8 descriptors"
under f 1 30 "$oshrun" -n 2 "$end" return 0 barrier
expect 1 "oshrun: cannot make the job's exchange area of [0-9]+ bytes: File too large" "files of 1 KiB"
under f 1000 30 "$oshrun" -n 2 "$end" return 0 barrier
expect 1 "cannot make [0-9]+ bytes of shared memory for this node .*: File too large; .*ulimit -f. is 1000 KiB" "files of 1000 KiB"
if ! grep -q -- '-fsanitize' "$build/Makefile" || ! grep -Eq '^SANITIZE_FLAGS *= *[^ ]' "$build/Makefile"; then
    under v 600000 30 "$oshrun" -n 2 "$end" return 0 barrier
    expect 1 "no address space for [0-9]+ bytes .*: Cannot allocate memory; .*ulimit -v. is 600000 KiB.* SHMEM_SYMMETRIC_SIZE" \
        "600 MB of address space"
fi
# A descriptor of the library's in the place of a closed one would take what the program prints, into the heaps.
go 30 bash -c 'exec "$0" closed 0 <&- >&- 2>&-' "$end"
expect 0 "" "standard descriptors closed, a PE alone"
go 30 "$oshrun" -n 2 bash -c 'exec "$0" closed 0 <&- >&- 2>&-' "$end"
expect 0 "" "standard descriptors closed, two PEs"
holds "no process is left" within 5 nobody_runs "$end"
done_testing
