#!/bin/sh
# Builds, tests and measures opdispatch_cuda.cu on a GPU, in seven minutes.  See --help.
#| NVIDIA H100 and H200, CUDA 13 | nvcc | all tests of the CUDA plug-in | on the GPU
set -u

help() {
    cat <<'TEXT'
usage: OUT=folder sh tests/first_gpu_run.sh
       OUT=objects ARCH=sm_90 sh tests/first_gpu_run.sh --compile     only compiles, without a GPU, for BUILT=objects

Builds the CUDA plug-in for the GPU of this machine, tests it and measures it, beginning with the most important parts.
Leaves two files: SUMMARY, which says for each part whether it passed, failed, was not available or was not reached, and
how many seconds it took; and logs.tgz, with a log of each part.  They are written after each part, so that they are
there if the script is stopped.

  OUT=gpu_run           the folder for these two files, or for the objects of --compile
  WORK=folder           the folder for programs and logs (default: a new one, which is removed at the end)
  BUDGET=420            the time for all parts in seconds; later parts are not reached
  ARCH=sm_90            the architecture for nvcc (default: that of the first GPU of nvidia-smi)
  SKIP="bench ncu"      parts to leave out
  QUICK=1               fewer tests, smaller tensors, no optimisation
  NVCC=... CC=...       the compilers
  BUILT=folder          uses the objects that --compile has written to this folder, which saves time on the GPU
  COMPANION=file.o      uses this object of the CUDA plug-in
  LIBS="..."            the libraries to link with this object
  MODELS="gpt2 vit"     the models of bench/gpu_models.c for the part models (default: all)
  PROFILED="row:kernel" rows of bench/cuda.c, and texts in the names of kernels, for the part ncu

Parts: machine build convolution models bench torch overlap capture debug first copies threads tests large digits ncu
memcheck racecheck synccheck code nccl example.  Exit status: 0; 1 if a part failed; 2 if nothing could run (no GPU).
TEXT
}
parts='machine build convolution models bench torch overlap capture debug first copies threads tests large digits ncu
memcheck racecheck synccheck code nccl example'

#-- the parts: each is a process in $WORK; status 77: not available, and the last line says why -------------------------

