#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# mpirun.sh - mpirun over pretended hosts: the start-up exchange, hosts that die, a cable that loses and delays.
set -u
. "${top_srcdir:?}/tests/hosts/lib.sh"
[ "${MPIRUN:-no}" != no ] || { echo "1..0 # SKIP no mpirun"; exit 0; }
[ "${MARROW_HAVE_PMIX:-yes}" = yes ] || { echo "1..0 # SKIP built without PMIx"; exit 0; }
on_hosts 3 "$0"
. "$top_srcdir/tests/launch/lib.sh"

go 30 "$HOSTS" mpirun -n 3 --map-by node hostname
holds "mpirun starts on three hosts" test "$(sort "$dir/out" | tr '\n' ' ')" = "h1 h2 h3 "
go 60 "$HOSTS" mpirun -n 6 --map-by node "$job" exchange
holds "six PEs of three hosts exchange" grep -qx "exchanged 6 by pmix key 0" "$dir/out"
go 60 "$HOSTS" mpirun -n 6 --map-by node "$job" abort 1 7
holds "a PE that aborts ends all hosts' PEs" eval '[ "$status" = 7 ] && soon 15000'

# Field 41 is the class: 2 is SCHED_RR.
if (chrt --rr 1 true) 2> /dev/null; then
    class=$(cat /proc/[0-9]*/stat | awk '$2 == "(switch)" { print $41 }')
    holds "the switch goes before the hosts' programs" test "$class" = 2
fi

# echo.py: answers what comes, or with HOST COUNT SECONDS says how many of COUNT packets to HOST come back, each in time.
cat > "$dir/echo.py" << 'END'
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
if len(sys.argv) == 1:
    s.bind(("", 7777))
    while True:
        data, sender = s.recvfrom(100)
        s.sendto(data, sender)
s.settimeout(float(sys.argv[3]))
came = 0
for i in range(int(sys.argv[2])):
    s.sendto(b"%d" % i, (sys.argv[1], 7777))
    try:
        while s.recv(10) != b"%d" % i: # one that came too late
            pass
        came += 1
    except OSError:
        pass
print(came)
END
if command -v python3 > /dev/null; then
    "$HOSTS" on h2 python3 "$dir/echo.py" &
    within 5 "$HOSTS" on h2 grep -q :1E61 /proc/net/udp
    go 30 "$HOSTS" on h1 python3 "$dir/echo.py" h2 100 5
    holds "a whole cable loses nothing" test "$(cat "$dir/out")" = 100
    "$HOSTS" wire h2 loss 100000
    go 60 "$HOSTS" on h1 python3 "$dir/echo.py" h2 100 0.3
    lossy=$(cat "$dir/out")
    holds "one that loses a tenth each way does" test "$lossy" -lt 100 -a "$lossy" -gt 50
    "$HOSTS" wire h2 loss 0
    "$HOSTS" wire h2 delay 5000
    go 30 "$HOSTS" on h1 python3 "$dir/echo.py" h2 20 5
    holds "a delay of 5 ms each way is seen" test "$(cat "$dir/out")" = 20 -a "$took" -ge 200
    "$HOSTS" wire h2 delay 0
    "$HOSTS" wire h2 down 1
    go 30 "$HOSTS" on h1 python3 "$dir/echo.py" h2 3 0.3
    holds "nothing passes a cut cable" test "$(cat "$dir/out")" = 0
    "$HOSTS" wire h2 down 0
fi

go 60 bash -c '"$HOSTS" freeze h2; sleep 1; "$HOSTS" thaw h2' &
go 60 "$HOSTS" mpirun -n 3 --map-by node "$job" sleep 1 2
holds "a host that stalls for a second does no harm" test "$status" = 0
wait $!
: > "$dir/out" # the last job said it too
(within 20 grep -q joined "$dir/out" && sleep 0.5 && "$HOSTS" crash h3) &
go 60 "$HOSTS" mpirun -n 3 --map-by node "$job" sleep 1 40
holds "a host that dies ends the job" eval '[ "$status" != 0 ] && [ "$status" != 124 ] && soon 30000'
done_testing
