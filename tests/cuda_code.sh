#!/bin/sh
# Checks the machine code that nvcc has generated for the kernels of the CUDA plug-in: use of the stack, wide loads and
# stores, and tensor cores, which decide how fast the kernels can be.  This needs no GPU.
#   nvcc -O3 -arch=sm_90 -c opdispatch_cuda.cu -o companion.o;  sh tests/cuda_code.sh companion.o [NAME]
# Prints "ok NAME", "FAIL NAME: why" or "skip NAME: why" for each check.  Needs cuobjdump (CUOBJDUMP=...), and nvdisasm
# in the same folder.
set -u

names='cuda_code_stack cuda_code_wide_loads cuda_code_wide_stores cuda_code_tensor_cores'
if [ "${1:-}" = --list ]; then printf '%s\n' $names; exit 0; fi
object=${1:?the object}
only=${2:-}
root=$(cd "$(dirname "$0")/.." && pwd)
CC=${CC:-cc}
tmp=$(mktemp -d "${TMPDIR:-/tmp}/opd_code.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
CUOBJDUMP=${CUOBJDUMP:-cuobjdump}
command -v "$CUOBJDUMP" >/dev/null 2>&1 || { [ ! -x /usr/local/cuda/bin/cuobjdump ] || CUOBJDUMP=/usr/local/cuda/bin/cuobjdump; }
command -v "$CUOBJDUMP" >/dev/null 2>&1 || CUOBJDUMP=
[ -z "$CUOBJDUMP" ] || { PATH=$(dirname "$(command -v "$CUOBJDUMP")"):$PATH; export PATH; }

. "$root/tests/checks.sh"

missing() {
    [ -f "$object" ] || { echo 'SKIP: it was not built'; return; }
    [ -n "$CUOBJDUMP" ] || { echo 'SKIP: no cuobjdump'; return; }
    return 1
}
# Writes lines "FUNCTION bytes-of-stack" to $tmp/usage.
usage() {
    [ -f "$tmp/usage" ] || "$CUOBJDUMP" -res-usage "$object" 2>/dev/null |
        awk '$1 == "Function" { f = $2; sub(/:$/, "", f) } match($0, /STACK:[0-9]+/) { print f, substr($0, RSTART + 6, RLENGTH - 6) }' >"$tmp/usage"
}
# formula NAME: prints the number of a pointwise formula, which the names of its kernels contain.  With OPD_STATIC, the
# program needs no library.
formula() {
    printf '#include "opdispatch.h"\n#include <stdio.h>\nint main(void) { printf("%%d", (int)OPD_FORMULA_%s); return 0; }\n' "$1" >"$tmp/f.c"
    { $CC -DOPD_STATIC -w -I"$root" "$tmp/f.c" -o "$tmp/f" && "$tmp/f"; } || echo "no number of the formula $1"
}
# code PATTERN: prints the instructions of the kernels whose names match, with a line "== FUNCTION" before each kernel.
code() {
    usage
    list=$(awk '{ print $1 }' "$tmp/usage" | grep -E "$1" | tr '\n' ',')
    [ -n "$list" ] || { echo "no kernel is called $1"; return; }
    "$CUOBJDUMP" -sass -fun "${list%,}" "$object" |
        awk '/Function : / { print "== " $3 } /^ +\/\*[0-9a-f]+\*\/ / { sub(/^ +\/\*[0-9a-f]+\*\/ +/, ""); sub(/;.*/, ""); print }'
}
# Prints a line "NUMBER KERNEL" for each kernel: how many 16-byte loads it issues before it uses the first result, at
# most.
under_way='
    function done() { if (name != "") { print most, name } most = 0; n = 0; delete waits }
    /^== / { done(); name = $2; next }
    {
        line = $0; sub(/^@!?U?P[0-9T]+ /, "", line); gsub(/UR[0-9]+/, "", line)
        op = line; sub(/ .*/, "", op); sub(/^[^ ]+ */, "", line)
        k = split(line, part, /,/); used = 0
        for (i = (op ~ /^(ST|RED|ATOM)/ ? 1 : 2); i <= k; i++) {
            rest = part[i]
            while (match(rest, /R[0-9]+/)) {
                if (substr(rest, RSTART + 1, RLENGTH - 1) in waits) { used = 1 }
                rest = substr(rest, RSTART + RLENGTH)
            }
        }
        if (used) { n = 0; delete waits }
        if (op ~ /^LDG.*128/) {
            match(part[1], /R[0-9]+/); r = substr(part[1], RSTART + 1, RLENGTH - 1)
            for (i = 0; i < 4; i++) { waits[r + i] = 1 }
            if (++n > most) { most = n }
        }
    }
    END { done() }'
# at_least NUMBER PATTERN: each kernel whose name matches issues at least NUMBER 16-byte loads before it uses a result.
at_least() {
    code "$2" >"$tmp/code"
    case $(head -n 1 "$tmp/code") in '== '*) ;; *) cat "$tmp/code"; return ;; esac
    awk "$under_way" "$tmp/code" | awk -v least="$1" '$1 < least { print $2 ": " $1 " loads of 16 bytes are under way, not " least }'
}
# with NUMBER INSTRUCTION PATTERN: each kernel whose name matches has the instruction at least NUMBER times.
with() {
    code "$3" >"$tmp/code"
    case $(head -n 1 "$tmp/code") in '== '*) ;; *) cat "$tmp/code"; return ;; esac
    awk -v least="$1" -v what="$2" '
        function done() { if (name != "" && n < least) { print name ": " n + 0 " of " what ", not " least } n = 0 }
        /^== / { done(); name = $2; next } $0 ~ what { n++ } END { done() }' "$tmp/code"
}
short='(f|6__half|13__nv_bfloat16)'