have() { command -v "$1" >/dev/null 2>&1; }
unavailable() { echo "$*"; exit 77; }
part_machine() {
    date; uname -a
    have git && git -C "$root" log -1 --format='commit %h %cd' 2>/dev/null
    have lscpu && lscpu | grep -E 'Model name|^CPU\(s\)|NUMA node\(s\)'
    have free && free -g | head -n 2
    have nvidia-smi || unavailable 'no nvidia-smi'
    nvidia-smi
    nvidia-smi --query-gpu=name,compute_cap,driver_version,memory.total,memory.used,compute_mode,ecc.mode.current,mig.mode.current,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,temperature.gpu,power.draw,power.limit,pcie.link.gen.current,pcie.link.width.current \
        --format=csv
    nvidia-smi -q -d PERFORMANCE 2>/dev/null | head -n 40
    nvidia-smi topo -m 2>/dev/null
    have "$NVCC" && "$NVCC" --version | tail -n 2
    have "$CC" && "$CC" --version | head -n 1
    return 0
}
# The programs.  As many are built at the same time as there are cores, and each has its own log.
programs='test_cuda probes nccl_ranks bench_cuda gpu_models digits'
made() { name=$1; shift; "$@" >"build_$name.log" 2>&1 || { echo "$name: status $?"; tail -n 5 "build_$name.log"; : >build.failed; }; }
compiled() {
    have "$CC" || { echo "no C compiler: $CC"; return 1; }
    printf '#define OPDISPATCH_IMPLEMENTATION\n#include "opdispatch.h"\n' >implementation.c
    sed 's|^#define OPDISPATCH_IMPLEMENTATION$||' "$root/bench/cuda.c" >bench_cuda.c
    sed 's|^#define OPDISPATCH_IMPLEMENTATION$||' "$root/bench/gpu_models.c" >gpu_models.c
    sed 's|^#define OPDISPATCH_IMPLEMENTATION$||' "$root/examples/digits.c" >digits.c
    optimised='-O2 -O1'; [ -z "$QUICK" ] || optimised='-O0 -O0'
    set -- $optimised
    made implementation "$CC" "$1" -I"$root" -c implementation.c -o implementation.o &
    made test_cuda "$CC" "$2" -I"$root" -c "$root/tests/cuda/test_cuda.c" -o test_cuda.o &
    made probes "$CC" "$2" -I"$root" -c "$root/tests/cuda/probes.c" -o probes.o &
    made nccl_ranks "$CC" "$2" -I"$root" -c "$root/tests/cuda/nccl_ranks.c" -o nccl_ranks.o &
    made bench "$CC" "$2" -I"$root/bench" -c bench_cuda.c -o bench_cuda.o &
    made models "$CC" "$2" -I"$root/bench" -c gpu_models.c -o gpu_models.o &
    made digits "$CC" "$2" -I"$root/examples" -c digits.c -o digits.o &
    if [ -n "$COMPANION" ]; then made companion cp "$COMPANION" companion.o
    elif have "$NVCC"; then
        made companion "$NVCC" -O3 -arch="$ARCH" --split-compile=0 -Xptxas -v -I"$root" -c "$root/opdispatch_cuda.cu" -o companion.o
    else echo "no nvcc ($NVCC)"; : >build.failed; fi
    wait
}
part_compile() {
    rm -f build.failed
    compiled
    [ ! -f build.failed ] || return 1
    (part_code)
    rc=$?
    touch code.said
    tar czf objects.tgz -- *.o build_companion.log code.said && rm -f -- *.o || return 1    # a fifth of the bytes
    [ $rc = 0 ] || [ $rc = 77 ]
}
part_build() {
    rm -f build.failed
    if [ -z "$BUILT" ]; then compiled
    else made objects tar xzf "$BUILT/objects.tgz"
    fi
    [ ! -f build.failed ] || return 1
    for program in $programs; do
        made "$program" "$CC" "$program.o" implementation.o companion.o -o "$program" $LIBS
    done
    [ ! -f build.failed ] || return 1
    awk '/Compiling entry/ { name = $0; sub(/.*function ./, "", name); sub(/. for.*/, "", name) }
         /bytes stack frame/ && !/ 0 bytes stack frame, 0 bytes spill/ { print name ": " $0 }' build_companion.log >ptxas_stacks
    echo "$(wc -l <ptxas_stacks) kernels with a stack (ptxas_stacks)"
}
part_code() {                                # needs no GPU: --compile has done it
    if [ -n "$BUILT" ] && [ -s code.said ]; then cat code.said; return; fi
    CUOBJDUMP=${CUOBJDUMP:-$toolkit/bin/cuobjdump}
    have "$CUOBJDUMP" || CUOBJDUMP=cuobjdump
    have "$CUOBJDUMP" || unavailable 'no cuobjdump'
    CUOBJDUMP=$CUOBJDUMP sh "$root/tests/cuda_code.sh" companion.o >code.said; cat code.said
    ! grep -q '^FAIL' code.said
}
part_probe() { ./probes "$1"; }
some='aten::add aten::exp aten::sum aten::softmax aten::native_layer_norm aten::cumsum aten::sort aten::index_select aten::mm
aten::convolution aten::embedding'
part_tests() {
    if [ -n "$QUICK" ]; then ./test_cuda $some streams captur memory; return; fi
    CUDA_TABLE=1 ./test_cuda && return
    rc=$?
    echo; echo '== once more, waiting after each launch'
    OPD_CUDA_DEBUG=1 ./test_cuda -v >tests_debug.log 2>&1
    tail -n 3 tests_debug.log
    return $rc
}
# Process groups over NCCL: three ranks, which are threads of one process, each have a GPU.
part_nccl() {
    gpus=$(nvidia-smi -L 2>/dev/null | grep -c GPU)
    [ "$gpus" -ge 3 ] || unavailable "$gpus GPU(s), 3 are wanted"
    ./nccl_ranks -v
}
part_example() {
    have "$NVCC" || unavailable 'no nvcc'
    "$NVCC" -O2 -arch="$ARCH" -I"$root" "$root/examples/cuda_op.cu" implementation.o companion.o -o cuda_op -lcublas -lcublasLt || return 1
    ./cuda_op
}
# Training gives the same losses and accuracies on the CPU and on the GPU.
part_digits() {
    for device in cpu cuda; do
        ./digits --plain --epochs 2 --data "$root/examples/data/digits.txt" --device $device >digits.$device 2>&1 || { tail -n 3 digits.$device; return 1; }
        grep -e loss -e accuracy digits.$device >digits.$device.losses
    done
    diff digits.cpu.losses digits.cuda.losses && { echo 'the same losses to the last digit shown'; return; }
    paste -d ' ' digits.cpu.losses digits.cuda.losses | awk '
        { n = split($0, w, /[^0-9.eE+-]+/); h = 0; for (i = 1; i <= n; i++) { if (w[i] ~ /^[0-9]*\.[0-9]+/) { v[++h] = w[i] } }
          for (i = 1; i <= h / 2; i++) { d = v[i] - v[i + h / 2]; if (d < 0) { d = -d } if (d > far) { far = d } } }
        END { print "figure: losses and accuracies differ by at most " far + 0; exit far > 0.5 }'
}
part_sanitizer() {
    [ -n "$SANITIZER" ] || unavailable 'no compute-sanitizer'
    walked=$some
    [ "$1" != racecheck ] || walked='aten::softmax aten::sum aten::cumsum aten::sort aten::topk aten::mm flash_attention'  # slow
    OPD_CUDA_NO_CACHE=1 "$SANITIZER" --tool "$1" --error-exitcode 99 --print-limit 20 ./test_cuda $walked
}
# Whole models.  Each runs alone, so that the others are measured if one fails.
part_models() {
    small=; [ -z "$QUICK" ] || small='--tiny --quick'
    rc=0
    for model in ${MODELS:-gpt2 resnet50 resnet50_last llama llama_captured lstm unet vit}; do
        limited 20 ./gpu_models --seconds 2 $small $model >model.said 2>&1 || rc=1
        cat model.said
        ! grep -q -e 'NOT F' -e 'DOES NOT' model.said || rc=1
        grep -q ' ms .* GB ' model.said || rc=1
        awk '/ ms .* GB / { print "figure: " $1 ": " $2 " ms a step" }' model.said
    done
    return $rc
}
part_bench() {
    cd "$root" || return 1                   # it needs bench/peers
    if [ -n "$QUICK" ]; then "$WORK/bench_cuda" --quick; else "$WORK/bench_cuda"; fi
}
part_torch() {
    python=${OPD_TORCH_PYTHON:-python3}
    "$python" -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null || unavailable 'no PyTorch with CUDA'
    "$python" "$root/bench/peers/torch_models.py" --seconds 2
    "$python" "$root/bench/peers/torch_models.py" --seconds 2 --compile gpt2 resnet50_last
}
# One launch of each kernel, in full sizes.
part_ncu() {
    have ncu || unavailable 'no ncu'
    rc=0
    for pair in $PROFILED; do
        OPD_TORCH_PYTHON=false ncu --set basic --clock-control none --kernel-name "regex:${pair#*:}" --launch-skip 2 \
            --launch-count 1 --kill yes ./bench_cuda --filter "${pair%%:*}" >ncu.said 2>&1 || rc=1
        grep -E '^  [a-z]|Duration|Throughput|Registers|Occupancy|rror' ncu.said
    done
    return $rc
}
part() {
    case $1 in
        convolution|overlap|capture|debug|first|copies|threads|large) part_probe "$1" ;;
        memcheck|racecheck|synccheck) part_sanitizer "$1" ;;
        *) part_"$1" ;;
    esac
}
# limit_of PART: prints the most seconds that the part may take.
limit_of() {
    case $1 in
        machine) echo 20 ;; build) echo 400 ;; code) echo 60 ;; tests|models) echo 160 ;; bench|torch) echo 100 ;;
        ncu|racecheck) echo 90 ;; memcheck|synccheck|digits|example) echo 60 ;; *) echo 45 ;;
    esac
}

