#!/bin/sh
# Checks the CUDA plug-in: runs the code of its kernels on the CPU, thread by thread (tests/cuda), and checks the code
# that nvcc generates.
#   sh tests/cuda.sh [NAME]     runs the checks whose names contain NAME.  With the name cuda, cuda_emulated_races does
#                               not run, and cuda_plugin runs only if there is a GPU
#   sh tests/cuda.sh --list     prints the names of the checks
#   sh tests/cuda.sh --write    writes tests/golden/cuda_operators.txt, which lists the operators that run on the CPU or in no
#                               fixed order, and cuda_launches.txt, the kernel launches of a step of small models
#   NVCC=... CUDA_ARCH=sm_90    another compiler; the architecture of the GPU
# Prints "ok NAME", "FAIL NAME: why" or "skip NAME: why" for each check.  tests/run.sh calls this script, with CC, CXX
# and RUN_TMP in the environment.
set -u

names='cuda_emulated cuda_emulated_guarded cuda_emulated_async cuda_emulated_fault cuda_emulated_races
cuda_emulated_without_gpu cuda_emulated_without_driver cuda_emulated_out_of_memory cuda_emulated_left_alone
cuda_emulated_unusable cuda_emulated_ranges cuda_emulated_models cuda_emulated_llama cuda_emulated_less_shared cuda_emulated_older_cublaslt cuda_emulated_fft cuda_emulated_solvers cuda_emulated_compiled_for_older cuda_emulated_first_run cuda_first_run_without_gpu
cuda_emulated_sanitized cuda_emulated_compiled cuda_emulated_nccl cuda_emulated_mpi cuda_emulated_plugin cuda_emulated_example cuda_emulated_digits cuda_atomics cuda_without_plugin cuda_builds cuda_linked cuda_plugin
'$(sh "$(dirname "$0")/cuda_code.sh" --list)

if [ "${1:-}" = --list ]; then printf '%s\n' $names; exit 0; fi
only=${1:-} write=
if [ "$only" = --write ]; then only=cuda_emulated names='cuda_emulated cuda_emulated_models' write=yes; fi
if [ "$only" = cuda ]; then                # all checks except the slowest, cuda_emulated_races
    only=; names=$(printf '%s\n' $names | grep -v races)
    # without a GPU, cuda_plugin only shows that nvcc's plug-in loads; cuda_emulated_plugin shows the same
    command -v nvidia-smi >/dev/null 2>&1 || names=$(printf '%s\n' $names | grep -v '^cuda_plugin$')
fi
root=$(cd "$(dirname "$0")/.." && pwd)
CC=${CC:-cc}; CXX=${CXX:-c++}
quick_c=$CC quick=$CXX                    # for the emulation: clang takes 40% of g++'s time
case $CC in *clang*) ;; *) if command -v clang++ >/dev/null 2>&1; then quick_c=clang quick=clang++; fi ;; esac
own=
if [ -z "${RUN_TMP:-}" ]; then RUN_TMP=$(mktemp -d "${TMPDIR:-/tmp}/opd_cuda.XXXXXX"); own=yes; fi
tmp=$RUN_TMP/cuda; mkdir -p "$tmp"
[ -z "$own" ] || trap 'rm -rf "$RUN_TMP"' EXIT
lib='-lstdc++ -lm -lpthread -ldl'
NVCC=${NVCC:-nvcc}
command -v "$NVCC" >/dev/null 2>&1 || { [ ! -x /usr/local/cuda/bin/nvcc ] || NVCC=/usr/local/cuda/bin/nvcc; }
toolkit=$(dirname "$(dirname "$(command -v "$NVCC" || echo /usr/local/cuda/bin/nvcc)")")
arch=${CUDA_ARCH:-sm_90a}

# Checks that repeat the walk over all operators in another build cover a part of them ($CHECK_PART, see tests/check.h):
# with the sanitizer one of 32; as a plug-in, which has the same code, one of 16.
sanitized_part=${CHECK_PART:-32} plugin_part=${CHECK_PART:-16}

. "$root/tests/checks.sh"

