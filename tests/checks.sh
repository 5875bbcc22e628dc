# Functions with which tests/check_header.sh, linkage.sh, cuda.sh and cuda_code.sh report results.  These scripts
# source this file.

# result NAME OUTPUT: reports a check.  OUTPUT is empty if the check passed, "SKIP: why" if it was skipped, and
# otherwise says what is wrong.  Also prints the seconds since the last report.
checks_at=$(date +%s)
result() {
    checks_took=$(($(date +%s) - checks_at)); checks_at=$((checks_at + checks_took))
    case $2 in
        '') echo "ok $1 ($checks_took s)" ;;
        SKIP:*) echo "skip $1:${2#SKIP:}" ;;
        *) printf 'FAIL %s: %s\n' "$1" "$2" ;;
    esac
}
# chosen NAME...: prints the names of the checks to run.  If CHECKS is quick, the names in $slow are left out; if it is
# slow, all others are left out.
chosen() {
    for chosen_name in "$@"; do
        case " $(echo $slow) " in *" $chosen_name "*) chosen_kind=slow ;; *) chosen_kind=quick ;; esac
        case ${CHECKS:-all} in all|$chosen_kind) printf '%s\n' "$chosen_name" ;; esac
    done
}
# quiet COMMAND...: runs a command that must not print anything.  Prints its output, and its status if it fails.
quiet() {
    quiet_out=$("$@" 2>&1) || quiet_out="status $? from: $*
$quiet_out"
    [ -z "$quiet_out" ] || printf '%s\n' "$quiet_out" | head -n 12
}
# turn K N: whether a check runs that one of N commits runs, the one whose count of commits leaves the rest K.  It runs for
# every commit with .ci/run --whole, and without .ci/run.
turn() { [ -z "${CHECK_TURNS:-}" ] || [ "$((${CHECK_TURN:-0} % $2))" = "$1" ]; }
another_turn='SKIP: other commits run it, and .ci/run --whole'
# built_before MODE_CC HEADER: prints an implementation that tests/run.sh has compiled from HEADER in this mode with this compiler
# (address_clang: with its address sanitizer; plain_*: with any compiler), if it is in $OBJECTS.
built_before() {
    for built in "${OBJECTS:-/nowhere}"/$1.o; do
        if [ "$built" -nt "$2" ]; then echo "$built"; return; fi
    done
}