limited() { seconds=$1; shift; if have timeout; then timeout -k 5 "$seconds" "$@"; else "$@"; fi; }

if [ "${1:-}" = --part ]; then cd "$WORK" || exit 1; part "$2"; exit; fi
only_compile=
case ${1:-} in
    --help|-h) help; exit 0 ;;
    --compile) only_compile=yes ;;
    ?*) echo "first_gpu_run.sh: unknown option $1 (see --help)" >&2; exit 2 ;;
esac

#-- one after another ----------------------------------------------------------------------------------------------------

root=$(cd "$(dirname "$0")/.." && pwd)
began=$(date +%s)
OUT=${OUT:-gpu_run}; BUDGET=${BUDGET:-420}; SKIP=${SKIP:-}; QUICK=${QUICK:-}; COMPANION=${COMPANION:-}; BUILT=${BUILT:-}
CC=${CC:-cc}; NVCC=${NVCC:-nvcc}; ARCH=${ARCH:-}; SANITIZER=
PROFILED=${PROFILED:-attention_f16:attention attention_back:attention conv_f16:conv_tc conv_back_f16:conv_gw sort_f32:sort
    linear_1_bf16:gemv softmax_f16:softmax norm_last:norm}
mkdir -p "$OUT" || exit 2
OUT=$(cd "$OUT" && pwd)
[ -z "$only_compile" ] || WORK=$OUT
made_work=
if [ -n "${WORK:-}" ]; then mkdir -p "$WORK" || exit 2; WORK=$(cd "$WORK" && pwd)
else WORK=$(mktemp -d "${TMPDIR:-/tmp}/gpu_run.XXXXXX") || exit 2; made_work=yes; fi
summary=$OUT/SUMMARY
have "$NVCC" || { [ ! -x /usr/local/cuda/bin/nvcc ] || NVCC=/usr/local/cuda/bin/nvcc; }
toolkit=$(dirname "$(dirname "$(command -v "$NVCC" || echo /usr/local/cuda/bin/nvcc)")")
for tool in compute-sanitizer "$toolkit/bin/compute-sanitizer" "$toolkit/compute-sanitizer/compute-sanitizer"; do
    [ -n "$SANITIZER" ] || ! have "$tool" || SANITIZER=$tool