printf '#define OPDISPATCH_IMPLEMENTATION\n#include "opdispatch.h"\n' >"$tmp/implementation.c"
# Compiles the implementation once, or takes the one of tests/run.sh, whose kernels are optimised.
implementation() {
    [ -e "$tmp/implementation.o" ] || {
        before=$(built_before 'plain_*' "$root/opdispatch.h")
        if [ -n "$before" ]; then ln -s "$before" "$tmp/implementation.o"
        else quiet $quick_c -O0 -I"$root" -c "$tmp/implementation.c" -o "$tmp/implementation.o"; fi
    }
}
tests_object() { [ -f "$tmp/tests.o" ] || quiet $quick_c -O0 -I"$root" -c "$root/tests/cuda/test_cuda.c" -o "$tmp/tests.o"; }
# Builds the plug-in and its tests with the emulation.  A misaligned load or store ends the program, as on a GPU.  The
# optimisation takes less time than it saves in the walk over all operators.
emulated() {
    implementation; tests_object
    aligned='-fsanitize=alignment -fno-sanitize-recover=alignment'
    emulated_lib="$lib -fsanitize=alignment"
    [ -x "$tmp/emulated" ] || {
        quiet $quick -std=c++17 -O1 $aligned -I"$root/tests/cuda" -I"$root" -x c++ -c "$root/opdispatch_cuda.cu" -o "$tmp/emulated.o"
        quiet $quick_c "$tmp/tests.o" "$tmp/implementation.o" "$tmp/emulated.o" -o "$tmp/emulated" $emulated_lib
    }
}
# ran PROGRAM ARGUMENTS...: runs a test program.  Prints nothing if at least one case passed and no case failed.
ran() {
    "$@" >"$tmp/ran.log" 2>&1
    case $? in
        0) grep -q '^[a-z_]*\.c: [1-9][0-9]* passed, 0 failed' "$tmp/ran.log" || tail -n 3 "$tmp/ran.log" ;;
        *) tail -n 30 "$tmp/ran.log" ;;
    esac
}

