#!/bin/sh
# SPDX-License-Identifier: MIT
# tools/check_rooms.sh - checks that a module (a room of src/) includes only itself and modules
# before it in the list below, that the program and the examples include only public headers, and
# that no two files share a name.
set -eu
cd "$(dirname "$0")/.."
rooms="tarn base file kernel comm layer model data task train generate serve"

includes() {
    find include src cli examples -type f -name '*.[ch]' -exec awk -v rooms="$rooms" '
        BEGIN {
            n = split(rooms, list, " ")
            for (i = 1; i <= n; i++) rank[list[i]] = i
        }
        function bad(why) {
            printf "%s:%d: \"%s\": %s\n", FILENAME, FNR, name, why
            failed = 1
        }
        FNR == 1 {
            split(FILENAME, path, "/")
            top = path[1]
            room = top == "include" || top == "src" ? path[2] : top
            if (top == "src" && !(room in rank)) {
                name = room
                bad("no such room in tools/check_rooms.sh")
            }
        }
        /^[ \t]*#[ \t]*include[ \t]*"/ {
            name = $0
            sub(/^[^"]*"/, "", name)
            sub(/".*/, "", name)
            other = name ~ "/" ? substr(name, 1, index(name, "/") - 1) : ""

            if (name ~ /(^|\/)\.\.?\//)
                bad("includes are written room/file")
            else if (top == "cli" && other == "")
                next # its own headers
            else if (top == "cli" || top == "examples") {
                if (other != "tarn") bad(top " uses public headers only: tarn/...")
            } else if (!(other in rank))
                bad("includes are written room/file")
            else if (room in rank && rank[other] > rank[room])
                bad(room " may not include " other ", which is below it")
        }
        END { exit failed }' {} +
}

names() {
    find . \( -path ./build -o -path ./.git \) -prune -o -type f -name '*.[ch]' -print |
        awk -F/ '
            $NF in seen { printf "%s: %s has the same name\n", $0, seen[$NF]; failed = 1 }
            { seen[$NF] = $0 }
            END { exit failed }'
}

status=0
includes || status=1
names || status=1
exit $status