done
PATH=$PATH:$toolkit/bin
LIBS=${LIBS:--lm -L$toolkit/lib64 -lcudart_static -lcublas -lcublasLt -lstdc++ -lpthread -ldl -lrt}
LD_LIBRARY_PATH=$toolkit/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
[ -n "$ARCH" ] || ARCH=sm_$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -dc 0-9)
[ "$ARCH" != sm_ ] || ARCH=native
[ "$ARCH" != sm_90 ] || ARCH=sm_90a       # with the instructions of warp groups
case $COMPANION in ''|/*) ;; *) COMPANION=$PWD/$COMPANION ;; esac
case $BUILT in ''|/*) ;; *) BUILT=$PWD/$BUILT ;; esac
export root WORK PROFILED QUICK COMPANION BUILT CC NVCC ARCH SANITIZER toolkit LIBS PATH LD_LIBRARY_PATH

if [ -n "$only_compile" ]; then sh "$0" --part compile; exit; fi
running=
save() { (cd "$WORK" && tar czf "$OUT/logs.tgz" -- *.log ptxas_stacks 2>/dev/null); }
end() { save; [ -z "$made_work" ] || rm -rf "$WORK"; }
stopped() {                                  # by a signal
    [ -z "$running" ] || kill "$running" 2>/dev/null
    echo "stopped by a signal after $(elapsed) s" >>"$summary"
    exit 143
}
trap end EXIT
trap stopped TERM INT HUP
say() { echo "$*" | tee -a "$summary"; }
elapsed() { echo $(($(date +%s) - began)); }
failed=0
# run PART: runs a part and adds a line to the summary.  The status is 1 if the part did not succeed.
run() {
    limit=$(limit_of "$1"); rest=$((BUDGET - $(elapsed)))
    case " $SKIP " in *" $1 "*) say "skip   $1: left out"; return 1 ;; esac
    if [ "$rest" -lt 5 ]; then say "late   $1: not reached in $BUDGET s"; return 1; fi
    [ "$limit" -lt "$rest" ] || limit=$rest
    from=$(elapsed)
    limiter=; ! have timeout || limiter="timeout -k 5 $limit"
    $limiter sh "$0" --part "$1" >"$WORK/$1.log" 2>&1 </dev/null &           # no function, so that $! is its process
    running=$!
    wait $running
    rc=$?; running=; took=$(($(elapsed) - from))
    save
    last=$(grep -a -E '^wrong:|FAIL|died|rror' "$WORK/$1.log" | head -n 1); [ -n "$last" ] || last=$(tail -n 1 "$WORK/$1.log")
    last=$(printf '%s' "$last" | cut -c 1-200)
    case $rc in
        0) say "ok     $1 ($took s)"; grep -a '^figure: ' "$WORK/$1.log" | sed 's/^figure: /         /' >>"$summary"; return 0 ;;
        77) say "skip   $1 ($took s): $(tail -n 1 "$WORK/$1.log" | cut -c 1-200)" ;;
        124|137) say "late   $1: stopped after $took s" ;;
        *) say "FAIL   $1 ($took s, status $rc): $last"; failed=$((failed + 1)) ;;
    esac
    return 1
}

: >"$summary"
say "opdispatch_cuda.cu on $(uname -n), $(date), at most $BUDGET s"
run machine || :
if [ -z "$COMPANION" ] && ! nvidia-smi -L 2>/dev/null | grep -q GPU; then
    say 'no GPU: nvidia-smi is not there, or lists none.  Nothing was built or run.'
    say "the results: $OUT/SUMMARY and $OUT/logs.tgz"
    exit 2
fi
[ -n "$COMPANION" ] || say "$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -n 1), compiled for $ARCH"
if run build; then
    for name in $parts; do case $name in machine|build) ;; *) run "$name" || : ;; esac; done
fi
say "in all $(elapsed) s, $failed failed"
say "the results: $OUT/SUMMARY and $OUT/logs.tgz"
[ "$failed" -eq 0 ]
