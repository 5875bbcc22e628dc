#!/usr/bin/env python3
"""Checks what can be read: the layout and the names of opdispatch.h, and what the documents say of the library.

usage: python3 tests/texts.py [NAME...]    runs the checks whose names contain one of the NAMEs, or all
       python3 tests/texts.py --list       prints their names
       python3 tests/texts.py --write      writes the tables of platforms and of the parts of .ci/run into the documents

Prints "ok NAME", "FAIL NAME: why" or "skip NAME: why" for each check, as tests/check_header.sh does, which runs this
script.  It ends with status 1 if a check fails.
"""
import argparse
import collections
import glob
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, 'src'))
import join                                                                                          # noqa: E402
README, GUIDE, MANUAL, TESTS = 'README.md', 'examples/guide/', 'src/api/manual.txt', 'tests/README.md'
INSTALL, COMING = GUIDE + '01-install.md', 'examples/coming-from.md'

# Checks that scripts of their own make: their commands.
SCRIPTS = {'calls_up': 'tests/calls_up.py --most 1', 'knots': 'tests/knots.py --most 3 --files 13', 'tested': 'tests/tested.py',
           'code_switch': 'tests/code_switch.py', 'dialect': 'tests/dialect.py', 'reference': 'src/reference.py --check',
           'promises': 'tests/promises.py', 'same_bits': 'tests/same_bits.py --check',
           'argument_order': 'tests/argument_order.py'}
SHORT_NAMES = 10          # at most this percentage of all names have one letter


class Skip(Exception):
    pass


def read(name):
    with open(os.path.join(ROOT, name), encoding='utf-8') as f:
        return f.read()


def files(*patterns):
    """Returns the names of the files of the repository that match the patterns."""
    return sorted(os.path.relpath(path, ROOT) for one in patterns for path in glob.glob(os.path.join(ROOT, one), recursive=True))


def header():
    return read('opdispatch.h')