# Builds libraries that compute what the plug-in leaves to cuFFT and cuSOLVER.
emulated_libraries() {
    for library in cufft cusolver; do
        [ -f "$tmp/$library.so" ] || quiet $quick -std=c++17 -O1 -shared -fPIC "$root/tests/cuda/$library.cpp" -o "$tmp/$library.so"
    done
}
# Runs all cases, with cuFFT and cuSOLVER, and lists the operators whose float32 cases use the CPU, and those that
# opd_deterministic_set refuses.
check_cuda_emulated() {
    emulated
    emulated_libraries
    CUDA_TABLE=1 OPD_CUFFT="$tmp/cufft.so" OPD_TEST_CUFFT=1 OPD_CUSOLVER="$tmp/cusolver.so" OPD_TEST_CUSOLVER=1 ran "$tmp/emulated"
    for what in 'on the CPU' 'in no fixed order'; do
        echo "# operators of CUDA tensors that run $what (with cuFFT and cuSOLVER)"
        sed -n "s/^\([a-z_]*::[^ ]*\) .*, $what.*/\1/p" "$tmp/ran.log" | LC_ALL=C sort -u
    done >"$tmp/operators.txt"
    listed=$root/tests/golden/cuda_operators.txt
    [ -z "$write" ] || cp "$tmp/operators.txt" "$listed"
    diff "$listed" "$tmp/operators.txt" || echo 'the list has changed: sh tests/cuda.sh --write'
}
# an access of the host to device memory ends the program; only some cases, because it is slow
check_cuda_emulated_guarded() {
    emulated
    CHECK_PART=4 OPD_EMU_GUARD=1 ran "$tmp/emulated" aten::add aten::softmax aten::index_select aten::mm on_the_gpu streams captured
}
check_cuda_emulated_async() {             # queued work runs late and in the worst order; another device is current
    emulated
    for order in 1 2 3; do
        OPD_EMU_ASYNC=$order OPD_TEST_DEVICE=1 ran "$tmp/emulated" stream pinned between current_device captur replays second_gpu \
            memory out_of_range aten::add aten::softmax aten::sort aten::multinomial aten::convolution
    done
}
check_cuda_emulated_fault() { emulated; OPD_TEST_FAULT=1 OPD_EMU_ASYNC=1 ran "$tmp/emulated" a_lost_context; }
# races.cpp checks each memory access of a device thread.  First it must find races in wrong kernels; then it checks
# some kernels of the CUDA plug-in.  "$tmp/races" without arguments runs all cases.
check_cuda_emulated_races() {
    implementation; tests_object
    # these are flags of g++
    flags='-std=c++17 -O0 -fno-tree-sra -fsanitize=thread --param=tsan-distinguish-volatile=1 -DOPD_EMU_RACES'
    quiet $CXX -std=c++17 -O2 -DOPD_EMU_RACES -I"$root/tests/cuda" -c "$root/tests/cuda/races.cpp" -o "$tmp/races.o"
    quiet $CXX $flags -I"$root/tests/cuda" -c "$root/tests/cuda/races_test.cpp" -o "$tmp/races_test.o"
    quiet $CXX -rdynamic "$tmp/races_test.o" "$tmp/races.o" -o "$tmp/races_test" $lib
    quiet_out=$("$tmp/races_test" 2>&1) || { printf '%s\n' "$quiet_out" | tail -n 20; return; }
    quiet $CXX $flags -I"$root/tests/cuda" -I"$root" -x c++ -c "$root/opdispatch_cuda.cu" -o "$tmp/c_races.o"
    quiet $CXX -rdynamic "$tmp/tests.o" "$tmp/implementation.o" "$tmp/c_races.o" "$tmp/races.o" -o "$tmp/races" $lib
    OPD_CUDA_NO_CACHE=1 ran "$tmp/races" aten::add aten::softmax aten::sum aten::cumsum aten::sort aten::topk aten::nonzero \
        aten::index_put aten::conv aten::mm aten::native_batch_norm aten::native_layer_norm aten::embedding
}
check_cuda_emulated_without_gpu() { emulated; OPD_TEST_MISSING='no GPU' OPD_EMU_DEVICES=0 ran "$tmp/emulated" without; }
check_cuda_emulated_without_driver() {    # no driver, or a driver that fails
    emulated
    OPD_TEST_MISSING='no NVIDIA driver' OPD_EMU_DEVICES=-1 ran "$tmp/emulated" without
    OPD_TEST_MISSING='(cudaErrorSystemNotReady, 802); the GPUs may wait for the fabric manager' OPD_EMU_DEVICES=-802 ran "$tmp/emulated" without
    OPD_TEST_MISSING='initialization error (cudaErrorInitializationError, 3)' OPD_EMU_DEVICES=-3 ran "$tmp/emulated" without
}
check_cuda_emulated_out_of_memory() { emulated; OPD_EMU_MEMORY=8388608 ran "$tmp/emulated" memory; }
check_cuda_emulated_left_alone() {  # no context before a program uses the GPU; copies between GPUs without peer access
    emulated
    OPD_TEST_ALONE=1 ran "$tmp/emulated" left_alone
    OPD_EMU_PEERS=0 ran "$tmp/emulated" between_devices second_gpu
}
# A GPU whose memory is full, or that another process owns: an operator on the GPU fails with an error that says so, and
# a program that uses only the CPU prints nothing.
check_cuda_emulated_unusable() {
    emulated
    OPD_EMU_CONTEXT=2 OPD_TEST_UNUSABLE='cannot use cuda:0 at all: out of memory' ran "$tmp/emulated" cannot_be_used
    OPD_EMU_CONTEXT=46 OPD_TEST_UNUSABLE='busy or unavailable' ran "$tmp/emulated" cannot_be_used
    printf '#include "opdispatch.h"\n#include <stdio.h>\nint main(void) { printf("%%g\\n", opd_item_f64(opd_sum(opd_ones(OPD_INTS(4), OPD_FLOAT32)))); return opd_finish(); }\n' >"$tmp/cpu.c"
    quiet $quick_c -O0 -I"$root" "$tmp/cpu.c" "$tmp/implementation.o" "$tmp/emulated.o" -o "$tmp/cpu" $emulated_lib
    for how in OPD_EMU_CONTEXT=2 OPD_EMU_CONTEXT=46 OPD_EMU_DEVICES=-802 OPD_EMU_DEVICES=0; do
        cpu=$(env $how "$tmp/cpu" 2>&1; echo "status $?")
        [ "$cpu" = '4
status 0' ] || printf '%s: %s\n' "$how" "$cpu"
    done
}
check_cuda_emulated_ranges() { emulated; OPD_CUDA_NVTX=1 ran "$tmp/emulated" ranges_of_operators; }
# Steps of small models: their losses fall, and they take no more launches than tests/golden/cuda_launches.txt says.
# Of models in full size, launches are only counted.
check_cuda_emulated_models() {
    emulated
    sed 's|^#define OPDISPATCH_IMPLEMENTATION$||' "$root/bench/gpu_models.c" >"$tmp/models.c"
    quiet $quick_c -O0 -I"$root/bench" "$tmp/models.c" "$tmp/implementation.o" "$tmp/emulated.o" -o "$tmp/models" $emulated_lib
    "$tmp/models" --tiny --quick >"$tmp/models.log" 2>&1
    grep -v ' launches .* GB .*loss' "$tmp/models.log"
    grep -e NOT -e DOES "$tmp/models.log"
    awk '/ launches / { print $1, $4 }' "$tmp/models.log" >"$tmp/launches.txt"
    OPD_EMU_COUNT=1 OPD_EMU_DEVICES=1 OPD_EMU_MEMORY=200000000000 "$tmp/models" --quick >"$tmp/models_whole.log" 2>&1
    awk '/ launches / { print $1 "_whole", $4 }' "$tmp/models_whole.log" >>"$tmp/launches.txt"
    listed=$root/tests/golden/cuda_launches.txt
    [ -z "$write" ] || cp "$tmp/launches.txt" "$listed"
    awk 'NR == FNR { most[$1] = $2; n++; next } !($1 in most) || $2 > most[$1] { print $1 ": " $2 " launches, not " most[$1] } { n-- }
         END { if (n) { print n " models are missing" } }' "$listed" "$tmp/launches.txt"
}
# Language models on a GPU: llama.cpp and transformers give the same logits, texts and trained adapters.
check_cuda_emulated_llama() {
    emulated
    sed 's|^#define OPDISPATCH_IMPLEMENTATION$||' "$root/examples/llama.c" >"$tmp/llama.c"
    quiet $quick_c -O0 -I"$root/examples" "$tmp/llama.c" "$tmp/implementation.o" "$tmp/emulated.o" -o "$tmp/llama" $emulated_lib
    golden=$root/tests/golden
    "$tmp/llama" --device cuda --check "$golden"/gguf/llama_Q4_K_M.gguf \
        "$golden"/llama/llama_Q4_0_moe.gguf >"$tmp/llama.log" 2>&1 || cat "$tmp/llama.log"
    [ "$(grep -c ': tokens ok, exact ok, rounded ok' "$tmp/llama.log")" = 2 ] || echo 'not all models'
}
# GPUs with less shared memory for a block, as 7.5 and 8.6 have: the kernels with smaller tiles run.
check_cuda_emulated_less_shared() {
    turn 0 2 || { echo "$another_turn"; return; }
    emulated
    for bytes in 65536 101376; do OPD_EMU_SHARED=$bytes CHECK_PART=8 ran "$tmp/emulated" attention aten::convolution aten::mm; done
}
# A cublasLt without scales for rows, and a GPU without tensor cores for floats of 8 bits.
check_cuda_emulated_older_cublaslt() {
    emulated
    OPD_EMU_LT_OLD=1 ran "$tmp/emulated" products_of_float8
    OPD_EMU_LT_NO_EIGHT=1 ran "$tmp/emulated" products_of_float8
}
# Errors of an emulated cuFFT; and a machine without cuFFT, where transforms run on the CPU.
check_cuda_emulated_fft() {
    emulated
    emulated_libraries
    OPD_CUFFT="$tmp/cufft.so" OPD_EMU_CUFFT_FAILS=5 OPD_TEST_CUFFT='cuFFT error 5 in cufftMakePlanMany64' ran "$tmp/emulated" cufft_that_fails
    OPD_CUFFT="$tmp/cufft.so" OPD_EMU_CUFFT_FAILS=2 OPD_TEST_CUFFT='cuFFT error 2 in cufftMakePlanMany64' ran "$tmp/emulated" cufft_that_fails
    OPD_CUFFT=libm.so.6 ran "$tmp/emulated" fft stft
}
# Errors of an emulated cuSOLVER and of cuBLAS; singular values that rotations do not find; an older cuSOLVER; and a
# machine without cuSOLVER, where factorizations run on the CPU.
check_cuda_emulated_solvers() {
    emulated; emulated_libraries
    export OPD_CUSOLVER="$tmp/cusolver.so"
    for error in 2 7; do
        OPD_EMU_CUSOLVER_FAILS=$error OPD_TEST_CUSOLVER="cuSOLVER error $error in cusolverDnXpotrf" ran "$tmp/emulated" cusolver_that_fails
    done
    for error in 3 14; do OPD_EMU_CUBLAS_FAILS=$error ran "$tmp/emulated" cublas_that_fails_in_solvers; done
    OPD_EMU_CUSOLVER_INFO=3 ran "$tmp/emulated" cusolver_that_does_not_converge
    OPD_EMU_CUSOLVER_JACOBI=1 ran "$tmp/emulated" solvers_with_free_signs
    quiet $quick -std=c++17 -O1 -shared -fPIC -DOLD "$root/tests/cuda/cusolver.cpp" -o "$tmp/cusolver_old.so"
    OPD_CUSOLVER="$tmp/cusolver_old.so" ran "$tmp/emulated" solvers_with_free_signs
    OPD_TEST_OLD_CUSOLVER=1 OPD_TEST_CUSOLVER=1 OPD_CUSOLVER="$tmp/cusolver_old.so" ran "$tmp/emulated" solvers_of_eigenvalues
    OPD_CUSOLVER=libm.so.6 ran "$tmp/emulated" solvers triangular linalg aten::inverse det cholesky lu_ qr svd
}
# A newer GPU, with code that is compiled only for 7.5, which has no tensor cores for bfloat16, or for 8.0, which has no
# products by warp groups; and a GPU whose products by warp groups are wrong.
check_cuda_emulated_compiled_for_older() {
    emulated
    OPD_EMU_COMPILED=75 ran "$tmp/emulated" aten::convolution
    OPD_EMU_COMPILED=80 ran "$tmp/emulated" convolutions_on_tensor_cores
    OPD_EMU_WRONG_GROUPS=1 OPD_TEST_WRONG_GROUPS=1 ran "$tmp/emulated" products_by_warp_groups
}
# Runs first_gpu_run.sh with the emulation instead of a GPU, and without a GPU.
check_cuda_emulated_first_run() {
    emulated
    CC="$quick_c" COMPANION=$tmp/emulated.o LIBS=$emulated_lib OUT=$tmp/first_run QUICK=1 MODELS=lstm \
        SKIP='machine code tests example digits memcheck racecheck synccheck bench torch ncu' sh "$root/tests/first_gpu_run.sh" >"$tmp/first_run.log" 2>&1 ||
        { echo "status $?"; cat "$tmp/first_run.log"; }
    tar tzf "$tmp/first_run/logs.tgz" | grep -q '^capture.log$' || echo 'no logs'
    for name in build models convolution overlap capture debug first copies threads; do
        grep -q "^ok     $name (" "$tmp/first_run/SUMMARY" || echo "no $name"
    done
    grep -q '^skip   large (.*it does not fit' "$tmp/first_run/SUMMARY" || echo 'large'
    grep -q '^         first product' "$tmp/first_run/SUMMARY" || echo 'no figures'
}
check_cuda_first_run_without_gpu() {
    ! command -v nvidia-smi >/dev/null 2>&1 || { echo 'SKIP: there may be a GPU'; return; }
    quiet sh -n "$root/tests/first_gpu_run.sh"
    OUT=$tmp/no_gpu sh "$root/tests/first_gpu_run.sh" >"$tmp/no_gpu.log" 2>&1
    [ $? = 2 ] && grep -q '^no GPU: ' "$tmp/no_gpu/SUMMARY" || cat "$tmp/no_gpu.log"
    quiet_out=$(sh "$root/tests/first_gpu_run.sh" --help) || echo '--help'
    sh "$root/tests/first_gpu_run.sh" --nonsense >/dev/null 2>&1 && echo 'it takes any option'
    return 0
}
check_cuda_emulated_sanitized() {
    turn 0 2 || { echo "$another_turn"; return; }
    flags='-g1 -O0 -DOPD_NO_CACHE -fsanitize=address'
    quiet $quick_c $flags -I"$root" "$root/tests/cuda/test_cuda.c" -c -o "$tmp/s_tests.o"
    s_implementation=$(built_before "address_$quick_c" "$root/opdispatch.h")
    if [ -z "$s_implementation" ]; then
        s_implementation=$tmp/s_implementation.o
        quiet $quick_c $flags -I"$root" -c "$tmp/implementation.c" -o "$s_implementation"
    fi
    quiet $quick $flags -std=c++17 -I"$root/tests/cuda" -I"$root" -x c++ -c "$root/opdispatch_cuda.cu" -o "$tmp/s_emulated.o"
    quiet $quick $flags "$tmp/s_tests.o" "$s_implementation" "$tmp/s_emulated.o" -o "$tmp/sanitized" $lib
    CHECK_PART=$sanitized_part OPD_CUDA_NO_CACHE=1 ran "$tmp/sanitized"
    emulated_nccl
    quiet $quick_c $flags -I"$root" -c "$root/tests/cuda/nccl_ranks.c" -o "$tmp/s_ranks.o"
    quiet $quick $flags "$tmp/s_ranks.o" "$s_implementation" "$tmp/s_emulated.o" -o "$tmp/s_ranks" $lib
    OPD_EMU_ASYNC=1 ran "$tmp/s_ranks"
}
# Process groups over an emulated NCCL, whose ranks are threads, and errors if NCCL cannot be used.
emulated_nccl() {
    export OPD_NCCL="$tmp/nccl.so" OPD_EMU_DEVICES=4
    [ -f "$OPD_NCCL" ] || quiet $quick -std=c++17 -O1 -shared -fPIC -I"$root/tests/cuda" "$root/tests/cuda/nccl.cpp" -o "$OPD_NCCL"
    [ -f "$tmp/ranks.o" ] || quiet $quick_c -O0 -I"$root" -c "$root/tests/cuda/nccl_ranks.c" -o "$tmp/ranks.o"
}
check_cuda_emulated_nccl() {
    emulated; emulated_nccl
    quiet $quick_c "$tmp/ranks.o" "$tmp/implementation.o" "$tmp/emulated.o" -o "$tmp/ranks" $emulated_lib
    for order in 1 2 3; do OPD_EMU_ASYNC=$order ran "$tmp/ranks"; done
    OPD_EMU_ASYNC=1 OPD_EMU_GUARD=1 ran "$tmp/ranks" every_kind sends
    export OPD_EMU_ASYNC=1
    OPD_NCCL=/nowhere/libnccl.so.2 OPD_TEST_NCCL='NCCL cannot be loaded: /nowhere/libnccl.so.2: cannot open' ran "$tmp/ranks" nccl_that
    OPD_NCCL=libm.so.6 OPD_TEST_NCCL='libm.so.6 has no function ncclGetVersion: the file is not NCCL' ran "$tmp/ranks" nccl_that
    OPD_EMU_NCCL_VERSION=21003 OPD_TEST_NCCL='has version code 21003, but 2.14 (21400)' ran "$tmp/ranks" nccl_that
}
# Compiled graphs, whose kernels the C++ compiler compiles in place of NVRTC; and warnings if NVRTC cannot be used.
check_cuda_emulated_compiled() {
    emulated
    export OPD_NVRTC="$tmp/nvrtc.so" OPD_EMU_CXX="${quick%% *}"
    quiet $quick -std=c++17 -O1 -shared -fPIC "$root/tests/cuda/nvrtc.cpp" -o "$OPD_NVRTC" -ldl
    quiet $quick_c -O0 -I"$root" -c "$root/tests/cuda/compiled_graphs.c" -o "$tmp/compiled.o"
    quiet $quick_c "$tmp/compiled.o" "$tmp/implementation.o" "$tmp/emulated.o" -o "$tmp/compiled" $emulated_lib
    real=$toolkit/lib64/libnvrtc.so; [ -f "$real" ] || real=
    OPD_EMU_NVRTC_REAL=$real ran "$tmp/compiled"
    OPD_EMU_ASYNC=1 ran "$tmp/compiled" captured kinds outlive
    OPD_NVRTC=/nowhere/libnvrtc.so OPD_TEST_NVRTC='/nowhere/libnvrtc.so: cannot open' ran "$tmp/compiled" nvrtc_that
    OPD_NVRTC=libm.so.6 OPD_TEST_NVRTC='it has no function nvrtcCreateProgram' ran "$tmp/compiled" nvrtc_that
    OPD_EMU_NVRTC_FAILS=1 OPD_TEST_NVRTC='for sm_90, so it runs operator by operator: it was asked to fail' ran "$tmp/compiled" nvrtc_that
}
# Ranks that are MPI processes, each with its own device.
check_cuda_emulated_mpi() {
    for kind in .openmpi .mpich ''; do
        command -v mpicc$kind >/dev/null 2>&1 && command -v mpirun$kind >/dev/null 2>&1 && break
    done
    command -v mpicc$kind >/dev/null 2>&1 || { echo 'SKIP: no MPI is here'; return; }
    emulated
    mpirun=mpirun$kind
    if $mpirun --version 2>&1 | grep -qi 'open.mpi\|openrte'; then mpirun="$mpirun --oversubscribe"; fi
    quiet env OMPI_CC="$quick" MPICH_CC="$quick" mpicc$kind -std=c++17 -O1 -shared -fPIC -DNCCL_OVER_MPI -DOMPI_SKIP_MPICXX -DMPICH_SKIP_MPICXX -I"$root/tests/cuda" -x c++ \
        "$root/tests/cuda/nccl.cpp" -x none -o "$tmp/nccl_mpi.so" -lstdc++
    quiet env OMPI_CC="$quick_c" MPICH_CC="$quick_c" mpicc$kind -O0 -I"$root" "$root/tests/cuda/nccl_mpi.c" "$tmp/implementation.o" \
        "$tmp/emulated.o" -o "$tmp/nccl_mpi" $emulated_lib
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OPD_NCCL="$tmp/nccl_mpi.so" OPD_EMU_DEVICES=2 OPD_EMU_ASYNC=1
    for ranks in 2 3 2; do
        quiet_out=$(timeout 200 $mpirun -n $ranks "$tmp/nccl_mpi" 2>&1) || quiet_out="status $?: $quiet_out"
        [ "$quiet_out" = "$ranks ranks with devices: right" ] || printf '%s\n' "$quiet_out" | tail -n 20
        [ $ranks = 2 ] || export OPD_MPI_CUDA=1   # the last run, with an MPI that accepts device memory
    done
}
check_cuda_emulated_plugin() {
    turn 1 2 || { echo "$another_turn"; return; }
    implementation; tests_object
    quiet $quick -std=c++17 -O0 -shared -fPIC -DOPDISPATCH_PLUGIN -I"$root/tests/cuda" -I"$root" -x c++ "$root/opdispatch_cuda.cu" \
        -o "$tmp/emulated.so"
    quiet $CC "$tmp/tests.o" "$tmp/implementation.o" -o "$tmp/alone" $lib
    OPD_TEST_EMULATED=1 CHECK_PART=$plugin_part OPD_TEST_PLUGIN=$tmp/emulated.so ran "$tmp/alone"
    emulated_nccl
    quiet $CC "$tmp/ranks.o" "$tmp/implementation.o" -o "$tmp/ranks_alone" $lib
    OPD_EMU_ASYNC=1 OPD_TEST_PLUGIN=$tmp/emulated.so ran "$tmp/ranks_alone" every_kind data_parallel
}
check_cuda_emulated_example() {
    emulated
    sed 's|\([a-z_]*\)<<<\([^>]*\)>>>(|opd_emu_call(\1, \2)(|; s|"../opdispatch.h"|"opdispatch.h"|' "$root/examples/cuda_op.cu" >"$tmp/cuda_op.cpp"
    quiet $quick -std=c++17 -I"$root/tests/cuda" -I"$root" "$tmp/cuda_op.cpp" "$tmp/implementation.o" "$tmp/emulated.o" -o "$tmp/cuda_op" $emulated_lib
    quiet_out=$("$tmp/cuda_op" 2>&1) || quiet_out="status $?: $quiet_out"
    case $quiet_out in status*) printf '%s\n' "$quiet_out" ;; *'cuda: the sum is '*'result 0.0e+00'*|*'cuda: the sum is '*'result '*e-0[678]*) ;; *) printf '%s\n' "$quiet_out" ;; esac
}
check_cuda_emulated_digits() {  # training gives equal losses and accuracies on the CPU and on the emulated GPU
    emulated
    sed 's|^#define OPDISPATCH_IMPLEMENTATION$||' "$root/examples/digits.c" >"$tmp/digits.c"
    quiet $quick_c -O0 -I"$root/examples" "$tmp/digits.c" "$tmp/implementation.o" "$tmp/emulated.o" -o "$tmp/digits" $emulated_lib
    for device in cpu cuda; do
        "$tmp/digits" --plain --epochs 1 --data "$root/examples/data/digits.txt" --device $device 2>&1 |
            grep -e loss -e accuracy >"$tmp/digits.$device"
    done
    [ -s "$tmp/digits.cpu" ] || echo 'it did not train'
    # numbers may differ by rounding: losses by 0.002, accuracies by 0.5 %
    paste -d' ' "$tmp/digits.cpu" "$tmp/digits.cuda" | awk '{
        n = 0
        for (i = 1; i <= NF; i++) { if ($i == "loss" || $i == "accuracy") { kind[++n] = $i; at[n] = $(i + 1) + 0 } }
        if (n == 0 || n % 2) { print "no pair of numbers: " $0 }
        for (i = 1; i <= n / 2; i++) {
            apart = at[i] - at[i + n / 2]
            if (apart < 0) { apart = -apart }
            if (kind[i] != kind[i + n / 2] || apart > (kind[i] == "loss" ? 0.002 : 0.5)) { print }
        }
    }'
}
# A file that adds floats by atomic operations asks opd_deterministic_mode or calls opd_deterministic_alert.
check_cuda_atomics() {
    for file in "$root"/src/cuda/*.cu; do
        grep -E 'opdi_cu_atomic(_add)?\(|atomicAdd\(' "$file" | grep -qvE 'atomicAdd\([^;]*(, 1u?\)|counts)' || continue
        grep -q opd_deterministic "$file" || echo "$(basename "$file") adds in any order, and has no opd_deterministic_alert"
    done
}
check_cuda_without_plugin() {
    implementation; tests_object
    quiet $CC "$tmp/tests.o" "$tmp/implementation.o" -o "$tmp/alone" $lib
    OPD_TEST_MISSING=opdispatch_cuda.cu ran "$tmp/alone" without
}
no_nvcc() { command -v "$NVCC" >/dev/null 2>&1 && return 1; echo 'SKIP: no nvcc'; }
# Code is optimised if it runs, or if its machine code is checked, but not if only the compiler's messages matter.
seen=-O3 run=-O3 unoptimised='-O0 -Xcicc -O0 -Xptxas -O0'
command -v nvidia-smi >/dev/null 2>&1 || run=$unoptimised
command -v "${CUOBJDUMP:-cuobjdump}" >/dev/null 2>&1 || [ -x /usr/local/cuda/bin/cuobjdump ] || seen=$run
# nvcc_of FLAGS ARGUMENTS...: runs nvcc.  Code that is not optimised has no registers for products by warp groups, which
# ptxas says for each of them.
nvcc_of() {
    flags=$1; shift
    hidden='^$'; [ "$flags" != "$unoptimised" ] || hidden='^ptxas info'
    "$NVCC" $flags -arch="$arch" "$@" >"$tmp/nvcc.log" 2>&1; nvcc_status=$?
    grep -v "$hidden" "$tmp/nvcc.log"
    return $nvcc_status
}
check_cuda_builds() {
    turn 1 2 || { echo "$another_turn"; return; }
    no_nvcc && return
    quiet nvcc_of "$seen" -Xcompiler -Wall,-Wextra -I"$root" -c "$root/opdispatch_cuda.cu" -o "$tmp/companion.o"
}
check_cuda_linked() {  # links as the first comment of opdispatch_cuda.cu says; runs all cases if there is a GPU
    no_nvcc && return
    implementation; tests_object
    [ -f "$tmp/companion.o" ] || { echo 'SKIP: it was not built'; return; }
    quiet $CC "$tmp/tests.o" "$tmp/implementation.o" "$tmp/companion.o" -o "$tmp/linked" -lm -L"$toolkit/lib64" \
        -lcudart_static -lcublas -lcublasLt -lstdc++ -lpthread -ldl -lrt
    LD_LIBRARY_PATH=$toolkit/lib64 ran "$tmp/linked"
}
check_cuda_plugin() {
    no_nvcc && return
    implementation; tests_object
    quiet nvcc_of "$run" -shared -Xcompiler -fPIC -DOPDISPATCH_PLUGIN -I"$root" "$root/opdispatch_cuda.cu" \
        -o "$tmp/opdispatch_cuda.so" -lcublas -lcublasLt
    quiet $CC "$tmp/tests.o" "$tmp/implementation.o" -o "$tmp/alone" $lib
    OPD_TEST_PLUGIN=$tmp/opdispatch_cuda.so LD_LIBRARY_PATH=$toolkit/lib64 ran "$tmp/alone"
}

for name in $names; do
    case $name in *"$only"*) ;; *) continue ;; esac
    case $name in
        # checks the object that cuda_builds made
        cuda_code_*) sh "$root/tests/cuda_code.sh" "$tmp/companion.o" "$name" ;;
        *) result "$name" "$(check_"$name")" ;;
    esac
done
