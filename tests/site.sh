#!/bin/sh
# Tests the site: builds it with examples/site/build.py, and uses it in a browser.
#   sh tests/site.sh [NAME]     runs the checks whose names contain NAME
#   sh tests/site.sh --list     prints the names of the checks
# Needs Python 3.10 or later with pip, which installs the package in examples/site/requirements.txt into a temporary
# folder if python3 does not have it; chromium, chromedriver, and /usr/bin/python3 with selenium (on Debian, the
# packages chromium, chromium-driver and python3-selenium).
# Prints "ok NAME", "FAIL NAME: why" or "skip NAME: why" for each check.  The last line is "N passed, N failed, N
# skipped".
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
python=/usr/bin/python3
in_browser=$(sed -n 's/^def check_\(.*\)(.*/\1/p' "$root/tests/site.py")
names="builds $in_browser"
case ${1:-} in
    --list) printf '%s\n' $names; exit 0 ;;
    --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*) echo "site.sh: no option $1 (see --help)" >&2; exit 2 ;;
esac
only=${1:-}
tmp=$(mktemp -d "${TMPDIR:-/tmp}/opd_site.XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM
. "$root/tests/checks.sh"
have() { command -v "$1" >/dev/null 2>&1; }

# Prints the name of a Python that has the generator.  It may be installed now, into a temporary folder.
generator() {
    wanted=$(sed -n 's/^zensical==//p' "$root/examples/site/requirements.txt")
    for found in "$tmp/python/bin/python" python3; do
        has=$("$found" -c 'from importlib.metadata import version; print(version("zensical"))' 2>/dev/null)
        [ "$has" != "$wanted" ] || { echo "$found"; return; }
    done
    python3 -m venv "$tmp/python" >"$tmp/log" 2>&1 &&
        "$tmp/python/bin/pip" install -q --no-compile --disable-pip-version-check --retries 1 \
            -r "$root/examples/site/requirements.txt" >"$tmp/log" 2>&1 && echo "$tmp/python/bin/python"
}
check_builds() {
    have python3 || { echo 'SKIP: no python3'; return; }
    with=$(generator)
    [ -n "$with" ] || { echo "SKIP: pip does not install zensical: $(tail -n 1 "$tmp/log")"; return; }
    "$with" "$root/examples/site/build.py" --to "$tmp/site" >"$tmp/log" 2>&1 || { tail -n 12 "$tmp/log"; return; }
    [ -s "$tmp/site/index.html" ] || echo 'no index.html'
    [ ! -e "$tmp/site.pages" ] || echo 'files are left'
}
# Prints why a check cannot run here, or nothing.
prevented() {
    case $1 in
        files|links) return ;;
        digits) [ -e "$tmp/site/examples/web/index.html" ] || { echo 'examples/web is not built'; return; } ;;
    esac
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
[ -z "$built" ] || built='SKIP: the site is not built'
run=
for name in $wanted; do
    [ "$name" != builds ] || continue
    why=$built
    [ -n "$why" ] || { why=$(prevented "$name"); why=${why:+SKIP: $why}; }
    if [ -n "$why" ]; then report "$name" "$why"; else run="$run $name"; fi
done
# site.py prints a line "NAME TEXT" for each check.  The text is empty if the check passed.
if [ -n "$run" ]; then
    "$python" "$root/tests/site.py" "$tmp/site" $run >"$tmp/said" 2>"$tmp/errors" || tail -n 5 "$tmp/errors" >&2
    grep '^size: ' "$tmp/errors"
    for name in $run; do
        report "$name" "$(grep "^$name " "$tmp/said" >"$tmp/line" && cut -d ' ' -f 2- "$tmp/line" || echo 'no result')"
    done
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