# Kernels use no stack: no registers are spilled, and all arrays are in registers.  Exceptions are float64 in a few
# kernels, the range reduction of sine, cosine and tangent (also in normal random numbers, in sinc, in special functions
# and in functions of complex numbers), remainders and quotients of mixed dtypes, which keep one number there, equations
# with L D L^T, in which one thread keeps numbers there while it divides, and attention of float32, which reads a few
# addresses from the stack once for each 64 keys.
check_cuda_code_stack() {
    missing && return
    usage
    awk -v sines="$(formula sin)|$(formula cos)|$(formula tan)|$(formula sinc)" \
        -v quotients="$(formula remainder)|$(formula div_trunc_f16)|$(formula div_trunc_bf16)" '
        $2 == 0 { next }
        $1 ~ "pointwise_[a-z]+ILi(" sines ")E" || $1 ~ /opdi_cu_draw_floats|opdi_cu_grid_place/ { next }
        $1 ~ /opdi_cu_(special|complex)_kernel|scan_columnsI15opdi_cu_pair_of/ && $2 <= 48 { next }
        $1 ~ "pointwise_generalILi(" quotients ")Ef" && $2 <= 8 { next }
        $1 ~ /opdi_cu_ldl_solve_kernel/ && $2 <= 48 { next }
        $1 ~ /attention_float_kernelILi64E/ && $2 <= 64 { next }
        $1 ~ /pointwise_[a-z]+ILi[0-9]+Ed|softmax(_backward)?_rowsId/ && $2 <= 32 { next }
        { print $1 ": " $2 " bytes of stack" }' "$tmp/usage"
    [ -s "$tmp/usage" ] || echo 'no kernel was found'
}
check_cuda_code_wide_loads() {
    missing && return
    at_least 4 "opdi_cu_pointwise_flatILi($(formula add)|$(formula mul))Ef$short"
    at_least 2 "opdi_cu_pointwise_heavyILi$(formula exp)Eff"
    at_least 1 "opdi_cu_pointwise_heavyILi$(formula exp)Ef$short"
    at_least 4 'opdi_cu_copy_sameI[htjm]E'
    at_least 4 'opdi_cu_softmax_rowsIfLi4ELi4E|opdi_cu_norm_rowsI(fLi4|6__halfLi8)ELi4E'
    at_least 2 'opdi_cu_softmax_rowsI(6__half|13__nv_bfloat16)Li8ELi2E'
    at_least 4 'opdi_cu_reduce_(rows|columns)I(f|14opdi_cu_shorts)17opdi_cu_fold_sumsIf16opdi_cu_map_sameELb1'
}
check_cuda_code_wide_stores() {
    missing && return
    with 2 'STG.E.128' "opdi_cu_pointwise_flatILi($(formula add)|$(formula mul))Ef$short"
    with 1 'STG.E.128' "opdi_cu_pointwise_heavyILi$(formula exp)Ef$short"
    with 4 'STG.E.128' 'opdi_cu_copy_sameI[htjm]E'
    with 2 'STG.E.128' 'opdi_cu_(softmax|norm)_rowsI(fLi4|6__halfLi8)ELi2E'
    with 1 'STG.E.128' 'opdi_cu_conv_tc_kernel'
}
# Convolutions: the main loop has 32 tensor-core products a stage, loads fragments with ldmatrix, and copies stages to
# shared memory without registers.
check_cuda_code_tensor_cores() {
    missing && return
    # the shape of a kernel by warp groups ends with true, Lb1
    with 32 'HMMA.16816.F32' 'opdi_cu_conv_tc_kernelI(6__half|13__nv_bfloat16).*Lb0EELb'
    with 32 'HMMA.1688.F32.TF32' 'opdi_cu_conv_tc_kernelIf.*Lb0EELb'
    with 12 'LDSM.16' 'opdi_cu_conv_tc_kernel.*Lb0EELb'
    with 6 'LDGSTS.E.128' 'opdi_cu_conv_tc_kernel.*Lb0EELb'
    "$CUOBJDUMP" -lelf "$object" 2>/dev/null | grep -q sm_90a && with 4 'HGMMA' 'opdi_cu_conv_tc_kernel.*Lb1EELb'
    with 16 'HMMA.16816.F32' 'opdi_cu_conv_gw_kernel'
}

for name in $names; do
    case $name in *"$only"*) result "$name" "$(check_"$name")" ;; esac
done
