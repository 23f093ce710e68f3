#!/bin/sh
# SPDX-License-Identifier: MIT
# web/tools.sh zig|test - installs into build/web what web/build.sh (zig) and the tests of the page
# (test: also playwright-core and TypeScript) need besides Debian's packages (tools/setup.sh web).
set -eu
cd "$(dirname "$0")/.."

zig_version=0.17.0
playwright_version=1.65.1
typescript_version=5.9.3

install_zig() {
    [ -x build/web/venv/bin/python ] && build/web/venv/bin/python -c 'import ziglang' && return
    python3 -m venv build/web/venv
    build/web/venv/bin/python -m pip install --quiet "ziglang==$zig_version"
}

install_packages() {
    [ -d build/web/node_modules/playwright-core ] && [ -d build/web/node_modules/typescript ] &&
        return
    npm install --silent --no-fund --no-audit --prefix build/web \
        "playwright-core@$playwright_version" "typescript@$typescript_version"
}

mkdir -p build/web
case ${1:-} in
zig) install_zig ;;
test)
    install_zig
    install_packages
    ;;
*)
    echo "usage: web/tools.sh zig|test" >&2
    exit 2
    ;;
esac
