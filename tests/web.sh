#!/bin/sh
# Tests the page in examples/web in a browser: builds it with the command in its C file, and uses it like a visitor.
#   sh tests/web.sh [NAME]             runs the checks whose names contain NAME
#   sh tests/web.sh --list             prints the names of the checks
#   sh tests/web.sh --picture FILE     writes the picture of the page for the guide
# Needs emcc, brotli, chromium, chromedriver, and /usr/bin/python3 with selenium (on Debian, the packages emscripten,
# brotli, chromium, chromium-driver and python3-selenium).  Building takes 30 s of processor time, and the checks in the
# browser take 90 s.
# Prints "ok NAME", "FAIL NAME: why" or "skip NAME: why" for each check.  The last line is "N passed, N failed, N
# skipped".
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
python=/usr/bin/python3
in_browser=$(sed -n 's/^def check_\(.*\)(.*/\1/p' "$root/tests/web.py")
names="builds size $in_browser"
picture=; only=
case ${1:-} in
    --list) printf '%s\n' $names; exit 0 ;;
    --picture) picture=${2:?'a file'} ;;
    *) only=${1:-} ;;
esac
tmp=$(mktemp -d "${TMPDIR:-/tmp}/opd_web.XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM
. "$root/tests/checks.sh"
have() { command -v "$1" >/dev/null 2>&1; }
export NODE_PATH="${NODE_PATH:-/usr/share/nodejs}"          # where Debian's emcc does not look by default

# Copies of the page and its sources.  The build must need no other file, and writes nothing to the repository.
site=$tmp/site
mkdir -p "$site/examples/data" "$site/examples/web"
cp "$root/opdispatch.h" "$site"
cp "$root/examples/digits.c" "$site/examples"
cp "$root/examples/data/digits.txt" "$site/examples/data"
for file in digits_web.c index.html worker.js; do cp "$root/examples/web/$file" "$site/examples/web"; done

# Runs the command in the first comment of digits_web.c.
check_builds() {
    have emcc || { echo 'SKIP: no emcc'; return; }
    command=$(sed -n '/^   emcc /,/[^\\]$/p' "$root/examples/web/digits_web.c" | sed 's/\\$//' | tr -d '\n')
    if ! (cd "$site" && sh -c "${command:-false} -Wall -Wextra") >"$tmp/log" 2>&1 || grep -q 'warning:' "$tmp/log"; then
        echo "from: $command"; tail -n 12 "$tmp/log"; return
    fi
    for made in js wasm; do [ -s "$site/examples/web/digits_web.$made" ] || echo "no digits_web.$made"; done
}
# The compressed size of all files that a visitor downloads.
check_size() {
    have brotli || { echo 'SKIP: no brotli'; return; }
    all=0
    for file in web/index.html web/worker.js web/digits_web.js web/digits_web.wasm data/digits.txt; do
        bytes=$(brotli -q 11 -c "$site/examples/$file" | wc -c)
        all=$((all + bytes))
        echo "size: $file $bytes bytes" >&2
    done
    [ "$all" -le 350000 ] || echo "$all bytes, at most 350,000"
}
# Prints why no browser can be used here, or nothing.
no_browser() {
    have chromium || { echo 'no chromium'; return; }
    have chromedriver || { echo 'no chromedriver'; return; }
    "$python" -c 'import selenium' 2>/dev/null || echo "no selenium in $python"
}

passed=0; failed=0; skipped=0
report() {
    result "$1" "$2"
    case $2 in '') passed=$((passed + 1)) ;; SKIP:*) skipped=$((skipped + 1)) ;; *) failed=$((failed + 1)) ;; esac
}
wanted=
for name in $names; do case $name in *"$only"*) wanted="$wanted $name" ;; esac; done
built=$(check_builds 2>&1)
case " $wanted " in *' builds '*) report builds "$built" ;; esac
[ -z "$built" ] || built="SKIP: the page is not built"
case " $wanted " in *' size '*) report size "${built:-$(check_size)}" ;; esac
[ -n "$built" ] || { built=$(no_browser); built=${built:+SKIP: $built}; }
if [ -n "$picture" ]; then
    [ -z "$built" ] || { echo "$built" >&2; exit 1; }
    "$python" "$root/tests/web.py" "$site" --picture "$picture"; exit
fi
# web.py prints a line "NAME TEXT" for each check.  The text is empty if the check passed.
wanted=$(for name in $wanted; do case " $(echo $in_browser) " in *" $name "*) echo "$name" ;; esac; done)
if [ -n "$built" ]; then for name in $wanted; do report "$name" "$built"; done
elif [ -n "$wanted" ]; then
    "$python" "$root/tests/web.py" "$site" $wanted >"$tmp/said" 2>"$tmp/errors" || tail -n 5 "$tmp/errors" >&2
    for name in $wanted; do
        report "$name" "$(grep "^$name " "$tmp/said" >"$tmp/line" && cut -d ' ' -f 2- "$tmp/line" || echo 'no result')"
    done
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
