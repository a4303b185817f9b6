#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# check-style.sh - the rules of docs/style.md that a machine can check, over every file of the tree (TAP).
set -u

cd "${top_srcdir:-$(dirname "$0")/..}" || exit 1
points=0 failed=0

# verdict NAME: passes when standard input is empty; what it holds goes before the failure.
verdict() {
    local found
    found=$(head -n 20)
    points=$((points + 1))
    if [ -z "$found" ]; then
        echo "ok $points - $1"
    else
        failed=1
        printf '%s\n' "$found" | sed 's/^/# /'
        echo "not ok $points - $1"
    fi
}

# What git tracks, or without git what a release holds.
if git rev-parse --is-inside-work-tree > /dev/null 2>&1 && [ -n "$(git ls-files configure.ac)" ]; then
    mapfile -t files < <(git ls-files)
else
    mapfile -t files < <(find . -type f \( -name '*.[ch]' -o -name '*.sh' -o -name '*.inc' -o -name '*.awk' -o -name '*.m4' \) |
        sed 's,^\./,,' | grep -vE '^(build|install|_build|_inst|autom4te|sanitize|build-aux|config\.h|.*/\.)|^(aclocal|m4/l)|/api\.h$|/generic\.h$|/types_x\.h$')
fi
[ ${#files[@]} -gt 0 ] || { echo "Bail out! no files"; exit 1; }

sources=() c_files=()
for f in "${files[@]}"; do
    [ -f "$f" ] || continue
    case $f in
    LICENSE | README.md | *.md | *.mtx | *.gitignore | *.gitattributes | .clang-format | *.xml | *.in.txt | *.out | *.err | tests/golden/*) ;;
    *) sources+=("$f") ;;
    esac
    case $f in *.[ch] | *.cc | *.cu | *.cpp) c_files+=("$f") ;; esac
done

verdict "every file names its licence" < <(
for f in "${sources[@]}"; do
    head -n 3 "$f" | grep -q 'SPDX-License-Identifier: BSD-3-Clause' || echo "$f: no SPDX line among the first three"
done
)

verdict "no C file is longer than 800 lines" < <(
for f in "${c_files[@]}"; do
    lines=$(wc -l < "$f")
    [ "$lines" -le 800 ] || echo "$f: $lines lines"
done
)

# A function of this style opens with { in column 1 and ends with } in column 1.
verdict "no function is longer than 60 lines" < <(
for f in "${c_files[@]}"; do
    awk -v f="$f" '
    /^{/ { from = NR }
    /^}/ && from { if (NR - from - 1 > 60) printf "%s:%d: %d lines\n", f, from, NR - from - 1; from = 0 }' "$f"
done
)

verdict "no words that stand for unfinished work" < <(grep -nE "\b(TO""DO|FIX""ME|X""XX)\b|not (yet )?implem""ented" "${sources[@]}")

verdict "no folders of somebody's machine" < <(
    grep -nE '(^|[^a-z])/(work|home|root)/[a-z]' "${sources[@]}" README.md HACKING.md 2> /dev/null
)

verdict "C: no tabs, no blanks at line ends" < <(grep -nE "$(printf '\t')|[[:blank:]]\$" "${c_files[@]}")

verdict "C: no typedefs for structs" < <(grep -nE '^typedef struct' "${c_files[@]}" | grep -v '^include/')

if command -v shellcheck > /dev/null; then
    sh_files=()
    for f in "${sources[@]}"; do
        head -n 1 "$f" | grep -qE '^#!.*\b(ba)?sh\b' && sh_files+=("$f")
    done
    verdict "shellcheck finds no errors" < <(shellcheck --severity=error "${sh_files[@]}" 2>&1)
else
    points=$((points + 1))
    echo "ok $points - shellcheck finds no errors # SKIP not installed"
fi
echo "1..$points"
exit "$failed"
