#!/bin/sh
# Checks collectives over MPI: compiles examples/mpi_group.c, tests/mpi_ranks.c, examples/digits_mpi.c,
# examples/sharded_lm.c, examples/pipeline_mpi.c and bench/scaling.c with each installed MPI (mpicc.openmpi,
# mpicc.mpich, or mpicc), and runs them with mpirun -n 1, 2 and 4.
#   sh tests/mpi.sh [NAME]     runs the checks whose names contain NAME
#   CC=clang                   the compiler that mpicc calls
#   RUN_TMP=folder             keeps the builds in folder/mpi
# Prints "ok NAME", "FAIL NAME: why" or "skip NAME: why" for each check.  The last line is "N passed, N failed".
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
only=${1:-}
if [ -n "${RUN_TMP:-}" ]; then tmp=$RUN_TMP/mpi; mkdir -p "$tmp" || exit 1
else tmp=$(mktemp -d "${TMPDIR:-/tmp}/opd_mpi.XXXXXX") && trap 'rm -rf "$tmp"' EXIT || exit 1; fi
trap 'exit 130' INT TERM
passed=0; failed=0; skipped=0
CC=${CC:-cc}
export OMPI_CC="$CC" MPICH_CC="$CC"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=0      # MPI does not free all of its memory

good() { passed=$((passed + 1)); echo "ok $1"; }
bad() { failed=$((failed + 1)); echo "FAIL $1: $2"; }
skip() { skipped=$((skipped + 1)); echo "skip $1: $2"; }
limit() { if command -v timeout >/dev/null 2>&1; then timeout "$@"; else shift; "$@"; fi; }
wanted() { case $1 in *"$only"*) true ;; *) false ;; esac }
# run NAME RANKS EXPECTED PROGRAM ARGUMENTS...: passes if the program succeeds, and its output matches EXPECTED.
run() {
    name=$1; ranks=$2; expected=$3; shift 3
    wanted "$name" || return 0
    if (cd "$root" && limit 300 $mpirun -n "$ranks" "$@") >"$tmp/log" 2>&1 && grep -q "$expected" "$tmp/log"; then
        good "$name"
    else
        tail -n 15 "$tmp/log"
        bad "$name" "status or words are not what they should be"
    fi
}
# run_help NAME: passes if $tmp/log contains the help of the program, and $status is 0.
run_help() {
    wanted "$1" || return 0
    if [ "$status" = 0 ] && grep -q '^usage: ' "$tmp/log"; then good "$1"
    else
        cat "$tmp/log"
        bad "$1" "status $status, or no help"
    fi
}
# build NAME OUT ARGUMENTS...: compiles a program with mpicc.
build() {
    name=$1; out=$2; shift 2
    if $mpicc "$@" -o "$out" -lm -lpthread -ldl >"$tmp/log" 2>&1; then return 0; fi
    head -n 15 "$tmp/log"
    bad "$name" "does not build"
    return 1
}

. "$root/tests/checks.sh"
# The implementation does not use MPI.  It is compiled once without and once with sanitizers, or was compiled by
# tests/run.sh, and is linked with all programs.
printf '#define OPDISPATCH_IMPLEMENTATION\n#include "opdispatch.h"\n' >"$tmp/implementation.c"
mkdir -p "$tmp/examples" "$tmp/tests" "$tmp/bench"
ln -sf "$root/opdispatch.h" "$tmp/opdispatch.h"
ln -sfn "$root/examples/data" "$tmp/examples/data"
for file in examples/mpi_group.c examples/digits.c examples/digits_mpi.c examples/sharded_lm.c tests/mpi_test.h \
    tests/mpi_walk.h tests/mpi_ranks.c bench/scaling.c tests/scaling_checks.c bench/collectives.c examples/pipeline_mpi.c; do
    grep -v '^#define OPDISPATCH_IMPLEMENTATION' "$root/$file" >"$tmp/$file"
done
sanitize='-g1 -DOPD_NO_CACHE -fsanitize=address,undefined -fno-sanitize-recover=undefined'
# object NAME FLAGS...: compiles the implementation at the first use.  Sets $object.
object() {
    object=$tmp/$1.o; shift
    [ -f "$object" ] || $CC "$@" -w -I"$root" -c "$tmp/implementation.c" -o "$object"
}
plain() {
    object=$(built_before 'plain_*' "$root/opdispatch.h")
    [ -n "$object" ] || object plain -O1
}

