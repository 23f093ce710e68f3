#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/check_links.sh - tools/check_links.py finds broken links, and only those.
set -u
command -v python3 >/dev/null || { echo "no python3" && exit 77; }
check=$(dirname "$0")/../tools/check_links.py
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

fail() {
    echo "check_links: $*"
    failed=1
}

cat >"$folder/good.md" <<'PAGE'
# A `b` c-d: x_y
## Twice
## Twice
<a id="here"></a>
[1](#a-b-c-d-x_y) [2](#twice) [3](#twice-1) [4](#here) [5](good.md#twice-1) [6](https://a.b/c)
`[not](a-link.md)`
```
[nor](this.md)
```
PAGE
"$check" "$folder" >"$folder/out" || fail "refused: $(cat "$folder/out")"
grep -q '^6 links, 0 broken$' "$folder/out" || fail "counted: $(cat "$folder/out")"

while read -r link; do
    printf '# A\n%s\n' "$link" >"$folder/bad.md"
    "$check" "$folder" >"$folder/out" && fail "accepted: $link"
    grep -q '^bad.md:2: ' "$folder/out" || fail "$link: $(cat "$folder/out")"
done <<'LINKS'
[a](gone.md)
![a](gone.png)
<img src="gone.png">
[a]: gone.md
[a](#b)
[a](good.md#twice-2)
[a](/good.md)
[a](../outside.md)
LINKS
exit $failed
