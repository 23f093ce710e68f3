#!/bin/sh
# SPDX-License-Identifier: MIT
# tools/test_foreign_wheel.sh WHEEL FOLDER - runs the tests of the Python package on an installed
# wheel for aarch64, under qemu-user: with Debian's Python and pytest and PyPI's NumPy of that system,
# unpacked in FOLDER. Nobody has to be root. Exit status 77: there is no qemu-aarch64, or Debian's
# archive or PyPI cannot be reached.
set -eu
[ $# -eq 2 ] || { echo "usage: tools/test_foreign_wheel.sh WHEEL FOLDER" >&2 && exit 2; }
wheel=$(realpath "$1")
tests=$(cd "$(dirname "$0")/../bindings/python/tests" && pwd)
mkdir -p "$2"
folder=$(cd "$2" && pwd)
root=$folder/root
qemu=$(command -v qemu-aarch64) || { echo "qemu-aarch64 is not installed" && exit 77; }

# Packages of arm64 and all that they depend on, by apt with lists of its own.
fetch() { # PACKAGE...
    apt=$folder/apt
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/parts"
    : >"$apt/status"
    suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
        "http://deb.debian.org/debian $suite main" >"$apt/sources.list"
    cat >"$apt/conf" <<END
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
Dir::Etc::SourceList "$apt/sources.list";
Dir::Etc::SourceParts "$apt/parts";
Dir::State::Lists "$apt/lists";
Dir::State::status "$apt/status";
Dir::Cache "$apt/cache";
Debug::NoLocking "true";
END
    (
        export APT_CONFIG="$apt/conf"
        apt-get -q update
        apt-get -q -y --no-install-recommends --download-only install "$@"
    )
}

unpack() {
    mkdir -p "$root"
    for package in "$folder"/apt/cache/archives/*.deb; do
        dpkg-deb -x "$package" "$root"
    done
}

# The version of the Python that was unpacked, such as 3.11.
version() {
    readlink "$root/usr/bin/python3" | sed 's/^python//'
}

install_numpy() {
    python3 -m pip install -q --upgrade --target "$folder/numpy" --platform manylinux2014_aarch64 \
        --platform manylinux_2_28_aarch64 --python-version "$(version)" --only-binary :all: numpy
}

if [ ! -e "$folder/complete" ]; then
    { fetch libc6 python3 python3-pytest && unpack && install_numpy; } >"$folder/log" 2>&1 || {
        cat "$folder/log" >&2
        echo "Debian's packages for arm64 or NumPy's wheel cannot be fetched"
        exit 77
    }
    touch "$folder/complete"
fi

rm -rf "$folder/wheel"
python3 -m pip install -q --no-deps --target "$folder/wheel" --platform manylinux2014_aarch64 \
    --only-binary :all: "$wheel"

# The kernel of this machine cannot start programs of aarch64: scripts do, also for those that the
# tests start, by sys.executable and TARN_PROGRAM.
script() { # NAME PROGRAM
    printf '#!/bin/sh\nexec "%s" -L "%s" "%s" "$@"\n' "$qemu" "$root" "$2" >"$folder/$1"
    chmod +x "$folder/$1"
}
script python "$root/usr/bin/python$(version)"
script tarn "$folder/wheel/tarn/bin/tarn"
mkdir -p "$folder/site"
echo "import sys; sys.executable = '$folder/python'" >"$folder/site/sitecustomize.py"
export TARN_PROGRAM="$folder/tarn" PYTHONHOME="$root/usr" PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH="$folder/site:$folder/wheel:$folder/numpy:$root/usr/lib/python3/dist-packages"
unset TARN_LIBRARY

"$folder/python" -c 'import platform, tarn
assert platform.machine() == "aarch64"
print("tarn", tarn.__version__, tarn.cpus()[0])'
"$folder/python" -m tarn --version
cd "$tests"
"$folder/python" -m pytest -q -p no:cacheprovider .
