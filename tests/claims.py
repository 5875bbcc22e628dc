#!/usr/bin/env python3
"""Checks sentences and figures in the documents: what the library does not have, which limits it has, and how long
something takes.

- Each sentence in the sections on limits (PLACES) has a row here.  The row says how the sentence is checked: by a
  pattern that no public name may match, by a test case that tries the limit, or by a text that a source file must have.
  If a sentence is not checked, the row says why.  A sentence without a row and a row without a sentence are errors.
- Figures that README.md and bench/README.md repeat must equal those in bench/tables.  The row labels of these tables
  must be texts that the benchmarks print.
- These lists must be complete: environment variables, fields of opd_op_desc, macros that leave something out.

Each run also tests the script itself, with pages, names and tests that were made wrong on purpose.

usage: python3 tests/claims.py [--cc CC] [--object FILE]     FILE: the compiled implementation
"""
import argparse
import fnmatch
import math
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# word: (a pattern that no name of an operator, function, macro or type may match, a name that would match)
ABSENT = {
    'quantised': (r'aten::(quantize_per|dequantize|q_scale|int_repr|_empty_affine)|OPD_QU?INT|opd_(de)?quanti[sz]e',
                  'aten::quantize_per_tensor'),
    'sparse': (r'aten::(to_|_)?sparse_?|aten::\w*_(coo|csr)|opd_(to_)?sparse|OPD_SPARSE', 'aten::to_sparse'),
    'nested': (r'aten::\w*nested_tensor|opd_nested', 'aten::_nested_tensor_from_mask'),
    'named': (r'aten::(refine_names|rename|align_to)|opd_tensor_names', 'aten::refine_names'),
    'onnx': (r'(?i)onnx', 'opd_onnx_load'),
    'gguf': (r'(?i)gguf|ggml', 'opd_gguf_open'),
    'rotary': (r'(?i)rotary|(::|_)rope(_|\.|$)', 'aten::rotary_embedding'),
    'backends of ggml': (r'(?i)opd_(metal|vulkan|sycl|opencl|webgpu)_', 'opd_metal_begin'),
    'scheduler': (r'(?i)opd_\w*(schedul|partition)', 'opd_graph_partition'),
    'affinity': (r'(?i)opd_\w*(numa|affinity|priority)', 'opd_threads_affinity_set'),
    'modules as classes': (r'opd_(nn_|module_(forward|call|new_linear))', 'opd_module_forward'),
    'data loaders': (r'(?i)opd_\w*(loader|dataset)', 'opd_loader_new'),
    'threads of backward': (r'opd_(backward|engine|autograd)_threads', 'opd_backward_threads_set'),
    'providers': (r'(?i)provider', 'opd_provider_add'),
    'passes': (r'opd_graph_(fuse|layout|transpose)', 'opd_graph_fuse'),
    'Python': (r'opd_py(thon)?_|OPD_PYTHON', 'opd_python_call'),
    'network': (r'(?i)opd_(socket|tcp|http)', 'opd_socket_open'),
    'GPU of AMD': (r'(?i)opd_(hip|rocm)_', 'opd_hip_stream'),
}
QUANTISED, LIMITS = 'absent: quantised', 'product/test_limits.c '
NO_MACHINE = 'why: it says on which machines it ran'

README, CONCEPTS, GRAPHS, FILES = ('README.md', 'examples/guide/02-concepts.md', 'examples/guide/06-graphs.md',
                                   'examples/guide/10-pytorch-files.md')
COMING, MANUAL = 'examples/coming-from.md', 'src/api/manual.txt'

# (page, where it begins, where it ends): text in which each sentence has a row
PLACES = [
    (README, '## What it does not do\n', '\n## '), (CONCEPTS, '## Limits\n', '\n## '),
    (GRAPHS, '- **Limits.**', '\n- '), (GRAPHS, '- **Operators without a form in C** include', '\n\n'),
    (FILES, '- **Limits.**', '\n\n'),
    (COMING, 'opdispatch lacks some things', '\n\n'), (COMING, '**Not here.** opdispatch has no quantised', '\n\n'),
    (COMING, '**Not here.** Some things', '\n\n'), (COMING, '**Not here.** opdispatch cannot read ONNX', '\n\n'),
    (COMING, '## What differs from PyTorch on purpose\n', '\n## '),
    (MANUAL, '   WHAT IT IS NOT\n', '\n\n'), (MANUAL, '   LIMITS\n', '\n\n'),
]

