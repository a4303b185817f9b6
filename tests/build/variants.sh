#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# variants.sh - programs linked in the ways that users link: linkers, PIE or not, LTO, sanitizers, dlopen (TAP).
set -u
. "${top_srcdir:?}/tests/launch/lib.sh"
[ -x "$oshrun" ] || skip_all "no $oshrun"
grep -Eq '^SANITIZE_FLAGS *= *[^ ]' "$build/Makefile" && skip_all "the library is built with a sanitizer"
lib=$build/src/.libs

cat > "$dir/prog.c" << 'END'
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static int start[3] = { 1, 2, 3 };
static long word, other = 5;
static char name[7] = "static";
static char big[64 << 20];

int main(void)
{
    int me, n, status = -1;
    pid_t child;

    for (int round = 0; round < 2; round++) {
        shmem_init();
        me = shmem_my_pe(), n = shmem_n_pes();
        shmem_long_p(&word, me + 1, (me + 1) % n);
        shmem_putmem(&big[50 << 20], name, sizeof name, (me + 1) % n);
        shmem_long_atomic_add(&other, 1, (me + 1) % n);
        shmem_barrier_all();
        child = fork();
        if (child == 0) {
            other = 99;
            _exit(word != (me + n - 1) % n + 1);
        }
        if (waitpid(child, &status, 0) != child || status)
            return 2;
        shmem_finalize();
        if (start[2] != 3 || word != (me + n - 1) % n + 1 || other != 6 + round || big[50 << 20] != 's')
            return 3;
    }
    printf("PE %d is well\n", me);
    return 0;
}
END
cat > "$dir/open.c" << 'END'
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    for (int round = 0; round < 2; round++) {
        void *lib = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
        void (*init)(void), (*finalize)(void);

        if (!lib)
            return 2;
        *(void **)&init = dlsym(lib, "shmem_init");
        *(void **)&finalize = dlsym(lib, "shmem_finalize");
        init();
        finalize();
        dlclose(lib);
    }
    puts("PE is well");
    return 0;
}
END

# variant NAME COMPILER FLAGS...: skipped where the compiler cannot link even an empty program so.
variant() {
    local name=$1 cc=$2
    shift 2
    if ! echo 'int main(void){return 0;}' | "$cc" "$@" -x c - -o "$dir/empty" > /dev/null 2>&1 || ! "$dir/empty"; then
        points=$((points + 1))
        echo "ok $points - $name # SKIP $cc $* does not work here"
        return
    fi
    rm -f "$dir/prog"
    go 60 "$cc" "$@" -I"$top_srcdir/include" -I"$build/include" "$dir/prog.c" -o "$dir/prog" -L"$lib" -lmarrow \
        -Wl,-rpath,"$lib"
    [ "$status" = 0 ] && go 60 "$oshrun" -n 2 "$dir/prog"
    holds "$name" test "$status" = 0 -a "$(grep -c 'is well' "$dir/out")" = 2
}

cc=${CC:-cc}
cc=${cc%% *}
variant "position-independent executable" "$cc" -O2 -pie -fPIE
variant "fixed addresses" "$cc" -O2 -no-pie -fno-pie
variant "link-time optimisation" "$cc" -O2 -flto
variant "nothing read-only after relocation" "$cc" -Wl,-z,norelro
variant "all of it read-only" "$cc" -Wl,-z,relro,-z,now
variant "huge page alignment" "$cc" -Wl,-z,max-page-size=2097152
variant "gold" "$cc" -fuse-ld=gold
variant "gold, fixed addresses" "$cc" -fuse-ld=gold -no-pie -fno-pie
variant "lld" "$cc" -fuse-ld=lld
variant "lld, fixed addresses" "$cc" -fuse-ld=lld -no-pie -fno-pie
variant "medium code model" "$cc" -mcmodel=medium -mlarge-data-threshold=65536
export ASAN_OPTIONS=detect_leaks=0
for compiler in gcc clang; do
    for sanitizer in address undefined thread; do
        variant "$compiler -fsanitize=$sanitizer" $compiler -g -fsanitize=$sanitizer
    done
done
"$cc" "$dir/open.c" -o "$dir/open" -ldl || exit 99
go 60 "$oshrun" -n 2 "$dir/open" "$lib/libmarrow.so"
holds "dlopen and dlclose, twice" test "$status" = 0 -a "$(grep -c 'is well' "$dir/out")" = 2
done_testing
