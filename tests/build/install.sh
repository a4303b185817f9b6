#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# install.sh - installs into a staging folder, moves the tree, and uses it as a user would; then uninstalls (TAP).
set -u

build=${top_builddir:?} src=${top_srcdir:?}
work=$(mktemp -d "${TMPDIR:-/tmp}/marrow-install.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
points=0 failed=0

# point NAME COMMAND...: passes when the command does; its output goes before a failure.
point() {
    local name=$1
    shift
    points=$((points + 1))
    if "$@" > "$work/out" 2>&1 < /dev/null; then
        echo "ok $points - $name"
    else
        echo "# status $?: $*"
        sed 's/^/# /' "$work/out"
        echo "not ok $points - $name"
        failed=1
    fi
}

skip() {
    points=$((points + 1))
    echo "ok $points - $1 # SKIP $2"
}

# is TEXT COMMAND...: the command prints exactly this.
is() {
    local want=$1 got
    shift
    got=$("$@" 2>&1) || return 1
    [ "$got" = "$want" ] || { printf 'want: %s\ngot:  %s\n' "$want" "$got"; return 1; }
}

# holds REGEX COMMAND...: the command prints a line that matches.
holds() {
    local regex=$1
    shift
    "$@" 2>&1 | tee "$work/holds" | grep -Eq -- "$regex" && return 0
    echo "nothing matches $regex in:"
    cat "$work/holds"
    return 1
}
export -f is holds
export work

installed() { # MAKE's own variables must not leak into this make
    env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL "${MAKE:-make}" -C "$build" "$@" DESTDIR="$work/stage"
}
export -f installed
export build MAKE

prefix=$(sed -n 's/^prefix = //p' "$build/Makefile")
point "make install DESTDIR=..." bash -c 'installed install'
tree="$work/moved tree"
mv "$work/stage$prefix" "$tree" || { echo "Bail out! nothing was installed under $prefix"; exit 1; }
bin=$tree/bin
lib=$(dirname "$(find "$tree" -name libmarrow.so | head -n 1)")

point "the library's soname" bash -c 'objdump -p "$0" | grep -q "SONAME *libmarrow.so.0$"' "$lib/libmarrow.so"
point "oshcc shows what it adds" holds "-I'?$tree/include'? .*-lmarrow" "$bin/oshcc" -showme x.c
point "the same by -show" holds "-lmarrow" "$bin/oshcc" -show x.c
point "no library for -c" bash -c '! "$0" -show -c x.c | grep -q lmarrow' "$bin/oshcc"
point "-showme:compile" is "'-I$tree/include'" "$bin/oshcc" -showme:compile
point "-showme:link holds the run path" holds "-Wl,-rpath,$lib" "$bin/oshcc" -showme:link
point "-showlibs is the same" is "$("$bin/oshcc" -showme:link)" "$bin/oshcc" -showlibs
point "OSHCC_CC overrides" is "mycc -O9" env OSHCC_CC="mycc -O9" "$bin/oshcc" -showme:command
point "SHMEM_CC overrides" is "mycc" env SHMEM_CC=mycc "$bin/oshcc" -showme:command
point "OSHCXX_CXX overrides" is "my++" env OSHCXX_CXX=my++ "$bin/oshc++" -showme:command
point "oshcxx and oshCC" bash -c '"$0/oshcxx" --help && "$0/oshCC" --version' "$bin"
for name in oshc++ oshcxx oshCC; do
    point "man $name is oshcc(1)" grep -qx '.so man1/oshcc.1' "$tree/share/man/man1/$name.1"
done
point "--help" holds "^usage: oshcc" "$bin/oshcc" --help
point "the compiler's own questions pass" holds "." "$bin/oshcc" -dumpmachine
ln -s "$bin/oshcc" "$work/link-to-oshcc"
point "through a link" holds "$tree/include" "$work/link-to-oshcc" -showme:compile
point "through PATH" env PATH="$bin:$PATH" sh -c 'cd / && oshcc -showme:compile'

# Arguments with every character that a shell might eat.
cat > "$work/quote.c" <<'END'
#include <shmem.h>
#include <stdio.h>
#include <string.h>
int main(void)
{
    shmem_init();
    puts(TEXT);
    shmem_finalize();
    return strcmp(TEXT, "a b'c$d*\\") != 0;
}
END
point "quotes survive" "$bin/oshcc" "-DTEXT=\"a b'c\$d*\\\\\"" "$work/quote.c" -o "$work/quote"
point "and the program runs bare" holds "a b'c" "$work/quote"
cp "$work/quote.c" "$work/quote.cc"
point "oshc++" "$bin/oshc++" "-DTEXT=\"a b'c\$d*\\\\\"" "$work/quote.cc" -o "$work/quote++"
point "oshrun -np 2" "$bin/oshrun" -np 2 "$work/quote++"

point "shmem-info" "$bin/shmem-info"
point "shmem-info knows the moved prefix" is "$tree" "$bin/shmem-info" --path=prefix
point "shmem-info refuses unknown paths" bash -c '"$0" --path=nowhere; [ $? = 2 ]' "$bin/shmem-info"
point "shmem-info finds the bad variable" bash -c 'SHMEM_SYMMETRIC_SIZE=abc "$0" 2>&1 | grep -q "SHMEM_SYMMETRIC_SIZE.*abc"' \
    "$bin/shmem-info"
"$bin/shmem-info" --env > "$work/env"
for v in $(sed -n 's/^SHMEMI_ENV([a-z_]*, \(SPEC\|OWN\), "\([A-Z_]*\)".*/\1_\2/p' "$src/api/env.def"); do
    v=${v/#SPEC_/SHMEM_} v=${v/#OWN_/MARROW_}
    point "shmem-info lists $v" grep -q "^  $v " "$work/env"
done

# make, pkg-config and CMake, from a path without blanks.
mv "$tree" "$work/tree"
lib=$work/tree${lib#"$tree"}
tree=$work/tree bin=$work/tree/bin
mkdir "$work/try"
point "the installed examples compile" make -C "$work/try" -f "$tree/share/marrow/examples/Makefile" OSHCC="$bin/oshcc"
point "cg solves the installed matrix" holds "the same" "$bin/oshrun" -n 4 "$work/try/cg" --check \
    "$tree/share/marrow/examples/data/poisson2d-32.mtx"
point "it uses the moved library" holds "libmarrow.so.0 => $lib/libmarrow.so.0" ldd "$work/try/cg"
if command -v pkg-config > /dev/null; then
    export PKG_CONFIG_PATH=$lib/pkgconfig
    # shellcheck disable=SC2016
    point "pkg-config" bash -c '${CC:-cc} -DTEXT='"'\"x\"'"' "$0.c" -o "$0.pc" $(pkg-config --cflags --libs marrow)' "$work/quote"
    point "pkg-config knows the version" holds "^[0-9]+\.[0-9]+" pkg-config --modversion marrow
else
    skip "pkg-config" "not installed"
fi
if command -v cmake > /dev/null && [ -z "${SANITIZE_FLAGS-}" ]; then
    mkdir "$work/cmake"
    cp "$work/tree/share/marrow/examples/hello.c" "$work/cmake"
    cat > "$work/cmake/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.10)
project(try C)
find_package(Marrow 0.1 REQUIRED)
add_executable(hello hello.c)
target_link_libraries(hello Marrow::marrow)
END
    point "cmake finds it" cmake -S "$work/cmake" -B "$work/cmake/b" -DCMAKE_PREFIX_PATH="$work/tree"
    point "cmake builds with it" cmake --build "$work/cmake/b"
    point "and the program runs" holds "hello from PE 1 of 2" "$work/tree/bin/oshrun" -n 2 "$work/cmake/b/hello"
else
    skip "cmake" "not installed, or a sanitizer build"
fi

rm -rf "$work/stage"
point "make install again" bash -c 'installed install'
point "make uninstall" bash -c 'installed uninstall'
find "$work/stage" ! -type d > "$work/left"
point "nothing is left" bash -c '! [ -s "$0" ] || { cat "$0"; false; }' "$work/left"
echo "1..$points"
exit "$failed"