# page: [(a sentence, without the marks of Markdown; how it is checked...)]
STATEMENTS = {
    README: [
        ('The library has no quantised or sparse tensors, and reads no ONNX or GGUF files.',
         QUANTISED, 'absent: sparse', 'absent: onnx', 'absent: gguf'),
        ('You can store, cast and move tensors of uint16, uint32, uint64, complex32 and float8, but few operators '
         'compute with them.', 'test: ' + LIMITS + 'stored_dtypes'),
        ('PyTorch has the same limit.', 'test: types/test_dtypes_stored.c operators_are_pytorchs'),
        ('No GPU kernels exist for Fourier transforms, matrix factorisations and special functions: the CPU computes them.',
         'source: src/cuda/losses.cu {"_fft_c2c", opd_cpu_fallback}',
         'source: src/cuda/losses.cu {"linalg_qr", opd_cpu_fallback}',
         'source: src/cuda/losses.cu {"lgamma", opd_cpu_fallback}', 'source: src/cuda/losses.cu {"geqrf", opd_cpu_fallback}'),
        ('Sums, convolutions and matrix products of complex GPU tensors fail.',
         'test: cuda/test_cuda.c complex_numbers_on_the_gpu'),
        ('Runs on several GPUs were only emulated.', NO_MACHINE),
        ('A seed gives the same random numbers on every machine.',
         'test: ' + LIMITS + 'random_numbers'),
        ("PyTorch has other numbers on CPUs.", 'test: ' + LIMITS + 'random_numbers'),
        ('The library does not compile with -ffast-math.', 'check: fast_math'),
        ('The guide lists more limits.', 'why: the list is in this table, too'),
    ],
    CONCEPTS: [
        ('A tensor has at most 64 dimensions and less than 2^62 bytes of memory.',
         'test: ' + LIMITS + 'dimensions_and_bytes'),
        ('An operator has at most 64 arguments and 16 results.', 'test: ' + LIMITS + 'arguments_and_results'),
        ('Operator calls can be nested 400 deep.', 'test: ' + LIMITS + 'nested_calls'),
        ('A call that autograd records has at most 60,000 tensors in its arguments, and at most 60,000 in its results.',
         'test: ' + LIMITS + 'tensors_in_the_lists_of_a_call'),
        ('A tensor is on the CPU, on an NVIDIA GPU, on a device that a program registers, or on the meta device, which '
         'stores sizes but no numbers.', 'test: ' + LIMITS + 'devices'),
        ('Complex tensors (complex64, complex128) work in pointwise operators, reductions, products and convolutions.',
         'test: ' + LIMITS + 'complex_numbers'),
        ("Their gradients follow PyTorch's convention.", 'test: ' + LIMITS + 'complex_numbers'),
        ('Factorisations and eigenvalues of complex matrices are computed as complex128.',
         'source: src/ops/matrix/complex_factors.c complex128'),
        ('Tensors of uint16, uint32, uint64, complex32 and the five float8 dtypes are mainly for storage.',
         'test: ' + LIMITS + 'stored_dtypes'),
        ("You can make, move, view, compare, print and cast such tensors; the results of casts equal PyTorch's, bit for bit.",
         'test: ' + LIMITS + 'stored_dtypes', 'test: types/test_dtypes_stored.c casts_are_pytorchs'),
        ('You can read and write such tensors if the file format has the dtype: .npy has no complex32 and no float8.',
         'test: ' + LIMITS + 'stored_dtypes'),
        ('Few operators compute with these dtypes.', 'test: ' + LIMITS + 'stored_dtypes'),
        ('As in PyTorch, the other operators fail with errors such as "add_cpu" not implemented for \'float8_e4m3fn\'.',
         'test: ' + LIMITS + 'stored_dtypes'),
        ('CUDA tensors of these dtypes are cast on the CPU.', 'why: nothing but the time of a cast tells where it is done'),
        ('There are no GPU kernels for Fourier transforms, matrix factorisations, special functions and complex arithmetic.',
         'source: src/cuda/losses.cu {"_fft_r2c", opd_cpu_fallback}'),
        ('For CUDA tensors, the CPU computes Fourier transforms, matrix factorisations, special functions and pointwise '
         'operators of complex numbers.',
         'test: cuda/test_cuda.c complex_numbers_on_the_gpu'),
        ('Matrix products, reductions, scans and convolutions of complex CUDA tensors fail with an error.',
         'test: cuda/test_cuda.c complex_numbers_on_the_gpu'),
        ('Copies between GPUs, and the use of NCCL, have been tested only in an emulation.', NO_MACHINE),
        ("The library reads model files of PyTorch (.pt, .pt2), safetensors, .npy, .npz and the library's own graphs.",
         'test: files/test_exchange.c files_read_by_numpy_and_safetensors'),
        ('It cannot read ONNX or GGUF files, and has no quantised or sparse tensors.',
         'absent: onnx', 'absent: gguf', QUANTISED, 'absent: sparse'),
        ('Random numbers are counter-based (Philox).', 'test: kernels/test_kernels.c kernels_philox'),
        ('A seed gives the same numbers on every machine and with any number of threads, but not the numbers that '
         "PyTorch's CPU generator gives.", 'test: ' + LIMITS + 'random_numbers'),
        ('In opd_sub(opd_randn(...), opd_randn(...)) the compiler chooses which opd_randn runs first, and gcc and clang '
         'differ.', 'why: a rule of C'),
        ('If the order matters, store both results in variables first.', 'why: advice'),
        ('If backward reaches an operator without a derivative, backward fails with an error that names the operator.',
         'test: ' + LIMITS + 'derivatives_that_are_missing'),
        ('PyTorch only warns.', 'why: of PyTorch'),
        ('opd_autograd_fallback_set selects the behaviour.', 'test: autograd/test_function.c without_a_formula_warn_mode'),
    ],
    GRAPHS: [
        ('Limits.', 'why: a heading'),
        ('The C functions accept only the dtypes and sizes of the example.', 'source: src/api/compiled.h the C function takes '
         'their dtypes, sizes and strides'),
        ('With the options open and open_2, one or two of these sizes become arguments of the functions.',
         'source: src/api/compiled.h a second open size'),
        ('Writing fails if the size of a result depends on the values of a tensor (for example, if a mask is used as an '
         'index), if a script branches on the value of a tensor, or if the graph uses random numbers or autocast regions.',
         'test: ' + LIMITS + 'graphs_without_a_form_in_c',
         'source: src/compiler/nests.c a region of autocast cannot be compiled'),
        ('The error names the operator.', 'test: ' + LIMITS + 'graphs_without_a_form_in_c'),
        ('If the graph contains torch.cond, the code computes both branches.',
         'source: src/api/compiled.h both sides are computed'),
        ('The code adds numbers in another order than the operators of the graph, so rounding errors differ.',
         'source: src/api/compiled.h Sums have another'),
        ('Operators without a form in C include factorisations, Fourier transforms, complex arithmetic and your own '
         'operators.', 'test: ' + LIMITS + 'graphs_without_a_form_in_c'),
        ('Writing a graph that contains such an operator fails, unless you set the option calls.',
         'test: ' + LIMITS + 'graphs_without_a_form_in_c'),
        ('With this option, the written code includes opdispatch.h and calls these operators.',
         'source: src/api/compiled.h includes opdispatch.h, and is linked with a program that contains the implementation of opdispatch.h'),
        ('The options open and open_2 do not work for such a graph.',
         'source: src/api/compiled.h Then no size can be open'),
        ('Copies and views of complex tensors are written as C: the code stores a complex number as a pair of real numbers.',
         'source: src/compiler/nests.c opd_dtype_is_complex(dtype) ? 2 : 1'),
    ],
    FILES: [
        ('Limits.', 'why: a heading'),
        ('A compiled model has no derivative and does not work under vmap.', 'test: aoti/test_aoti.c inputs'),
        ('An exported program (opd_program_load) does not have these limits.',
         'test: programs/test_programs.c programs_under_transforms'),
    ],
    COMING: [
        ('opdispatch lacks some things that these three libraries have.', 'why: the sentences below say which'),
        ('It reads models of PyTorch only (no ONNX, no GGUF), and has no quantised and no sparse tensors.',
         'absent: onnx', 'absent: gguf', QUANTISED, 'absent: sparse'),
        ('The library can run TorchScript archives with quantised layers, but computes these layers in float32.',
         'source: src/api/scripts.h Quantized tensors become float32 tensors'),
        ('The library has about 2,300 operators, counting overloads, in-place and out= forms; PyTorch has more.',
         'operators: 2250 2450'),
        ('Its GPU kernels are for CUDA only, and have been tested and measured on the NVIDIA H100 and H200 only.',
         'absent: GPU of AMD', NO_MACHINE),
        ('Not here.', 'why: a heading'),
        ('Not here. opdispatch has no quantised types and kernels for them, no GGUF, no operator for the rotary embedding of a '
         'language model, and no Metal, Vulkan, SYCL or other backends of ggml.',
         QUANTISED, 'absent: gguf', 'absent: rotary', 'absent: backends of ggml'),
        ('It has no scheduler that divides a graph between devices.', 'absent: scheduler'),
        ('A program can set the number of threads, but not their priority, their cores or their NUMA node.',
         'absent: affinity'),
        ('Some things of libtorch are missing: modules as classes, data loaders, and named, nested, sparse and quantised '
         'tensors.', 'absent: modules as classes', 'absent: data loaders', 'absent: named', 'absent: nested',
         'absent: sparse', QUANTISED),
        ('The only devices are the CPU, CUDA, the meta device, and those that you register.', 'test: ' + LIMITS + 'devices'),
        ('Backward has no threads of its own: it runs on the thread that calls it.', 'absent: threads of backward'),
        ("Random numbers differ from those of PyTorch's CPU generator.", 'test: ' + LIMITS + 'random_numbers'),
        ("Not here. opdispatch cannot read ONNX files, and does not have ONNX's operators.", 'absent: onnx'),
        ("It has no execution providers, and the only GPUs are NVIDIA's.", 'absent: providers', 'absent: GPU of AMD'),
        ('There are no quantised operators, no tools for quantisation, and no packages for mobile phones, C#, Java and '
         'JavaScript.', QUANTISED, 'no file: *.java *.cs *.csproj package.json *.swift *.gradle *.podspec'),
        ('A graph that is not compiled runs its operators one by one: no pass fuses them or changes layouts.',
         'absent: passes'),
        ('If backward reaches an operator without a backward function, backward fails with an error that names the '
         'operator; PyTorch only warns.', 'test: ' + LIMITS + 'derivatives_that_are_missing'),
        ('opd_autograd_fallback_set selects the behaviour.', 'test: autograd/test_function.c without_a_formula_warn_mode'),
        ('If an operator can be differentiated only once, computing a second derivative always fails.',
         'test: ' + LIMITS + 'derivatives_that_are_missing'),
        ('A dual level (of forward mode) is visible only in the thread that opened it.', 'test: ' + LIMITS + 'levels_of_forward_mode'),
        ('An in-place operator does not change a tangent that the autograd graph holds: the written tensor gets a new tangent '
         'instead.', 'test: ' + LIMITS + 'levels_of_forward_mode'),
        ('If autograd handles a call whose kernel returns one of its arguments, the caller gets an alias of this argument: '
         'another tensor with the same memory.', 'test: ' + LIMITS + 'an_argument_that_is_returned'),
        ('x.mul_(x) has a derivative.', 'test: ' + LIMITS + 'a_product_with_itself_in_place'),
        ('If an in-place operator makes saved tensors invalid, these tensors are freed.',
         'test: ' + LIMITS + 'overwritten_tensors_are_freed'),
        ('An in-place or out= form fails if several elements of the written tensor have the same address, even if no stride is '
         '0, or if two out arguments share memory.', 'test: ' + LIMITS + 'writes_where_elements_overlap'),
        ('fill_, copy_ and random operators may write to a tensor with such elements.',
         'test: ' + LIMITS + 'writes_where_elements_overlap'),
        ('If an out argument is also an input, the call either gives the right result or fails, whatever the sizes are.',
         'test: ' + LIMITS + 'an_output_that_is_an_input'),
        ('Error messages list the registered kernels before the fallbacks.',
         'test: ' + LIMITS + 'kernels_are_listed_before_fallbacks'),
        ('Operators may be registered while other threads call operators.',
         'test: dispatch/test_threads.c registration_while_others_call'),
        ('After a kernel is removed, its user pointer is destroyed when no running call uses it.',
         'test: dispatch/test_threads.c registration_while_others_call'),
        ('Every autograd key has a fallback that reports missing backward functions.',
         'test: ' + LIMITS + 'fallbacks_at_autograd_keys'),
        ('At keys for which PyTorch has no such fallback (AutogradNestedTensor, PrivateUse), a program can register '
         'another fallback instead.', 'test: ' + LIMITS + 'fallbacks_at_autograd_keys'),
        ('For complex numbers, 0^0 is 1.', 'test: ' + LIMITS + 'zero_to_zero'),
        ('Operators compute complex64 as complex128 and round the result, except additions, subtractions and '
         'multiplications of contiguous tensors.', 'source: src/ops/pointwise/complex.c Functions compute with complex128'),
        ('For differences in schemas, see the list at >>schema in the header.',
         'source: src/types/schema_lexer.c Deliberate differences from PyTorch'),
        ("Random numbers are counter-based (Philox), and differ from those of PyTorch's CPU generator.",
         'test: ' + LIMITS + 'random_numbers'),
        ('Dividing the smallest int64 or int32 by -1 with a rounding mode fails with an error.',
         'test: ' + LIMITS + 'dividing_the_smallest_integer'),
        ('The padding row of an embedding has no tangent, just as it has no gradient.',
         'test: ' + LIMITS + 'the_padding_row_of_an_embedding'),
        ('Keys that have no meaning in C do not exist: Python, PythonTLSSnapshot, PythonDispatcher, Named, DeferredInit, '
         'Batched, VmapMode and the testing wrappers.', 'test: ' + LIMITS + 'keys_that_are_not_here'),
        ('If autocast casts a weight while grad mode is off and caches the result, a later call can still compute a gradient '
         'through this cached cast.', 'test: ' + LIMITS + 'cached_casts'),
        ('A weight that was overwritten is cast again.', 'test: ' + LIMITS + 'cached_casts'),
        ('The autocast keys of all devices are excluded together, not separately.',
         'source: src/api/keys.h The autocast keys are one functionality with a backend'),
    ],
    MANUAL: [
        ("It needs no Python, reads only PyTorch's model formats, and has no network code: processes communicate by MPI or by "
         'functions that a program registers (>>api:collectives).', 'absent: Python', 'absent: onnx', 'absent: gguf',
         'absent: network'),
        ('GPU kernels are in opdispatch_cuda.cu, and only the CPU computes with complex numbers. uint16, uint32, uint64, '
         'complex32 and floats of eight bits are made, moved, cast, viewed, compared, read and written.',
         'source: opdispatch_cuda.cu GPU kernels for opdispatch', 'test: ' + LIMITS + 'stored_dtypes',
         'test: cuda/test_cuda.c complex_numbers_on_the_gpu'),
        ('As in PyTorch, few operators compute with them (>>stored_dtypes has a list).',
         'test: ' + LIMITS + 'stored_dtypes'),
        ('64 dimensions, 64 arguments, 16 results, 400 nested calls, 60,000 tensors in the lists of a recorded call, 128 '
         'devices of a kind, under 2^62 bytes in a tensor.', 'test: ' + LIMITS + 'dimensions_and_bytes',
         'test: ' + LIMITS + 'arguments_and_results', 'test: ' + LIMITS + 'nested_calls',
         'test: ' + LIMITS + 'tensors_in_the_lists_of_a_call'),
        ("Backward works on the caller's thread and its current streams.", 'absent: threads of backward'),
    ],
}


