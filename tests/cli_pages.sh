#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/cli_pages.sh PROGRAM - manual and completion have every command and option, and the
# shells that are there understand what they are given.
set -u
. "$(dirname "$0")/expect.sh"

# ---- Manual -------------------------------------------------------------------

commands() { # ARGUMENT...: the names in the list of --help
    "$tarn" "$@" --help | sed -n '/^commands:/,/^$/s/^  \([a-z][a-z-]*\) .*/\1/p'
}

options() { # ARGUMENT...
    "$tarn" "$@" --help | sed -n 's/^  -h, --help/  --help/;s/^  \(--*[a-z][a-z-]*\).*/\1/p'
}

has() { # FILE TEXT
    sed 's/\\-/-/g' "$1" | grep -qF -e "$2" || fail "$(basename "$1") has no '$2'"
}

"$tarn" manual "$folder" || fail "manual"
expect 1 'No such file' manual "$folder/none"
expect 2 'DIR is required' manual
has "$folder/tarn.1" '.B --version'
for command in $(commands); do
    page=$folder/tarn-$command.1
    [ -s "$page" ] || fail "no page for $command"
    has "$folder/tarn.1" "tarn-$command (1)"
    for section in NAME SYNOPSIS DESCRIPTION OPTIONS 'EXIT STATUS' EXAMPLES 'SEE ALSO'; do
        has "$page" ".SH $section"
    done
    case $command in
    train) subs=$("$tarn" train --help | sed -n '/^tasks:/,/^$/s/^  \([a-z][a-z]*\) .*/\1/p') ;;
    data | bench) subs=$(commands "$command") ;;
    *) subs= ;;
    esac
    for option in $(options "$command"); do has "$page" "$option"; done
    for operand in $("$tarn" "$command" --help | sed -n '1{s/--*[a-z]* [A-Z]*//g;s/[^A-Z ]//gp;}'); do
        sed -n '/SYNOPSIS/,/DESCRIPTION/p' "$page" | grep -q "$operand" ||
            fail "the synopsis of $command has no $operand"
    done
    for sub in $subs; do
        has "$page" "$sub"
        for option in $(options "$command" "$sub"); do has "$page" "$option"; done
    done
done
has "$folder/tarn-train.1" ':rounds=1..'
if command -v mandoc >/dev/null; then
    for page in "$folder"/*.1; do
        mandoc -T lint -W warning "$page" | grep -v 'missing date' && fail "$page"
    done
fi
if command -v groff >/dev/null; then
    for page in "$folder"/*.1; do
        groff -man -Tascii -ww -z "$page" 2>"$err" || fail "groff: $page"
        [ ! -s "$err" ] || fail "groff: $(cat "$err")"
    done
fi

# ---- Completion ---------------------------------------------------------------

expect 2 "unknown shell 'tcsh'; available: bash, zsh, fish" completion tcsh
expect 2 "unknown shell 'fissh'; did you mean 'fish'?" completion fissh
for shell in bash zsh fish; do
    expect 0 'tarn' completion $shell
    cp "$out" "$folder/$shell"
    if command -v $shell >/dev/null; then
        $shell -n "$folder/$shell" || fail "$shell does not read its script"
    fi
    ! grep -e '--[A-Z]' -e "'[A-Z]*=" "$folder/$shell" || fail "$shell is offered an operand"
done

# offers SHELL LINE WORD...: exactly these, in any order. The scripts ask the program.
PATH=$(cd "$(dirname "$tarn")" && pwd):$PATH
offers() {
    shell=$1 line=$2
    shift 2
    command -v "$shell" >/dev/null || return 0
    case $shell in
    bash)
        got=$(bash -c 'source "$0"
            eval "COMP_WORDS=($1)"
            COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
            _tarn
            printf "%s\n" "${COMPREPLY[@]}"' "$folder/bash" "$line")
        ;;
    fish) got=$(fish -c "source $folder/fish; complete -C \"$line\"" | cut -f 1) ;;
    esac
    got=$(echo "$got" | sort | tr '\n' ' ')
    want=$(printf '%s\n' "$@" | sort | tr '\n' ' ')
    [ "$got" = "$want" ] || fail "$shell offers '$got' for '$line'; expected '$want'"
}

presets=$("$tarn" train --help | sed -n '/^presets/,/^$/s/^  \([a-z-]*\) .*/\1/p')
# shellcheck disable=SC2046,SC2086 # words
{
    offers bash 'tarn ""' $(commands) --help
    offers bash 'tarn bench ""' $(commands bench) --help
    offers bash 'tarn bench peak --' $(options bench peak)
    offers bash 'tarn train copy --preset ""' $presets
    offers fish 'tarn train copy --preset ' $presets
    offers fish 'tarn bench ' $(commands bench) --help
}
offers bash 'tarn train copy --attention = l' linear lsh
offers bash 'tarn train copy --norm ""' post pre
offers bash 'tarn data fetch m' mnist
offers fish 'tarn data fetch m' mnist
offers bash 'tarn import a b ""' ''
offers bash 'tarn train text ""' ''
offers fish 'tarn bench train --pre' --preset --precision
offers fish 'tarn train copy --norm=p' --norm=post --norm=pre
offers bash 'tarn generate --temperature ""' ''
mkdir "$folder/files" && touch "$folder/files/model.safetensors"
offers bash "tarn eval $folder/files/" "$folder/files/model.safetensors"
offers bash "tarn train --out $folder/files/" ''

exit $failed
