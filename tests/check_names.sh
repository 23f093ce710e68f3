#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/check_names.sh - tools/check_names.py finds names that do not exist, and only those; the pages
# of this repository name nothing that does not exist.
set -u
command -v python3 >/dev/null || { echo "no python3" && exit 77; }
check=$(dirname "$0")/../tools/check_names.py
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

fail() {
    echo "check_names: $*"
    failed=1
}

mkdir -p "$folder/docs" "$folder/src/layer" "$folder/include/tarn" "$folder/bindings"
cat >"$folder/src/layer/one.c" <<'CODE'
/* only_in_comment() { } // also_in_comment */
static const char *const rows[] = {"in_string", NULL};

static void forward(const struct tn_call *call)
{
    called_only(call, rows);
}

__attribute__((format(printf, 1, 2))) static inline int several_lines(const char *format,
                                                                      size_t (*f)(int), ...)
{
    return 0;
}
CODE
echo 'void other(void) { }' >"$folder/src/layer/two.c"
echo 'void declared_only(int x);' >"$folder/include/tarn/public.h"
echo 'def in_python(self):' >"$folder/bindings/one.py"
: >"$folder/docs/maths.md"

cat >"$folder/docs/architecture.md" <<'PAGE'
`src/layer/one.c`, `one.c`, `src/layer/`, `o*.c`, `layer/one.c`, `tarn/public.h`: files. `forward()`,
`several_lines()` and `in_python()` are functions; `tn_call` and `in_string` are words; `q_i`, `a + b`
and `no such text` are neither. `one.c`: `forward()`, then
`several_lines()`; `other()`. (`two.c`: `other()`), `forward()`.

| `one.c`: `forward()` | `other()` |
```
src/layer/one.c ── forward() ── plain words
```
PAGE
"$check" "$folder" >"$folder/out" || fail "refused: $(cat "$folder/out")"
grep -q '^23 names, 0 missing$' "$folder/out" || fail "counted: $(cat "$folder/out")"

while IFS='@' read -r text why; do
    printf '# A\n\nSome words,\nand %s.\n' "$text" >"$folder/docs/maths.md"
    "$check" "$folder" >"$folder/out" && fail "accepted: $text"
    grep -qF "docs/maths.md:3: $why" "$folder/out" || fail "$text: $(cat "$folder/out")"
done <<'NAMES'
`gone.c`@`gone.c`: no such file
`src/gone/`@`src/gone/`: no such file
`src/two.c`@`src/two.c`: no such file
`gone()`@`gone()`: no such function
`called_only()`@`called_only()`: no such function
`declared_only()`@`declared_only()`: no such function
`only_in_comment()`@`only_in_comment()`: no such function
`also_in_comment`@`also_in_comment`: does not occur in the sources
`tn_gone`@`tn_gone`: does not occur in the sources
`one.c`: `other()`@`other()`: not defined in one.c
`one.c`: `forward()` and `other()`@`other()`: not defined in one.c
`two.c`: `forward()`@`forward()`: not defined in two.c
NAMES

: >"$folder/docs/architecture.md"
: >"$folder/docs/maths.md"
"$check" "$folder" >"$folder/out" && fail "accepted pages without a name"

"$check" || fail "docs/architecture.md or docs/maths.md is out of date: change it with the code"
exit $failed