def read(name):
    with open(os.path.join(ROOT, name), encoding='utf-8') as f:
        return f.read()


#-- sentences ----------------------------------------------------------------------------------------------------------

def sentences(text):
    """Returns the sentences of a Markdown text, without its marks."""
    text = re.sub(r'\[([^\]]*)\]\([^)]*\)', r'\1', text)
    found = []
    for part in re.split(r'\n\s*\n|\n(?=- )', text):
        part = ' '.join(part.replace('**', '').replace('`', '').split())
        part = re.sub(r'^- ', '', part)
        found += [s for s in re.split(r"(?<=[.:])(?:\)|')? (?=[A-Z]|opd_\w+ [a-z]|x\.|fill_)(?<!: )", part) if s]
    return found


def place(text, begin, end):
    if begin not in text:
        return None
    at = text.index(begin) + (len(begin) if begin.endswith('\n') else 0)
    stop = text.find(end, at + 1)
    return text[at:stop if stop >= 0 else len(text)]


def wrong_statements(pages, names, cases, checks):
    """Returns messages about wrong rows.  pages is {name: text}, names are the names in the library, cases is {test
    file: names}."""
    wrong, used = [], set()
    for page, begin, end in PLACES:
        text = place(pages[page], begin, end)
        if text is None:
            wrong.append('%s has no "%s"' % (page, begin.strip()))
            continue
        rows = {sentence for sentence, *_ in STATEMENTS[page]}
        for sentence in sentences(text):
            used.add((page, sentence))
            if sentence not in rows:
                wrong.append('%s: no row in tests/claims.py says how this is checked: %s' % (page, sentence))
    for page, rows in STATEMENTS.items():
        for sentence, *ways in rows:
            if (page, sentence) not in used:
                wrong.append('%s no longer says: %s' % (page, sentence))
            for way in ways:
                fault = wrong_way(way, names, cases, checks)
                if fault:
                    wrong.append('%s: "%s": %s' % (page, sentence, fault))
    return wrong