def said_by(command):
    """Runs a script of the repository.  Returns the lines that it prints, or a line if it fails without a word."""
    done = subprocess.run([sys.executable] + command.split(), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said = done.stdout.decode(errors='replace').splitlines()
    if said and said[0].startswith('SKIP: '):
        raise Skip(said[0][6:])
    return said or (['status %d from %s' % (done.returncode, command)] if done.returncode else [])


#-- the header ---------------------------------------------------------------------------------------------------------

def first_comment(text):
    return text[:text.index('*/')]


def contents():
    """The contents list in the first comment has the anchors of all banners, and the comment is not too long.  The
    anchor of each "see >>x" exists."""
    text = header()
    anchors = re.findall(r'^//-* *(>>[\w:]*)', text, re.M)
    listed = re.findall(r'>>[\w:]*', first_comment(text).split('CONTENTS')[1])
    for name, count in ((collections.Counter(listed) - collections.Counter(anchors)).items()):
        yield 'listed, but no such banner: ' + name
    for name in collections.Counter(anchors) - collections.Counter(listed):
        yield 'banner not listed: ' + name
    lines = first_comment(text).count('\n') + 1
    if lines > 150:
        yield 'the first comment has %d lines, at most 150 may be' % lines
    for name in sorted({name.rstrip(':') for name in re.findall(r'see (>>[\w:]+)', text)} - set(anchors)):
        yield 'leads nowhere: see ' + name


def rooms():
    """No room is too long to understand.  Text that is compiled several times counts once.  The typed functions do not
    count, because a script writes them, and nobody has to read them."""
    name, at = '', 0
    for number, line in enumerate(once().split('\n') + ['//  >>end'], 1):
        if line.startswith('//  >>'):
            if number - at > 2200 and name != '>>wrappers':
                yield 'room %s has %d lines' % (name, number - at)
            name, at = line.split()[1], number


def once():
    """Returns the header with the text of each file only once."""
    with tempfile.TemporaryDirectory() as folder:
        wrong = said_by('src/join.py --once %s/once.h' % folder)
        if wrong:
            sys.exit('\n'.join(wrong))
        with open(folder + '/once.h', encoding='utf-8') as f:
            return f.read()


def modes():
    """A region with its own compile mode ends in the room in which it begins, and in each branch of an #if; otherwise
    the mode would apply to all following code.  Code that is not optimised has no loops over elements."""
    opened, before, regions, loops, cold = 0, [], 0, 0, False
    for number, line in enumerate(header().split('\n'), 1):
        word = re.match(r' *(?:# *(if|el|endif)|OPDI_(COLD|ONCE|LOOPS)_(BEGIN|END)|//  (>>\S+))', line)
        if not word:
            continue
        if word.group(1) == 'if':
            before.append(opened)
        elif word.group(1) == 'el':
            opened = before[-1]
        elif word.group(1):
            before.pop()
        elif word.group(4):
            if opened and line.startswith('//'):
                yield 'line %d: %d regions from above go on in room %s' % (number, opened, word.group(4))
        elif word.group(2) != 'LOOPS':
            cold = word.group(3) == 'BEGIN'
        elif word.group(3) == 'BEGIN':
            loops += 1
            if cold:
                yield 'line %d: loops in a cold region' % number
        if word.group(3):
            opened += 1 if word.group(3) == 'BEGIN' else -1
            regions += word.group(3) == 'BEGIN'
    if regions < 200 or loops < 10:
        yield 'only %d regions, %d of loops' % (regions, loops)


def includes():
    """The declarations include only headers that every compiler has."""
    text = header()
    public = text[text.index('*/'):text.index('#if defined(OPDISPATCH_IMPLEMENTATION) && !defined(OPDI_IMPLEMENTED)')]
    for name in re.findall(r'^ *# *include *[<"]([^>"]*)[>"]', public, re.M):
        if name not in ('stdint.h', 'stddef.h', 'stdbool.h', 'initializer_list', 'new'):
            yield 'declarations include ' + name


def macro_names():
    """Each macro has the prefix."""
    for name in sorted(set(re.findall(r'^ *# *define *(\w*)', header(), re.M))):
        if not re.match('OPD|opd', name):
            yield 'macro without the prefix: ' + name


def function_length():
    """No function has more than 100 lines."""
    if not shutil.which('ctags') or 'Universal' not in subprocess.getoutput('ctags --version'):
        raise Skip('no universal-ctags')
    said = subprocess.run(['ctags', '--languages=C++', '--langmap=C++:+.h', '--kinds-C++=f', '-x', '--_xformat=%N %n %{end}',
                           os.path.join(ROOT, 'opdispatch.h')], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    rows = [row.split() for row in said.stdout.decode(errors='replace').splitlines()]
    for row in rows:
        if row[-1].isdigit() and int(row[-1]) - int(row[-2]) >= 100:
            yield '%s has %d lines' % (row[0], int(row[-1]) - int(row[-2]) + 1)
    if len(rows) < 3000:
        yield 'ctags saw only %d functions' % len(rows)


def macro_functions():
    """No macro defines a function with more than ten lines between its braces, because a debugger shows it as one
    line."""
    blocks, line = 0, 1
    for macro in re.finditer(r'^ *# *define *(\w+)((?:[^\n]*\\\n)*[^\n]*)', header(), re.M):
        text = re.sub(r'/\*[^*\n]*\*/|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'', '', macro.group(2))
        depth = begin = number = 0
        for mark in re.findall(r'[{}\n]', text):
            number += mark == '\n'
            if mark == '{':
                begin = begin if depth else number
                depth += 1
            elif mark == '}' and depth:
                depth -= 1
                blocks += not depth
                if not depth and number - begin - 1 > 10:
                    yield '%s has a function of %d lines' % (macro.group(1), number - begin - 1)
        if depth:
            yield '%s has a brace that nothing closes' % macro.group(1)
    if blocks < 20:
        yield 'only %d blocks of macros seen' % blocks


def line_length():
    """No line of the header and of the CUDA file is longer than 120 columns, except for lines with a URL."""
    for name in ('opdispatch.h', 'opdispatch_cuda.cu'):
        for number, line in enumerate(read(name).split('\n'), 1):
            if len(line) > 120 and not re.search('https?://', line):
                yield '%s:%d has %d columns' % (name, number, len(line))
    if read(README).count('\n') > 160:
        yield 'README.md has %d lines, at most 160' % read(README).count('\n')


def short_names():
    """Few names have one letter."""
    with tempfile.NamedTemporaryFile('w', suffix='.h', encoding='utf-8') as file:
        file.write(once())
        file.flush()
        yield from said_by('tests/dialect.py --names %d %s' % (SHORT_NAMES, file.name))


def lean_names():
    """Each look-up of a built-in operator by its name or number also names its card, so that a program with OPD_LEAN
    keeps it."""
    looked_up = re.compile(r'\b(opd_find|opd_find_quiet|OPD_OP|opd_op_cached|opdi_op_typed|opdi_op_look_up)\([^;]*"aten::|'
                           r'\bopd_op_builtin\([^;]*\bOPD_OP_|\bopdi_second_card\(op, OPD_OP_')
    for name in files('src/**/*.[ch]'):
        if not name.startswith(('src/api/', 'src/aoti/')):
            for number, line in enumerate(read(name).split('\n'), 1):
                if looked_up.search(line) and 'OPDI_NAME(' not in line:
                    yield '%s:%d: %s   <- name the card by OPDI_NAME or OPDI_BY_NUMBER, see src/dispatch/lean.h' % (
                        name, number, line.strip())


def fork_locks():
    """A process that forks takes each lock of the library before, so that no lock stays taken in the child."""
    taken = read('src/process/fork.c')
    for name in files('src/**/*.c'):
        for lock in re.findall(r'^(?:OPDI_INTERNAL|static) opdi_mutex (\w+) = OPDI_MUTEX_INIT', read(name), re.M):
            if not re.search(r'&%s\b' % lock, taken):
                yield '%s: %s is not in opdi_fork_locks of src/process/fork.c' % (name, lock)


# Types of ATen, classes and modules of Python, and values of Python that C does not have.  The folders read or run
# texts of Python, and may use its words.
PYTHON_WORDS = re.compile(r'\b(functorch|version_counter|Variable|kwargs|tuples?|dicts?|None|autograd\.Function|'
                          r'Long|Half|Double|Float|Short|Byte|ComplexFloat|BFloat16)\b|\btorch\.')
OF_PYTHON = ('script', 'graphs', 'programs', 'files', 'aoti')
ERROR = re.compile(r'\b(?:opd_fail|opdi_fail_more|opd_warn|opd_check|OPD_CHECK|opdi_inside_transform)\s*\(')
STRING_OR_MARK = re.compile(r'"((?:\\.|[^"\\])*)"|([()])')


def error_words():
    """Error messages do not have words that only programmers of Python know."""
    for name in files('src/**/*.[ch]', 'src/**/*.cu'):
        text = read(name) if name.split('/')[1] not in OF_PYTHON else ''
        for call in ERROR.finditer(text):
            depth, message = 1, ''
            for part in STRING_OR_MARK.finditer(text, call.end()):
                depth += {'(': 1, ')': -1}.get(part.group(2), 0)
                message += part.group(1) or ''
                if not depth:
                    break
            found = PYTHON_WORDS.search(message)
            if found:
                yield '%s:%d: "%s" in: %s' % (name, text.count('\n', 0, call.start()) + 1, found.group(), message)


#-- what the documents say ---------------------------------------------------------------------------------------------

# Pages, and what they say about limits and differences from PyTorch.  After the bar is the test case that tries it, or
# a file of the source with the text that makes it true.  {NAME} is the value of a macro of src/.
CLAIMS = '''
README.md
uint16, uint32, uint64, complex32 and float8, but few operators compute with them | product/test_limits.c stored_dtypes
PyTorch has the same limit | types/test_dtypes_stored.c operators_are_pytorchs
Fourier transforms need cuFFT | src/cuda/fft.cu: "libcufft.so.12"
matrix factorisations need cuSOLVER | src/cuda/solver.cu: "libcusolver.so.12"
A seed gives the same random numbers on every machine | product/test_limits.c random_numbers
PyTorch has other numbers on CPUs | product/test_limits.c random_numbers
does not compile with -ffast-math | tests/check_header.sh: check_fast_math()
examples/guide/02-concepts.md
at most {OPD_MAX_DIMS} dimensions and less than 2^62 bytes | product/test_limits.c dimensions_and_bytes
at most {OPD_MAX_ARGS} arguments and {OPDI_MAX_RETURNS} results | product/test_limits.c arguments_and_results
can be nested {OPDI_MAX_DEPTH} deep | product/test_limits.c nested_calls
at most {OPDI_MAX_EDGES} tensors in its arguments | product/test_limits.c tensors_in_the_lists_of_a_call
at most {OPDI_MAX_EDGES} in its results | product/test_limits.c tensors_in_the_lists_of_a_call
on the meta device, which stores sizes but no numbers | product/test_limits.c devices
work in pointwise operators, reductions, products and convolutions | product/test_limits.c complex_numbers
are computed as complex128 | src/ops/matrix/complex_factors.c: complex128
five float8 dtypes are mainly for storage | product/test_limits.c stored_dtypes
results of casts equal PyTorch's, bit for bit | types/test_dtypes_stored.c casts_are_pytorchs
.npy has no complex32 and no float8 | product/test_limits.c stored_dtypes
"add_cpu" not implemented for 'float8_e4m3fn' | product/test_limits.c stored_dtypes
matrix factorisations if there is no cuSOLVER | cuda/solver_tests.h solvers_of_all_kinds
and Fourier transforms if there is no cuFFT | cuda/texts_tests.h fft_of_all_kinds
safetensors, GGUF, .npy, .npz and the library's own graphs | files/test_exchange.c files_read_by_numpy_and_safetensors
Random numbers are counter-based (Philox) | kernels/test_kernels.c kernels_philox
the same numbers on every machine and with any number of threads | product/test_limits.c random_numbers
backward fails with an error that names the operator | product/test_limits.c derivatives_that_are_missing
opd_autograd_fallback_set selects the behaviour | autograd/test_function.c without_a_formula_warn_mode
examples/guide/06-graphs.md
accept only the dtypes and sizes of the example | src/api/compiled.h: the C function takes their dtypes, sizes and strides
options open and open_2 | src/api/compiled.h: a second open size
size of a result depends on the values of a tensor | product/test_limits.c graphs_without_a_form_in_c
or autocast regions | src/compiler/nests.c: a region of autocast cannot be compiled
10 and 1,000 steps give the same code | compiler/test_control.c text_for_any_number_of_steps
only the side that is taken is computed | compiler/test_control.c errors_of_one_side
both sides of a condition are computed | src/api/compiled.h: both sides of a condition are computed
The code adds numbers in another order | src/api/compiled.h: Sums have another
Operators without a form in C include factorisations | product/test_limits.c graphs_without_a_form_in_c
the written code includes opdispatch.h | src/api/compiled.h: includes opdispatch.h, and is linked with a program that contains
options open and open_2 do not work for such a graph | src/api/compiled.h: Then no size can be open
stores a complex number as a pair of real numbers | src/compiler/nests.c: opd_dtype_is_complex(dtype) ? 2 : 1
examples/guide/10-pytorch-files.md
A compiled model has no derivative and does not work under vmap | aoti/test_aoti.c inputs
(opd_program_load) does not have these limits | programs/test_programs.c programs_under_transforms
examples/coming-from.md
which it computes in float32 | src/api/scripts.h: Quantized tensors become float32 tensors
The only devices are the CPU, CUDA, the meta device | product/test_limits.c devices
differ from those of PyTorch's CPU generator | product/test_limits.c random_numbers
examples/guide/which-pytorch.md
backward fails with an error that names the operator; PyTorch only warns | product/test_limits.c derivatives_that_are_missing
opd_autograd_fallback_set selects the behaviour | autograd/test_function.c without_a_formula_warn_mode
computing a second derivative always fails | product/test_limits.c derivatives_that_are_missing
is visible only in the thread that opened it | product/test_limits.c levels_of_forward_mode
the written tensor gets a new tangent instead | product/test_limits.c levels_of_forward_mode
the caller gets an alias of this argument | product/test_limits.c an_argument_that_is_returned
x.mul_(x) has a derivative | product/test_limits.c a_product_with_itself_in_place
makes saved tensors invalid, these tensors are freed | product/test_limits.c overwritten_tensors_are_freed
several elements of the written tensor have the same address | product/test_limits.c writes_where_elements_overlap
If an out argument is also an input | product/test_limits.c an_output_that_is_an_input
list the registered kernels before the fallbacks | product/test_limits.c kernels_are_listed_before_fallbacks
registered while other threads call operators | dispatch/test_threads.c registration_while_others_call
a fallback that reports missing backward functions | product/test_limits.c fallbacks_at_autograd_keys
For complex numbers, 0^0 is 1 | product/test_limits.c zero_to_zero
compute complex64 as complex128 and round the result | src/ops/pointwise/complex.c: Functions compute with complex128
see the list at >>schema in the header | src/types/schema_lexer.c: Deliberate differences from PyTorch
int64 or int32 by -1 with a rounding mode fails | product/test_limits.c dividing_the_smallest_integer
the tangent of an embedding's padding row is zero | product/test_limits.c the_padding_row_of_an_embedding
Keys that have no meaning in C do not exist | product/test_limits.c keys_that_are_not_here
If a weight was overwritten in an autocast region, it is cast again | product/test_limits.c cached_casts
excluded together, not separately | src/api/keys.h: The autocast keys are one functionality with a backend
src/api/manual.txt
GPU kernels are in opdispatch_cuda.cu | opdispatch_cuda.cu: GPU kernels for opdispatch
few operators compute with uint16, uint32, uint64, complex32 and | product/test_limits.c stored_dtypes
{OPD_MAX_DIMS} dimensions, {OPD_MAX_ARGS} arguments, {OPDI_MAX_RETURNS} results | product/test_limits.c dimensions_and_bytes
{OPDI_MAX_DEPTH} nested calls | product/test_limits.c nested_calls
{OPDI_MAX_EDGES} tensors in the lists of a recorded call | product/test_limits.c tensors_in_the_lists_of_a_call
128 devices of a kind | src/types/types.h: #define OPDI_MAX_DEVICE_INDEX 127
'''


def plain(name):
    """Returns the text of a page in one line, without the marks of Markdown."""
    text = re.sub(r'\[([^\]]*)\]\([^)]*\)', r'\1', read(name))
    return ' '.join(text.replace('**', '').replace('`', '').split())


def documents_claims():
    """The pages say what tests try, figures are those of bench/tables, and lists are complete."""
    yield from wrong_claims(CLAIMS)
    yield from wrong_figures()
    yield from wrong_lists()


def wrong_claims(claims):
    macros = {name: format(int(value), ',') for file in files('src/**/*.[ch]')
              for name, value in re.findall(r'^#define (OPDI?_MAX_\w+) (\d+)\b', read(file), re.M)}
    page = text = ''
    for line in claims.strip().split('\n'):
        if ' | ' not in line:
            page, text = line, plain(line)
            continue
        said, way = line.split(' | ')
        said = re.sub(r'\{(\w+)\}', lambda m: macros.get(m.group(1), m.group()), said)
        file, about = way.split(' ', 1)
        if said not in text:
            yield '%s does not say "%s", which tests/texts.py checks' % (page, said)
        if file.endswith(':'):
            if about not in ' '.join(read(file[:-1]).split()):
                yield '%s: "%s": %s has no "%s"' % (page, said, file[:-1], about)
        elif not re.search(r'^TEST(_KEEPS)?\(%s\)' % about, read('tests/' + file), re.M):
            yield '%s: "%s": tests/%s has no case %s' % (page, said, file, about)


def rows_of(name):
    """Returns the cells of each row of the tables on a page of bench/tables."""
    lines = [line for line in read('bench/tables/' + name).split('\n') if line.startswith('| ')]
    return [[cell.strip() for cell in line.strip('|').split('|')] for line in lines]


def cell(page, row, column):
    """Returns the number in the first row of a page that has this label."""
    found = next(cells for cells in rows_of(page) if cells[0].replace('&nbsp; ', '') == row)
    return float(re.match(r'[\d,.]+', found[column]).group().replace(',', ''))


def wrong_figures():
    kernels = [float(cells[5]) for cells in rows_of('kernels.md') if len(cells) == 7 and re.match(r'\d', cells[5])]
    gpu = [float(cells[-1]) for cells in rows_of('gpu.md') if cells[0].startswith('`') and len(cells) == 6]
    shapes = [float(re.search(r'\(([\d.]+)\)', c).group(1)) for cells in rows_of('convolutions.md')
              if len(cells) == 4 and '(' in cells[1] for c in cells[1:]]
    whole, lean = 'gcc -O2', "%s -O2, the README's first program with OPD_LEAN"
    seconds, code = lambda row: cell('compiling.md', row, 1), lambda row: cell('compiling.md', row, 3) * 1024 / 1e6
    add = [cell('calls.md', 'add of tensors that do not require grad', column) for column in (1, 3)]
    backward = [cell('autograd.md', '1000 backward', column) for column in (1, 3)]
    within = lambda ratios: sum(ratio <= 1.05 for ratio in ratios)
    mean = lambda ratios: math.exp(sum(math.log(ratio) for ratio in ratios) / len(ratios))
    operators = sum(1 + bool(one.inplace) + ('op->out = ' in one.body) for one in join.tree().operators())
    share = '%.0f%%%% of %%s%d ' % (100 * within(kernels) / len(kernels), len(kernels))
    for page, *texts in (
            (README, 'takes %.0f s and 410 MB of memory' % seconds(lean % 'gcc'),
             'the program has %.1f MB of code. Compiling the whole' % code(lean % 'gcc'),
             'takes %.0f s and 870 MB, and gives %.1f MB of code' % (seconds(whole), code(whole)),
             'takes {:.0f} ns (libtorch 1.13: {:.0f} ns)'.format(*add), 'takes {:.0f} ns (libtorch: {:,.0f} ns)'.format(*backward),
             share % '' + 'CPU kernels', 'GPU, %d of %d operators take at most 1.05' % (within(gpu), len(gpu))),
            (COMING, 'The library has about {:,} operators'.format(round(operators, -2))),
            ('bench/README.md',
             'CPU kernels, %d rows | PyTorch 2.15 | mean %.2f, worst %.2f' % (len(kernels), mean(kernels), max(kernels)),
             'operators on an H200, %d rows | PyTorch 2.11 | mean %.2f, worst %.2f' % (len(gpu), mean(gpu), max(gpu)),
             'In %d of %d rows, opdispatch takes at most 1.05' % (within(gpu), len(gpu)),
             'at most 1.05 in %d of %d measurements' % (within(shapes), len(shapes)), 'no ratio: %.1f s' % seconds(whole),
             '%.2f to %.2f | compiling' % (seconds(lean % 'clang') / seconds('clang -O2'), seconds(lean % 'gcc') / seconds(whole))),
            ('bench/tables/kernels.md', share % 'the ' + 'rows', 'mean of the ratios is %.2f' % mean(kernels)),
            ('bench/tables/gpu.md', 'In %d of %d measurements, opdispatch takes at most 1.05' % (within(gpu), len(gpu)),
             'mean of the ratios is %.2f' % mean(gpu))):
        yield from ('%s does not say "%s", which bench/tables or the cards give' % (page, text) for text in texts if text not in plain(page))


def wrong_lists():
    """Environment variables, fields of opd_op_desc and macros that leave something out: the pages list all."""
    def section(page, begin, end):
        text = read(page)
        return text[text.index(begin):text.index(end)]
    source = ''.join(read(name) for name in files('src/**/*.[ch]', 'src/**/*.cu', 'examples/mpi_group.c'))
    table = section(GUIDE + '12-debugging.md', '## Environment variables', '## The program')
    for name in sorted(set(re.findall(r'getenv\("(\w+)"\)', source)) - {'HOME', 'PATH', 'TMPDIR'}):
        if '`%s`' % name not in table:
            yield 'the table of environment variables has no ' + name
    fields = re.sub(r'/\*.*?\*/', '', section('src/api/dispatcher.h', 'typedef struct opd_op_desc {', '} opd_op_desc;'), flags=re.S)
    table = section(GUIDE + '03-operators.md', '| field | meaning |', 'As in PyTorch, you can also')
    for name in re.findall(r'(\w+)(?:\)\([^)]*\))?;', fields):
        if '`%s`' % name not in table:
            yield 'the table of fields of opd_op_desc has no ' + name
    if 'In %s place, a lower layer' % SCRIPTS['calls_up'].split()[-1] not in plain('src/README.md'):
        yield 'src/README.md does not say in how many places lower layers call higher ones'
    for name in sorted(set(re.findall(r'\bOPD_NO_[A-Z_]+', read('src/files.txt') + read('src/base/platform.h')))):
        if not re.search(r'\b(%s|%s)' % (name, name.replace('OPD_NO_OP_', '') + r'\b'), read(MANUAL)):
            yield 'CONFIGURATION of the manual has no ' + name


#-- the tables of platforms and of the parts of .ci/run ----------------------------------------------------------------

TURNS = ['every change', 'every second change', 'every third change', 'every fourth change']
TIMES = TURNS + ['before a release', 'by hand']
ALWAYS, SECOND, RELEASE, BY_HAND = TURNS[0], TURNS[1], TIMES[-2], TIMES[-1]
TURN = re.compile(r'\$\(its_turn ([^)]*)\)')
PART = re.compile(r'''(?:^|\s)part (?:'([^']*)'|"([^"]*)") (.*)''')


def ci_parts():
    """Returns {name: (command, when, what it is for)} of the parts of .ci/run."""
    found, when, purpose = {}, ALWAYS, None
    for line in read('.ci/run').split('\n'):
        part = PART.search(line)
        when = {'if [ -n "$whole" ]; then': RELEASE, 'fi': ALWAYS}.get(line, when)
        if line.strip().startswith('#- '):
            purpose = line.strip()[3:]
        elif part and not line.startswith('#'):
            often = SECOND if re.search(r'(^| )second \d part ', line) else when
            found[part.group(1) or part.group(2)], purpose = (part.group(3), often, purpose), None
    return found


def place_of(script, line, parts):
    """Returns (command, when) of the tests to which a line of a script belongs."""
    part, target, check = PART.search(line), re.match(r'\s*([\w-]+)\) ', line), re.match(r'check_(\w+)\(\)', line)
    if script == '.ci/run':
        name = part.group(1) or part.group(2)
        return '.ci/run ' + ('"%s"' if "'" in name else "'%s'") % name, parts[name][1]
    if check:
        return 'sh %s %s' % (script, check.group(1)), ALWAYS
    word = target.group(1) if script == 'tests/cross.sh' and target else ''
    times = [when for command, when, _ in parts.values() if script in command and (not word or word in TURN.sub('', command).split())]
    for turns in (group.split() for command, _, _ in parts.values() for group in TURN.findall(command)):
        times += [TURNS[len(turns) - 1]] if word in turns else []
    return ('sh %s %s' % (script, word)).strip(), min(times, key=TIMES.index) if times else BY_HAND


def platforms_of(parts):
    """Returns [(platform, compiler, what runs, how, when, command)], with the rows of a platform one after the other."""
    found = []
    for script in ['.ci/run'] + files('tests/*.sh'):
        waiting = []
        for line in read(script).split('\n'):
            if line.strip().startswith('#| '):
                waiting.append(tuple(cell.strip() for cell in line.strip()[3:].split(' | ')))
            elif waiting and not line.strip().startswith('#'):
                command, when = place_of(script, line, parts)
                found += [cells + (when, command) for cells in waiting]
                waiting = []
    order = list(dict.fromkeys(row[0] for row in found))
    return sorted(found, key=lambda row: (order.index(row[0]), TIMES.index(row[4])))


def short_rows(found):
    """Returns one row for all platforms that run the same.  A platform is only in the first row that has it."""
    named, cells = set(), []
    for what in dict.fromkeys(row[2].split(' (')[0] for row in found):
        group = [row for row in found if row[2].split(' (')[0] == what and row[0] not in named]
        named |= {row[0] for row in group}
        names, ways, places = {}, {}, {}
        for platform, _, _, how, when, _ in group:
            names.setdefault(platform, platform if when == ALWAYS else '%s (%s)' % (platform, when))
            ways.setdefault(platform, {})[how] = True
        for platform, hows in ways.items():
            places.setdefault(' and '.join(hows), []).append(names[platform])
        where = '; '.join(', '.join(same) + ('' if how == 'natively' else ': ' + how) for how, same in places.items())
        compilers = [row[1] for row in group if row[4] != RELEASE] or [row[1] for row in group]
        cells += [(what, where, '; '.join(dict.fromkeys(compilers)))] if group else []
    return cells


def tables():
    """Yields (page, the head of a table, its rows)."""
    parts = ci_parts()
    found = platforms_of(parts)
    yield (README, '| what runs, on every change unless noted ([details](%s#compilers-and-systems)) | platforms | compilers |' % INSTALL,
           short_rows(found))
    yield INSTALL, '| platform | compiler | what runs | how | when | command |', [row[:5] + ('`%s`' % row[5],) for row in found]
    yield (TESTS, '| part of `.ci/run` | when | what it is for |',
           [(name, when, purpose or '?') for name, (_, when, purpose) in parts.items()])


def platforms(write=False):
    """The tables of platforms and of the parts of .ci/run equal the lines in the scripts."""
    targets = subprocess.run(['sh', os.path.join(ROOT, 'tests/cross.sh'), '--list'], stdout=subprocess.PIPE, check=True)
    commands = {row[5] for row in platforms_of(ci_parts())}
    for target in targets.stdout.decode().split():
        if 'sh tests/cross.sh ' + target not in commands:
            yield 'tests/cross.sh needs a line "#| platform | compiler | what runs | how" above the target ' + target
    for page, head, rows in tables():
        wrong = [row for row in rows if not all(row) or '?' in row or len(row) != head.count(' | ') + 1]
        yield from ('%s: this row lacks a cell: %s (a line "#| ..." or "#- ..." of a script)' % (page, row) for row in wrong)
        lines = '\n'.join([head, '|' + '---|' * (head.count(' | ') + 1)] + ['| %s |' % ' | '.join(row) for row in rows]) + '\n'
        old = re.search('^' + re.escape(head) + r'\n(?:\|.*\n)*', read(page), re.M)
        if not old:
            yield '%s has no table with the head %s' % (page, head)
        elif write:
            with open(os.path.join(ROOT, page), 'r+', encoding='utf-8') as f:
                text = f.read().replace(old.group(), lines)
                f.seek(0)
                f.truncate()
                f.write(text)
        elif old.group() != lines:
            yield '%s: a table is not that of the scripts.  Write it: python3 tests/texts.py --write' % page
            yield from ('not in the table: ' + line for line in lines.split('\n') if line not in old.group().split('\n'))


#-- the script ---------------------------------------------------------------------------------------------------------

CHECKS = {check.__name__: check for check in (
    contents, rooms, modes, includes, macro_names, function_length, macro_functions, line_length, short_names, lean_names,
    fork_locks, error_words, documents_claims, platforms)}


def report(name):
    """Runs a check, and prints its result.  Returns whether it passed."""
    began = time.time()
    try:
        wrong = said_by(SCRIPTS[name]) if name in SCRIPTS else list(CHECKS[name]())
    except Skip as why:
        print('skip %s: %s' % (name, why))
        return True
    print('FAIL %s: %s' % (name, '\n'.join(wrong[:24])) if wrong else 'ok %s (%d s)' % (name, time.time() - began))
    return not wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('names', nargs='*', metavar='NAME')
    parser.add_argument('--list', action='store_true', help='print the names of the checks')
    parser.add_argument('--write', action='store_true', help='write the tables into the documents')
    o = parser.parse_args()
    names = sorted(list(CHECKS) + list(SCRIPTS))
    if o.list:
        print('\n'.join(names))
        return 0
    if o.write:
        wrong = list(platforms(write=True))
        print('\n'.join(wrong), end='\n' if wrong else '')
        return bool(wrong)
    chosen = [name for name in names if not o.names or any(one in name for one in o.names)]
    return 0 if all([report(name) for name in chosen]) else 1


if __name__ == '__main__':
    sys.exit(main())
