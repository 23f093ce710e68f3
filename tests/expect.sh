# SPDX-License-Identifier: MIT
# tests/expect.sh - sourced by the tests of the program, whose first argument it is: $tarn. They
# have a folder of their own, $folder, with what the program printed last, $out and $err, and end
# with "exit $failed". They may set path, the PATH that the program runs with.

tarn=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
[ -x "$tarn" ] || { echo "no program $tarn" && exit 1; }
if [ -z "${folder:-}" ]; then
    folder=$(mktemp -d)
    trap 'cd /; chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
fi
out=$folder/out
err=$folder/err
failed=0

fail() {
    echo "FAILED: $*"
    failed=1
}

# expect CODE PATTERN ARGUMENT...: the exit code, and a pattern in what was printed.
expect() {
    code=$1
    pattern=$2
    shift 2
    PATH=${path:-$PATH} "$tarn" "$@" >"$out" 2>"$err"
    got=$?
    if [ $got -ne "$code" ] || ! cat "$out" "$err" | grep -aq -e "$pattern"; then
        fail "tarn $*: exit code $got, expected $code and '$pattern'"
        cat "$out" "$err"
    fi
}

# prints PATTERN...: patterns in what the last command printed.
prints() {
    for pattern in "$@"; do
        cat "$out" "$err" | grep -aq -e "$pattern" || fail "nothing printed has '$pattern'"
    done
}

# describes PATTERN ARGUMENT...: a pattern in --help, whose wrapped lines are joined.
describes() {
    pattern=$1
    shift
    "$tarn" "$@" --help >"$out" 2>"$err" || fail "tarn $* --help: exit code $?"
    awk '/^                    / { sub(/^ */, " "); printf "%s", $0; next } { printf "\n%s", $0 }' "$out" |
        grep -q -e "$pattern" || fail "tarn $* --help does not have '$pattern'"
}