def wrong_way(way, names, cases, checks):
    kind, rest = way.split(': ', 1)
    if kind == 'why':
        return None
    if kind == 'absent':
        there = sorted(name for name in names if re.search(ABSENT[rest][0], name))
        return 'these are there: ' + ' '.join(there[:4]) if there else None
    if kind == 'test':
        file, case = rest.split()
        return None if case in cases.get(file, ()) else 'tests/%s has no case %s' % (file, case)
    if kind == 'check':
        return None if rest in checks else 'tests/check_header.sh has no check %s' % rest
    if kind == 'source':
        file, text = rest.split(' ', 1)
        return None if text in ' '.join(read(file).split()) else '%s has no "%s"' % (file, text)
    if kind == 'operators':
        count = len([name for name in names if '::' in name])
        least, most = rest.split()
        return None if int(least) <= count <= int(most) else 'there are %d' % count
    if kind == 'no file':
        there = [name for _, _, files in os.walk(ROOT) for name in files for one in rest.split() if fnmatch.fnmatch(name, one)]
        return 'there is ' + there[0] if there else None
    return 'no such way: ' + way


def test_cases():
    cases = {}
    for folder in os.listdir(os.path.join(ROOT, 'tests')):
        path = os.path.join(ROOT, 'tests', folder)
        for name in os.listdir(path) if os.path.isdir(path) else ():
            if name.startswith('test_'):
                with open(os.path.join(path, name), encoding='utf-8') as f:
                    cases[folder + '/' + name] = set(re.findall(r'^TEST(?:_KEEPS)?\((\w+)\)', f.read(), re.M))
    return cases


