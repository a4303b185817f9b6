#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# mpmd.sh - jobs of different executables, and of PEs that count as on different nodes.
set -u
. "${top_srcdir:?}/tests/launch/lib.sh"
[ -x "$oshrun" ] || skip_all "no $oshrun"
small=$build/tests/launch/mpmd_small

# other has as many pages of static data as small: its length alone tells nothing.
for second in other large; do
    cat > "$dir/$second" <<END
#!/bin/sh
[ "\$MARROW_PE" = 1 ] && exec "$build/tests/launch/mpmd_$second" "\$@"
exec "$small" "\$@"
END
done
cat > "$dir/nodes" <<END
#!/bin/sh
MARROW_NODE=node\$MARROW_PE exec "$small" "\$@"
END
chmod +x "$dir/other" "$dir/large" "$dir/nodes"

for second in other large; do
    go 30 "$oshrun" -n 3 "$dir/$second"
    expect 0 "static variables of PE 1 are not reachable from here: it runs another executable" "two executables: $second"
    holds "their heap is shared" grep -qx "sum 6 of 3, static data apart" "$dir/out"
    go 30 "$oshrun" -n 3 "$dir/$second" static
    expect 1 "shmem_long_p\] static data at 0x[0-9a-f]+ is not symmetric with PE [0-2]: that PE runs another executable" "a put to the other's static data: $second"
    go 30 env MARROW_STRICT=1 "$oshrun" -n 3 "$dir/$second"
    expect 1 "initialisation fails" "MARROW_STRICT=1 makes it fatal: $second"
done
go 30 "$oshrun" -n 3 "$small"
expect 0 "" "one executable"
holds "everything is shared" grep -qx "sum 6 of 3, static data shared" "$dir/out"
go 30 "$oshrun" -n 2 "$dir/nodes"
expect 1 "initialisation fails at \"network\"" "two nodes without a NIC"
go 30 env MARROW_NODE=here "$oshrun" -n 2 "$small"
expect 0 "" "one node by another name"
done_testing