found=; both=
! command -v mpirun.openmpi >/dev/null 2>&1 || ! command -v mpirun.mpich >/dev/null 2>&1 || both=yes
for kind in openmpi mpich ''; do
    mpicc=mpicc${kind:+.$kind}; mpirun=mpirun${kind:+.$kind}
    [ -n "$kind" ] || [ -z "$found" ] || continue
    command -v "$mpicc" >/dev/null 2>&1 && command -v "$mpirun" >/dev/null 2>&1 || continue
    found=yes
    case $both$kind in                # two kinds of MPI take turns
        yesopenmpi) turn 0 2 || { skip "$kind" "${another_turn#*: }"; continue; } ;;
        yesmpich) turn 1 2 || { skip "$kind" "${another_turn#*: }"; continue; } ;;
    esac
    title=${kind:-mpi}
    if $mpirun --version 2>&1 | grep -qi 'open.mpi\|openrte'; then mpirun="$mpirun --oversubscribe"; fi
    plain
    if build "$title mpi_ranks" "$tmp/test" -O0 -g "$tmp/tests/mpi_ranks.c" "$object"; then
        for ranks in 1 2 4; do run "$title mpi_ranks -n $ranks" $ranks "^$ranks ranks: right" "$tmp/test" --checks; done
        run "$title what gloo gives" 3 '^3 ranks: right' "$tmp/test" --golden tests/golden/collectives.txt
        for ranks in 2 4; do run "$title memory -n $ranks" $ranks "^$ranks ranks: at most" "$tmp/test" --memory; done
    fi
    if wanted "$title killed rank"; then
        OPD_MPI_TIMEOUT=5; export OPD_MPI_TIMEOUT
        (cd "$root" && limit 60 $mpirun -n 3 "$tmp/test" --dies) >"$tmp/log" 2>&1
        rc=$?
        named=$(grep -c 'rank [01] of 3): rank 2 (process [0-9]*) has ended' "$tmp/log")
        if [ $rc -eq 0 ] || [ $rc -eq 124 ]; then bad "$title killed rank" "status $rc: the others did not end"
        elif [ "$kind" = mpich ]; then good "$title killed rank"               # MPICH kills the other ranks immediately
        elif [ "$named" = 2 ]; then good "$title killed rank"
        else cat "$tmp/log"; bad "$title killed rank" 'the others do not name it'; fi
        mkdir -p "$tmp/checkpoint"
        (cd "$root" && limit 60 $mpirun -n 3 "$tmp/test" --dies "$tmp/checkpoint") >"$tmp/log" 2>&1
        rc=$?
        unset OPD_MPI_TIMEOUT
        if [ $rc -eq 0 ] || [ $rc -eq 124 ]; then bad "$title killed rank" "status $rc: the others did not end"; fi
        run "$title killed rank, its checkpoint" 2 '^2 ranks: right' "$tmp/test" --loads "$tmp/checkpoint"
        rm -rf "$tmp/checkpoint"
    fi
    # rank 0 has another host name, as if it were on another machine: it must be told which rank has ended
    if ! wanted "$title killed rank, elsewhere"; then :
    elif [ "$kind" = mpich ] || ! unshare -u true 2>/dev/null; then
        skip "$title killed rank, elsewhere" 'its launcher kills at once, or no machine can have two names (unshare)'
    else
        printf '#!/bin/sh\n%s\n%s\n' '[ "$OMPI_COMM_WORLD_RANK" = 0 ] || exec "$@"' \
            'exec unshare -u sh -c '"'"'hostname another && exec "$@"'"'"' sh "$@"' >"$tmp/elsewhere"
        chmod +x "$tmp/elsewhere"
        (cd "$root" && OPD_MPI_TIMEOUT=20 limit 60 $mpirun -n 3 "$tmp/elsewhere" "$tmp/test" --dies) >"$tmp/log" 2>&1
        rc=$?
        if [ $rc -ne 0 ] && [ $rc -ne 124 ] && grep -q 'rank 1 of 3): rank 2 (process [0-9]*) has ended$' "$tmp/log" &&
            grep -q 'rank 0 of 3): rank 2 (process [0-9]*) has ended on ' "$tmp/log"; then
            good "$title killed rank, elsewhere"
        else cat "$tmp/log"; bad "$title killed rank, elsewhere" 'not all name it'; fi
    fi
    # a rank that returns from main without mpi_group_end must be reported, too
    if ! wanted "$title a rank leaves"; then :
    elif (cd "$root" && limit 60 $mpirun -n 2 "$tmp/test" --leaves) >"$tmp/log" 2>&1 ||
        ! grep -q 'ended without mpi_group_end' "$tmp/log"; then
        tail -n 5 "$tmp/log"
        bad "$title a rank leaves" 'the job ends well'
    else good "$title a rank leaves"; fi
    # a launcher that this MPI does not know starts the program: without an error, every process would be a group of one
    if ! wanted "$title another launcher"; then :
    elif (cd "$root" && SLURM_STEP_NUM_TASKS=2 limit 60 "$tmp/test") >"$tmp/log" 2>&1 ||
        ! grep -q '2 processes were started, but MPI knows only this one' "$tmp/log"; then
        tail -n 5 "$tmp/log"
        bad "$title another launcher" 'it goes on alone'
    else good "$title another launcher"; fi
    run "$title one thread" 2 '^2 ranks: right' "$tmp/test" --one-thread
    OPD_MPI_CHECKED=1; export OPD_MPI_CHECKED
    run "$title mpi_ranks, checked" 3 '^3 ranks: right' "$tmp/test"
    unset OPD_MPI_CHECKED
    if build "$title plug-in" "$tmp/mpi_group.so" -O2 -shared -fPIC -DOPDISPATCH_PLUGIN "$root/examples/mpi_group.c"; then
        run "$title plug-in" 2 '^2 ranks by a plug-in: right' "$tmp/test" --plugin "$tmp/mpi_group.so"
    fi
    object=$(built_before "address_$CC" "$root/opdispatch.h")
    [ -n "$object" ] || object sanitized -O0 $sanitize
    if build "$title sanitized" "$tmp/asan" -O0 $sanitize "$tmp/tests/mpi_ranks.c" "$object"; then
        for ranks in 2 4; do run "$title sanitized -n $ranks" $ranks "^$ranks ranks: right" "$tmp/asan" --checks; done
    fi
    plain
    # losses and accuracies do not depend on the number of ranks.  Without Winograd convolutions: their rounding errors
    # are four times as large, and after two epochs they would change the digits that are printed
    export OPD_WINOGRAD=0
    if wanted "$title digits_mpi" &&
       build "$title digits_mpi" "$tmp/digits" -O1 -w "$tmp/examples/digits_mpi.c" "$object"; then
        run "$title digits_mpi -n 1" 1 '^test accuracy' "$tmp/digits" --epochs 2 --plain
        grep -E '^epoch|^test' "$tmp/log" >"$tmp/alone"
        run "$title digits_mpi -n 4" 4 '^test accuracy' "$tmp/digits" --epochs 2 --plain
        grep -E '^epoch|^test' "$tmp/log" >"$tmp/together"
        if cmp -s "$tmp/alone" "$tmp/together"; then good "$title digits_mpi, one rank and four"
        else diff "$tmp/alone" "$tmp/together"; bad "$title digits_mpi, one rank and four" 'they differ'; fi
        unset OPD_WINOGRAD
        # MPICH's launcher sometimes loses the output of a program that ends immediately: then try again
        for again in 1 2 3; do
            (cd "$root" && limit 300 $mpirun -n 2 "$tmp/digits" --help) >"$tmp/log" 2>&1; status=$?
            [ $status != 0 ] || [ -s "$tmp/log" ] || continue
            break
        done
        run_help "$title digits_mpi, help"
        if ! wanted "$title digits_mpi, help once"; then :
        elif [ "$(grep -c '^usage: ' "$tmp/log")" = 1 ]; then good "$title digits_mpi, help once"
        else bad "$title digits_mpi, help once" 'by several ranks'; fi
    fi
    # losses and text do not depend on how the model is divided
    if wanted "$title sharded_lm" &&
       build "$title sharded_lm" "$tmp/lm" -O1 -w "$tmp/examples/sharded_lm.c" "$object"; then
        run "$title sharded_lm -n 1" 1 '^step .*20/20' "$tmp/lm" --steps 20 --plain
        grep -E '^step|^The' "$tmp/log" >"$tmp/alone"
        for way in '2 1' '4 2' '4 4'; do
            run "$title sharded_lm -n $way" "${way% *}" '^step .*20/20' \
                "$tmp/lm" --steps 20 --plain --tensor "${way#* }"
            grep -E '^step|^The' "$tmp/log" >"$tmp/together"
            if cmp -s "$tmp/alone" "$tmp/together"; then good "$title sharded_lm, one rank and $way"
            else diff "$tmp/alone" "$tmp/together"; bad "$title sharded_lm, one rank and $way" 'they differ'; fi
        done
        run "$title sharded_lm, saved" 4 '^step .*10/10' "$tmp/lm" --steps 10 --plain --checkpoint "$tmp/lm_checkpoint"
        run "$title sharded_lm, loaded" 2 '^continues after 10 steps' \
            "$tmp/lm" --steps 10 --plain --checkpoint "$tmp/lm_checkpoint"
        rm -f "$tmp/lm_checkpoint/b/1-of-2/index.pt"
        if ! wanted "$title sharded_lm, a part is missing"; then :
        elif (cd "$root" && limit 300 $mpirun -n 2 "$tmp/lm" --steps 10 --plain --checkpoint "$tmp/lm_checkpoint") \
            >"$tmp/log" 2>&1 || ! grep -q 'b/1-of-2/index.pt' "$tmp/log"; then
            tail -n 15 "$tmp/log"
            bad "$title sharded_lm, a part is missing" 'it begins again, over what is there'
        else good "$title sharded_lm, a part is missing"; fi
        rm -rf "$tmp/lm_checkpoint"
        # the job is killed while it saves, when one of two ranks has written all of its files and the other one none
        if ! wanted "$title sharded_lm, killed while it saves"; then :
        elif ! $CC -shared -fPIC "$here/killed_rename.c" -o "$tmp/killed_rename.so" -ldl >/dev/null 2>&1; then
            skip "$title sharded_lm, killed while it saves" 'no library can be loaded first'
        else
            words=
            for before in '' 'continues after 1 steps'; do
                (cd "$root" && LD_PRELOAD="$tmp/killed_rename.so" KILLED_RENAME=1-of-2/index.pt OPD_MPI_TIMEOUT=20 \
                    limit 100 $mpirun -n 2 "$tmp/lm" --steps 1 --plain --checkpoint "$tmp/lm_checkpoint") \
                    >"$tmp/log" 2>&1 && words="$words the job ended well;"
                (cd "$root" && limit 100 $mpirun -n 2 "$tmp/lm" --steps 1 --plain --checkpoint "$tmp/lm_checkpoint") \
                    >"$tmp/log" 2>&1 || { cat "$tmp/log"; words="$words the next one did not;"; }
                [ "$(grep '^continues' "$tmp/log" | sed 's/,.*//')" = "$before" ] || words="$words not '$before';"
            done
            if [ -z "$words" ]; then good "$title sharded_lm, killed while it saves"
            else bad "$title sharded_lm, killed while it saves" "$words"; fi
        fi
        rm -rf "$tmp/lm_checkpoint"
    fi
    # the sums equal the sums of MPI's function and, if PyTorch is installed, of gloo
    if [ "$kind" != mpich ] && wanted "$title bench/collectives" &&
       build "$title bench/collectives" "$tmp/collectives" -O0 -w "$tmp/bench/collectives.c" "$object"; then
        peer=
        if ${PYTHON:-python3} -c 'import torch.distributed' >/dev/null 2>&1; then peer="--python ${PYTHON:-python3}"; fi
        run "$title bench/collectives" 2 '^| 4194304 ' "$tmp/collectives" --quick $peer
    fi
    # predictions for more ranks than this machine can run, and comparisons of predictions with measurements
    if [ "$kind" != mpich ] && wanted "$title bench/scaling" &&
       build "$title bench/scaling" "$tmp/checks" -O0 -w "$tmp/tests/scaling_checks.c" "$object"; then
        run "$title bench/scaling, checks" 1 '^scaling: right' "$tmp/checks" "$tmp/table"
    fi
    if wanted "$title bench/scaling" &&
       build "$title bench/scaling" "$tmp/scaling" -O0 -w -DSCALING_MPI "$tmp/bench/scaling.c" "$object"; then
        run "$title bench/scaling" 2 '^| 2, sharded, ' "$tmp/scaling" --quick --record "$tmp/table"
        run "$title bench/scaling, a table" 1 '^| 64 |.*ring' "$tmp/scaling" --table "$tmp/table" --quick --ranks 64 \
            --net infiniband --algorithm ring --per-node 4 --sharded --plot "$tmp/scaling.svg"
    fi
    # losses do not depend on the number of stages or on the schedule; each stage keeps the expected number of
    # microbatches
    whole="$root/examples/pipeline_mpi.c"         # one build is like a user's, with the implementation
    [ "$kind" != mpich ] || whole="$tmp/examples/pipeline_mpi.c $object"
    if wanted "$title pipeline_mpi" &&
       build "$title pipeline_mpi" "$tmp/pipeline" -O0 -w $whole; then
        run "$title pipeline_mpi -n 1" 1 '^step  10' "$tmp/pipeline" --steps 10 --plain
        grep '^step' "$tmp/log" >"$tmp/alone"
        for way in '2 8 2.1 --plain' '4 8 4.3.2.1 --plain' '4 8 8.8.8.8 --gpipe' '3 2 2.2.1 --plain'; do
            set -- $way
            run "$title pipeline_mpi -n $1 --micro $2 $4" "$1" "alive: $3\$" \
                "$tmp/pipeline" --steps 10 --plain --micro "$2" "$4"
            grep '^step' "$tmp/log" >"$tmp/together"
            if cmp -s "$tmp/alone" "$tmp/together"; then good "$title pipeline_mpi, one stage and $way"
            else diff "$tmp/alone" "$tmp/together"; bad "$title pipeline_mpi, one stage and $way" 'they differ'; fi
        done
    fi
done
[ -n "$found" ] || skip mpi 'neither Open MPI nor MPICH is here (openmpi-bin libopenmpi-dev, mpich libmpich-dev)'
tail=
[ "$skipped" = 0 ] || tail=", $skipped skipped"
echo "$passed passed, $failed failed$tail"
[ "$failed" = 0 ]