def library_names(args):
    """Returns the operators that the library lists, and the names that the header declares."""
    program = '''#include "opdispatch.h"
#include <stdio.h>
int main(void) {
    (void)opd_find_quiet("c10d::allreduce_"); (void)opd_find_quiet("torchvision::nms");
    for (opd_op *op = opd_op_next(NULL); op; op = opd_op_next(op)) { printf("%s\\n", opd_op_name(op)); }
    return opd_finish();
}
'''
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'names.c')
        with open(path, 'w') as f:
            f.write(('' if args.object else '#define OPDISPATCH_IMPLEMENTATION\n') + program)
        subprocess.run(args.cc.split() + ['-O0', '-w', '-I' + ROOT, path, '-o', os.path.join(folder, 'names')] +
                       ([os.path.abspath(args.object)] if args.object else []) + ['-lm', '-lpthread', '-ldl'], check=True)
        said = subprocess.run([os.path.join(folder, 'names')], check=True, stdout=subprocess.PIPE).stdout.decode()
    header = read('opdispatch.h')
    public = header[:header.index('Stop here if you are only interested')]
    return set(said.split()) | set(re.findall(r'\b(?:opd|OPD)_\w+', public[public.index('*/'):]))


#-- figures ------------------------------------------------------------------------------------------------------------

