#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# post-cost.sh - instructions and cache misses of posting one 8-byte put, ours and others', on the same virtual NIC.
#
#     bench/post-cost/post-cost.sh BUILD_DIR [OUTPUT_FOLDER]
#
# BUILD_DIR is built (make check TESTS= makes the virtual NIC).  Needs valgrind; UCX's rows need libucx-dev.  callgrind
# counts what the posting thread does inside the call (the mean of 256 calls, after 64 others) and simulates the
# caches; the NIC's own thread does not count.  The first rows:
#
#     sq_private, sq_shared   shmem/device/sq.h alone: what the library and a GPU kernel inline; each post signals
#     long_p, put8, put8_nbi  shmem_long_p and so on, to a PE of another node
#     post_send, wr_write     libmlx5: ibv_post_send, and ibv_wr_start to ibv_wr_complete; one post of 16 signals
#     rc_mlx5, rc_verbs       UCX: uct_ep_put_short
#
# Ratio: instructions over those of sq_private.  The last line: doorbells that a batch of 16 puts has rung.
set -eu

[ $# -ge 1 ] || { sed -n '3,17s/^# \{0,1\}//p' "$0" >&2; exit 2; }
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
if [ $# -ge 2 ]; then
    mkdir -p "$2"
    out=$(cd "$2" && pwd)
else
    out=$(mktemp -d)
    trap 'rm -rf "$out"' EXIT
fi
nic=$build/tests/softhca/softhca-run
[ -x "$nic" ] || { echo "post-cost: no $nic: run make check in $build first" >&2; exit 1; }
command -v valgrind > /dev/null || { echo "post-cost: no valgrind" >&2; exit 1; }
# Kinds of memory key and shared receive queue that the virtual NIC has not.
export UCX_RC_MLX5_SRQ_TOPO=list UCX_IB_PCI_RELAXED_ORDERING=off
read -ra flags <<< "${CFLAGS:--O2}"
flags+=(-std=gnu11 -I"$top/include" -I"$build/include")

${CC:-cc} "${flags[@]}" "$here/verbs_post.c" -o "$out/verbs_post" -lmlx5 -libverbs
${CC:-cc} "${flags[@]}" "$here/shmem_post.c" -o "$out/shmem_post" -L"$build/src/.libs" -Wl,-rpath,"$build/src/.libs" -lmarrow
ucx=no
if pkg-config --exists ucx-uct; then
    # shellcheck disable=SC2046 # several words
    ${CC:-cc} "${flags[@]}" "$here/uct_post.c" -o "$out/uct_post" $(pkg-config --cflags --libs ucx-uct)
    ucx=yes
fi

# count NAME COMMAND...: leaves `instructions reads writes I1 D1r D1w LL' of 256 posts in NAME.sum.
grind=(valgrind --tool=callgrind --cache-sim=yes --collect-atstart=no --toggle-collect=measured_post)
count() {
    local name=$1
    shift
    rm -f "$out/$name".cg.*
    if ! timeout -k 5 300 "$@" > "$out/$name.log" 2>&1; then
        echo "post-cost: $name failed:" >&2
        tail -n 5 "$out/$name.log" >&2
        return 1
    fi
    cat "$out/$name".cg.* | awk '/^summary:/ && $2 > 0 { print $2, $3, $4, $5, $6, $7, $8 + $9 + $10; exit }' > "$out/$name.sum"
    [ -s "$out/$name.sum" ]
}

alone() { # NAME PROGRAM ARG
    count "$1" "$nic" "${grind[@]}" --callgrind-out-file="$out/$1.cg.%p" "$out/$2" "$3"
}

row() { # NAME
    [ -s "$out/$1.sum" ] || return 0
    awk -v name="$1" 'NR == FNR { for (i = 1; i <= 7; i++) base[i] = $i; next }
        FILENAME ~ /sq_private/ { unit = $1 - base[1]; next }
        { printf "%-12s %12.1f %8.1f %8.1f %8.2f %8.2f %8.2f %8.2f", name, ($1 - base[1]) / 256, ($2 - base[2]) / 256,
            ($3 - base[3]) / 256, $4 / 256, $5 / 256, $6 / 256, $7 / 256
          printf " %8.2f\n", ($1 - base[1]) / unit }' \
        "$out/nothing.sum" "$out/sq_private.sum" <(cat "$out/$1.sum")
}

alone nothing verbs_post nothing
for what in sq_private sq_shared post_send wr_write; do alone $what verbs_post $what; done
bad=0
for what in long_p put8 put8_nbi; do
    count $what "$nic" "$build/src/tools/oshrun" --nodes 2 -n 2 "${grind[@]}" --callgrind-out-file="$out/$what.cg.%p" \
        "$out/shmem_post" $what || bad=1
done
[ $ucx = no ] || for what in rc_mlx5 rc_verbs; do alone $what uct_post $what; done

printf '%-12s %12s %8s %8s %8s %8s %8s %8s %8s\n' "one put" instructions reads writes I1miss D1rmiss D1wmiss LLmiss ratio
for what in sq_private sq_shared long_p put8 put8_nbi post_send wr_write rc_mlx5 rc_verbs; do row $what; done
echo "doorbells of a batch of 16 deferred puts: $("$nic" "$out/verbs_post" batch)"
exit $bad
