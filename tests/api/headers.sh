#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# headers.sh - each public header compiles alone and twice, in each language that it is for, without a warning.
set -u
inc="-I$top_srcdir/include -I$top_builddir/include"
warn="-Wall -Wextra -Wpedantic -Wshadow -Werror"
warn_cxx="-Wold-style-cast -Wzero-as-null-pointer-constant -Wconversion -Wsign-conversion -Wcast-qual"
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
n=0 bad=0

point() { # STATUS TEXT
    n=$((n + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $n - $2"
    else
        echo "not ok $n - $2"
        sed 's/^/# /' "$tmp/log"
        bad=1
    fi
}

compile() { # COMPILER STD LANGUAGE FILE
    local more=
    [ "$3" = c ] || more=$warn_cxx
    # shellcheck disable=SC2086
    $1 -std="$2" -x "$3" $inc $warn $more -fsyntax-only "$4" >"$tmp/log" 2>&1
}

# All headers in one standard of each language; in the others those that are not one #include of another.
headers_of() {
    case $1 in c11 | c++17) echo "$headers" ;; *) echo "shmemx.h pshmem.h" ;; esac
}

has() { command -v "${1%% *}" >/dev/null 2>&1; }

headers="shmem.h shmemx.h pshmem.h mpp/shmem.h mpp/shmemx.h"
for h in $headers; do
    printf '#include <%s>\n#include <%s>\nint translation_unit;\n' "$h" "$h" >"$tmp/${h//\//_}.c"
done
cat >"$tmp/use.c" <<'END'
#include <shmem.h>
shmem_ctx_t ctx = SHMEM_CTX_DEFAULT;
shmem_team_t teams[3] = {SHMEM_TEAM_WORLD, SHMEM_TEAM_SHARED, SHMEM_TEAM_INVALID};
long psync[SHMEM_REDUCE_SYNC_SIZE];
int cmp_at(int i) { switch (i) { case SHMEM_CMP_EQ: return 1; case SHMEM_CMP_NE: return 2; case SHMEM_SIGNAL_ADD + 10: return 3; } return 0; }
END
cp "$tmp/use.c" "$tmp/generic.c"
cat >>"$tmp/generic.c" <<'END'
long word;
void put(int pe) { shmem_p(&word, 1L, pe); shmem_p(ctx, &word, 1L, pe); word = shmem_g(&word, pe); }
END

compilers_c="$CC" compilers_cxx="$CXX"
for c in gcc clang; do [ "$c" = "$CC" ] || ! has "$c" || compilers_c="$compilers_c|$c"; done
for c in g++ clang++; do [ "$c" = "$CXX" ] || ! has "$c" || compilers_cxx="$compilers_cxx|$c"; done

IFS='|'
for c in $compilers_c; do
    unset IFS
    for std in c99 c11 gnu11 c17; do
        s=0
        for h in $(headers_of $std); do compile "$c" $std c "$tmp/${h//\//_}.c" || { s=1; break; }; done
        point $s "$c $std: each header alone and twice"
        compile "$c" $std c "$tmp/use.c"
        point $? "$c $std: handles and constants"
    done
    for std in c11 c17; do
        compile "$c" $std c "$tmp/generic.c"
        point $? "$c $std: generics"
    done
    IFS='|'
done
for c in $compilers_cxx; do
    unset IFS
    has "$c" || continue
    for std in c++11 c++14 c++17 c++20; do
        s=0
        for h in $(headers_of $std); do compile "$c" $std c++ "$tmp/${h//\//_}.c" || { s=1; break; }; done
        point $s "$c $std: each header alone and twice"
        compile "$c" $std c++ "$tmp/use.c"
        point $? "$c $std: handles and constants"
        compile "$c" $std c++ "$top_srcdir/tests/api/cxx.cpp"
        point $? "$c $std: a program"
    done
    IFS='|'
done
unset IFS

# No private header, no config.h.
grep -hE '^#[ ]*include' "$top_srcdir"/include/*.h "$top_srcdir"/include/mpp/*.h "$top_srcdir"/include/shmem/*.h \
    "$top_builddir"/include/*.h "$top_builddir"/include/shmem/*.h |
    grep -vE '<(shmem|shmemx|shmem/(api|apix|api_device|cxx|generic|device/[a-z_]+)\.h|stddef|stdint|complex)(\.h)?>' >"$tmp/log"
[ ! -s "$tmp/log" ]
point $? "installed headers include nothing private"

version=$(sed -n 's/^#define PACKAGE_VERSION "\(.*\)"/\1/p' "$top_builddir/config.h")
grep -q "^#define SHMEM_VENDOR_STRING \"Marrow $version\"" "$top_srcdir/include/shmem.h"
point $? "the vendor string names version $version"
echo "1..$n"
exit $bad