def table_rows(name, heads=True):
    """Returns a list of the cells of each row of the tables on a page."""
    text = read('bench/tables/' + name)
    if not heads:
        text = re.sub(r'^\| .*\n(?=\|---)', '', text, flags=re.M)
    lines = [line for line in text.split('\n') if line.startswith('| ')]
    return [[cell.strip() for cell in line.strip('|').split('|')] for line in lines]


def cell(page, row, column):
    """Returns the number in the first row of a page that has this label."""
    found = [cells for cells in table_rows(page) if cells[0].replace('&nbsp; ', '') == row]
    if not found:
        sys.exit('bench/tables/%s has no row "%s"' % (page, row))
    return float(re.match(r'[\d,.]+', found[0][column]).group().replace(',', ''))


def figures():
    """Returns {page: texts with figures that the page must contain}."""
    kernels = [float(cells[5]) for cells in table_rows('kernels.md') if len(cells) == 7 and re.match(r'\d', cells[5])]
    gpu = [float(cells[-1]) for cells in table_rows('gpu.md') if cells[0].startswith('`') and len(cells) == 6]
    shapes = [float(re.search(r'\(([\d.]+)\)', c).group(1)) for cells in table_rows('convolutions.md')
              if len(cells) == 4 and '(' in cells[1] for c in cells[1:]]
    within = lambda ratios: sum(ratio <= 1.05 for ratio in ratios)
    mean = lambda ratios: math.exp(sum(math.log(ratio) for ratio in ratios) / len(ratios))
    compiled = cell('compiling.md', 'gcc -O2', 1)
    lean = [cell('compiling.md', "%s -O2, the README's first program with OPD_LEAN" % cc, 1) for cc in ('gcc', 'clang')]
    code = [cell('compiling.md', row, 3) * 1024 / 1e6 for row in ("gcc -O2, the README's first program with OPD_LEAN", 'gcc -O2')]
    return {
        README: [
            'takes %.0f s and 410 MB of memory' % lean[0], 'the program has %.1f MB of code. Compiling the whole' % code[0],
            'takes %.0f s and 870 MB, and gives %.1f MB of code' % (compiled, code[1]),
            'takes %.0f ns (libtorch 1.13: %.0f ns)' % (cell('calls.md', 'add of tensors that do not require grad', 1),
                                                       cell('calls.md', 'add of tensors that do not require grad', 3)),
            'takes %.0f ns (libtorch: %s ns)' % (cell('autograd.md', '1000 backward', 1),
                                                 format(int(cell('autograd.md', '1000 backward', 3)), ',')),
            '%.0f%% of %d CPU kernels' % (100 * within(kernels) / len(kernels), len(kernels)),
            'GPU, %d of %d operators take at most 1.05' % (within(gpu), len(gpu))],
        'bench/README.md': [
            'CPU kernels, %d rows | PyTorch 2.15 | mean %.2f, worst %.2f' % (len(kernels), mean(kernels), max(kernels)),
            'operators on an H200, %d rows | PyTorch 2.11 | mean %.2f, worst %.2f' % (len(gpu), mean(gpu), max(gpu)),
            'In %d of %d rows, opdispatch takes at most 1.05' % (within(gpu), len(gpu)),
            'at most 1.05 in %d of %d measurements' % (within(shapes), len(shapes)),
            'no ratio: %.1f s' % compiled,
            '%.2f to %.2f | compiling' % (lean[1] / cell('compiling.md', 'clang -O2', 1), lean[0] / compiled)],
        'bench/tables/kernels.md': ['%.0f%% of the %d rows' % (100 * within(kernels) / len(kernels), len(kernels)),
                                    'mean of the ratios is %.2f' % mean(kernels)],
        'bench/tables/gpu.md': ['In %d of %d measurements, opdispatch takes at most 1.05' % (within(gpu), len(gpu)),
                                'mean of the ratios is %.2f' % mean(gpu)],
    }


