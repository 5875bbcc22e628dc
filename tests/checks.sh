# Functions with which tests/check_header.sh, linkage.sh, cuda.sh and cuda_code.sh report results.  These scripts
# source this file.

# A check prints nothing when all is well, what is wrong otherwise; or "SKIP: why".  It took what has passed since the last.
checks_at=$(date +%s)
result() {
    checks_took=$(($(date +%s) - checks_at)); checks_at=$((checks_at + checks_took))
    case $2 in
        '') echo "ok $1 ($checks_took s)" ;;
        SKIP:*) echo "skip $1:${2#SKIP:}" ;;
        *) printf 'FAIL %s: %s\n' "$1" "$2" ;;
    esac
}
# chosen NAME...: the names of the checks to run.  If CHECKS is quick, the names in $slow are left out; if it is slow, all
# others are left out.
chosen() {
    for chosen_name in "$@"; do
        case " $(echo $slow) " in *" $chosen_name "*) chosen_kind=slow ;; *) chosen_kind=quick ;; esac
        case ${CHECKS:-all} in all|$chosen_kind) printf '%s\n' "$chosen_name" ;; esac
    done
}
# quiet COMMAND...: its output, when it fails or says something.
quiet() {
    quiet_out=$("$@" 2>&1) || quiet_out="status $? from: $*
$quiet_out"
    [ -z "$quiet_out" ] || printf '%s\n' "$quiet_out" | head -n 12
}