def wrong_figures(pages):
    wrong = []
    for page, texts in figures().items():
        plain = re.sub(r'\[([^\]]*)\]\([^)]*\)', r'\1', pages.get(page) or read(page))
        plain = ' '.join(plain.replace('**', '').replace('`', '').split())
        wrong += ['%s does not say "%s", which bench/tables give' % (page, text) for text in texts if text not in plain]
    return wrong


#-- labels of tables -----------------------------------------------------------------------------------------------------

def literals(source):
    """Returns a pattern for each string in a C file; %d matches a number."""
    text = re.sub(r'"\s*\n?\s*"', '', read(source))
    found = set(re.findall(r'"((?:[^"\\]|\\.)*)"', text))
    plain = [one for one in found if len(re.sub(r'%\w+|\W', '', one)) > 1]
    return re.compile('|'.join(re.sub(r'%(lld|d)', r'\\d+', re.sub(r'%s', r'[\\w, -]+', re.escape(one.strip()).replace('\\%', '%')))
                               for one in plain))


# page: (the programs that print its labels, the cells that are labels)
LABELS = {'calls.md': ('bench/dispatch.c', [0]), 'autograd.md': ('bench/dispatch.c', [0]),
          'vmap-and-optimizers.md': ('bench/dispatch.c', [0]), 'compiling.md': ('bench/dispatch.c', [0]),
          'gpu.md': ('bench/cuda.c', [1]), 'linear-algebra.md': ('bench/linalg.c', [0, 1])}


def wrong_labels():
    wrong = []
    for page, (source, columns) in LABELS.items():
        pattern = literals(source)
        for cells in table_rows(page, source == 'bench/dispatch.c'):
            for column in columns:
                label = re.sub(r'^((gcc|g\+\+|clang),? |\d+ (?=(forward|backward|free)\b))', '', cells[column])
                label = re.sub(r'^&nbsp; |, w requires grad$', '', label)
                if source != 'bench/dispatch.c':      # other programs do not print Markdown
                    label = label.replace('`', '')
                if not pattern.fullmatch(label):
                    wrong.append('bench/tables/%s: %s prints no "%s"' % (page, source, label))
    return wrong


#-- lists that must be complete ----------------------------------------------------------------------------------------

def wrong_lists():
    wrong, source = [], ''
    for folder, _, files in os.walk(os.path.join(ROOT, 'src')):
        source += ''.join(read(os.path.join(folder, name)) for name in files if name.endswith(('.c', '.h', '.cu')))
    table = read('examples/guide/12-debugging.md')
    table = table[table.index('## Environment variables'):table.index('## The program')]
    for name in sorted(set(re.findall(r'getenv\("(\w+)"\)', source + read('examples/mpi_group.c'))) - {'HOME', 'PATH', 'TMPDIR'}):
        if '`%s`' % name not in table:
            wrong.append('the table of environment variables has no %s' % name)
    struct = read('src/api/dispatcher.h')
    struct = struct[struct.index('typedef struct opd_op_desc {'):struct.index('} opd_op_desc;')]
    struct = re.sub(r'/\*.*?\*/', '', struct, flags=re.S)
    table = read('examples/guide/03-operators.md')
    table = table[table.index('| field | meaning |'):table.index('As in PyTorch, you can also')]
    for name in re.findall(r'(\w+)(?:\)\([^)]*\))?;', struct):
        if '`%s`' % name not in table:
            wrong.append('the table of fields of opd_op_desc has no %s' % name)
    places = re.search(r'calls_up\.py" --most (\d+)', read('tests/check_header.sh')).group(1)
    if 'In %s place, a lower layer' % places not in ' '.join(read('src/README.md').split()):
        wrong.append('src/README.md does not say that lower layers call higher ones in %s place' % places)
    manual = read(MANUAL)
    for name in sorted(set(re.findall(r'\bOPD_NO_[A-Z_]+', read('src/files.txt') + read('src/base/platform.h')))):
        if name not in manual and not re.search(r'\b%s\b' % name.replace('OPD_NO_OP_', ''), manual):
            wrong.append('CONFIGURATION of the manual has no %s' % name)
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--cc', default=os.environ.get('CC', 'cc'))
    parser.add_argument('--object')
    args = parser.parse_args()
    pages = {page: read(page) for page in STATEMENTS}
    names, cases = library_names(args), test_cases()
    checks = set(re.findall(r'^check_(\w+)\(\)', read('tests/check_header.sh'), re.M))
    wrong = wrong_statements(pages, names, cases, checks) + wrong_figures(pages) + wrong_labels() + wrong_lists()
    if not wrong:                                 # what is changed is found
        for word, (pattern, name) in ABSENT.items():
            if not re.search(pattern, name) or not wrong_statements(pages, names | {name}, cases, checks):
                wrong.append('the row "%s" would not find %s' % (word, name))
        more = dict(pages, **{COMING: pages[COMING].replace('**Not here.** Some', '**Not here.** There is no moon. Some')})
        less = dict(pages, **{README: pages[README].replace('Runs on several GPUs were only emulated.', '')})
        none = dict(cases, **{'product/test_limits.c': set()})
        faster = dict(pages, **{README: pages[README].replace('takes 42 ns', 'takes 4 ns')})
        for found in (wrong_statements(more, names, cases, checks), wrong_statements(less, names, cases, checks),
                      wrong_statements(pages, names, none, checks), wrong_figures(faster)):
            if not found:
                wrong.append('a page or test that was changed so that it is wrong is let through')
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
