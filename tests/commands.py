#!/usr/bin/env python3
"""Runs the commands of the documents: lines of ```sh blocks, and indented lines that begin with the name of a command.
Also checks that a test compiles or runs each block of code of the documents, or that a row here says why not.

Each command has a row here, which says how the command is checked:
- it runs in a copy of the repository, with another compiler and without optimisation;
- it is the build command in the first comment of a program, which .ci/run and tests/mpi.sh build and run;
- another script of the tests has the same text;
- or it does not run, for the reason in the row.
If a command passes an option to a program of the repository, the source of the program must contain this option.  A
command without a row and a row without a command are errors.

usage: python3 tests/commands.py [--cc CC] [--cxx CXX] [--foreign] [--list]
    --foreign: also compiles the programs for other libraries, if these are installed: PyTorch's package for python3,
        and the headers in the folders that $GGML_INCLUDE and $ONNXRUNTIME_INCLUDE name
    --list: prints the commands, and how each command is checked
"""
import argparse
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGES = (['README.md', 'src/README.md', 'tests/README.md', 'bench/README.md', 'examples/README.md', 'examples/guide.md',
          'examples/coming-from.md'] +
         sorted(os.path.relpath(path, ROOT) for path in
                glob.glob(os.path.join(ROOT, 'examples/guide/*.md')) + glob.glob(os.path.join(ROOT, 'bench/tables/*.md'))))
COMMAND = re.compile(r'(cc|c\+\+|ar|mpicc|mpirun|nvcc|sh|python3|make|git|cmake|srun|pip|tar|sha256sum|\./\w+|\(cd) ')
FIRST = 'tensor([ 0.0000,  1.3818,  0.0770, -2.8289])\n'
PACKAGES = ('why', 'tested elsewhere: tests/packages.sh takes this line from the page and runs it')
GPU = 'needs a GPU; tests/first_gpu_run.sh does the same there, and tests/cuda.sh in the emulation'

# (page, command): how it is checked.  run: the files that it needs, and the end of its output, or None.  built: the
# program whose first comment has the command, up to the first &&.  has: a script with this text.  why: the reason why
# it does not run.
ROWS = {
    ('README.md', 'cc -O2 -DOPD_LEAN -DOPD_STATIC examples/digits.c -o digits -lm && ./digits'): ('has', '.ci/run', 'commands[0]'),
    ('README.md', 'sh tests/run.sh'): ('has', '.ci/run', 'commands[1]'),
    ('README.md', 'cc -O2 -DOPD_LEAN -DOPD_STATIC first.c -o first -lm && ./first'): ('run', {'first.c': 'first program'}, FIRST),
    ('README.md', 'cc -O2 -DOPD_LEAN -DOPDISPATCH_IMPLEMENTATION -ffunction-sections -fdata-sections -x c -c opdispatch.h'):
        ('run', {}, None),
    ('README.md', 'cc -O2 -DOPD_LEAN first.c opdispatch.o -Wl,--gc-sections -o first -lm && ./first'):
        ('run', {'first.c': 'first program without implementation'}, FIRST),
    ('examples/guide/01-install.md',
     'cc -O2 -DOPD_LEAN -DOPDISPATCH_IMPLEMENTATION -ffunction-sections -fdata-sections -x c -c opdispatch.h -o lean.o'):
        ('run', {}, None),
    ('examples/guide/01-install.md', 'cc -O2 -DOPD_LEAN program.c lean.o -Wl,--gc-sections -o program -lm'):
        ('run', {'program.c': 'first program without implementation'}, None),
    ('examples/guide/01-install.md', 'cc -O2 -c opdispatch.c'): ('run', {'opdispatch.c': 'implementation'}, None),
    ('examples/guide/01-install.md', 'cc -O2 program.c opdispatch.o -o program -lm'):
        ('run', {'program.c': 'first program without implementation'}, None),
    ('examples/guide/01-install.md', 'cc -O2 program.c part_*.o -o program -lm'):
        ('why', 'tests/check_header.sh parts links programs with 1, 2, 3 and 7 parts'),
    ('examples/guide/01-install.md', 'cc -O2 -DOPD_LEAN -DOPD_STATIC program.c -o program -lm'):
        ('run', {'program.c': 'first program'}, None),
    ('examples/guide/01-install.md', 'sha256sum -c --ignore-missing SHA256SUMS'): PACKAGES,
    ('examples/guide/01-install.md', 'tar xf opdispatch-0.9.0.tar.gz && cd opdispatch-0.9.0'): PACKAGES,
    ('examples/guide/01-install.md', 'python3 src/archive.py v0.9.0'): PACKAGES,
    ('examples/guide/01-install.md', 'python3 -m http.server'): ('why', 'does not end; tests/web.py serves the page'),
    ('examples/guide/01-install.md', 'cmake -S examples/cmake -B build'): PACKAGES,
    ('examples/guide/01-install.md', 'cmake --build build -j2'): PACKAGES,
    ('examples/guide/01-install.md', 'cmake --install build'): PACKAGES,
    ('examples/guide/01-install.md', 'cc -O2 program.c $(pkg-config --cflags --libs opdispatch) -o program'): PACKAGES,
    ('examples/guide/07-python.md',
     'cc -O2 -shared -fPIC -DOPDISPATCH_IMPLEMENTATION -x c opdispatch.h -o libopdispatch.so -lm'): ('run', {}, None),
    ('examples/guide/09-gpus.md', 'nvcc -O3 -arch=all-major -c opdispatch_cuda.cu'):
        ('why', 'takes twenty minutes; cuda_builds of tests/cuda.sh compiles for one kind of GPU'),
    ('examples/guide/09-gpus.md', 'cc -O2 program.c opdispatch_cuda.o -o program -lm -L/usr/local/cuda/lib64 '
     '-lcudart_static -lcublas -lcublasLt -lstdc++ -lpthread -ldl -lrt'):
        ('has', 'tests/cuda.sh', '-lcudart_static -lcublas -lcublasLt -lstdc++ -lpthread -ldl -lrt'),
    ('examples/guide/09-gpus.md', 'nvcc -O3 -arch=all-major -shared -Xcompiler -fPIC -DOPDISPATCH_PLUGIN opdispatch_cuda.cu '
     '-o opdispatch_cuda.so -lcublas -lcublasLt'): ('has', 'tests/cuda.sh', '-DOPDISPATCH_PLUGIN'),
    ('examples/guide/09-gpus.md', './digits --device cuda --load ./opdispatch_cuda.so'): ('why', GPU, 'examples/digits.c'),
    ('examples/guide/10-pytorch-files.md',
     'cc -O2 -shared -fPIC -DOPDISPATCH_IN_TORCH ops.c -x c opdispatch.h -o ops.so -lm'):
        ('run', {'ops.c': 'examples/plugin.c'}, None),
    ('examples/guide/11-processes.md', 'mpicc -O2 -Iexamples program.c -o program -lm && mpirun -n 4 ./program'):
        ('run', {'program.c': 'MPI program'}, None),
    ('examples/guide/11-processes.md', 'mpicc -O2 examples/digits_mpi.c -o digits_mpi -lm && mpirun -n 4 ./digits_mpi'):
        ('built', 'examples/digits_mpi.c'),
    ('examples/guide/11-processes.md',
     'mpicc -O2 examples/sharded_lm.c -o sharded_lm -lm && mpirun -n 4 ./sharded_lm --tensor 2'):
        ('built', 'examples/sharded_lm.c'),
    ('examples/guide/11-processes.md',
     'mpicc -O2 examples/pipeline_mpi.c -o pipeline_mpi -lm && mpirun -n 4 ./pipeline_mpi --micro 8'):
        ('built', 'examples/pipeline_mpi.c'),
    ('examples/guide/11-processes.md', 'srun --mpi=pmix --cpus-per-task="$SLURM_CPUS_PER_TASK" ./digits_mpi --plain'):
        ('why', 'needs Slurm', 'examples/digits.c'),
    ('examples/guide/11-processes.md', 'mpirun -n 4 ./digits_mpi --device cuda --load ./opdispatch_cuda.so'):
        ('why', GPU, 'examples/digits.c'),
    ('examples/guide/11-processes.md', 'cc -O2 bench/scaling.c -o bench_scaling -lm -lpthread'): ('run', {}, None),
    ('examples/guide/11-processes.md',
     './bench_scaling --table bench/scaling.txt --bucket 1 --per-node 8 --plot bench/scaling.svg'): ('run', {}, 'bench/scaling.svg'),
    ('examples/guide/11-processes.md', 'mpicc -O2 -DSCALING_MPI bench/scaling.c -o bench_scaling_mpi -lm && '
     'mpirun -n 2 ./bench_scaling_mpi --bucket 1'): ('built', 'bench/scaling.c'),
    ('examples/guide/language-models.md', './llama model.gguf --load ./opdispatch_cuda.so --device cuda --prompt "The sea is"'):
        ('why', GPU),
    ('examples/guide/language-models.md', 'cc -O2 examples/llama.c -o llama -lm && ./llama Qwen3-0.6B-Q8_0.gguf --prompt "The sea is"'):
        ('built', 'examples/llama.c'),
    ('examples/guide/language-models.md',
     "./llama model.gguf --special --prompt $'<|im_start|>user\\nWhy?<|im_end|>\\n<|im_start|>assistant\\n'"):
        ('why', 'needs a model from the net'),
    ('examples/guide/language-models.md', './llama Qwen3-0.6B --prompt "The sea is"'):
        ('why', 'needs a model from the net'),
    ('examples/guide/language-models.md',
     './llama model.gguf --prompt "The sea is" --parallel 4 --temperature 0.8 --seed 3'):
        ('why', 'needs a model from the net'),
    ('examples/guide/language-models.md', './llama model.gguf --prompts questions.txt --tokens 200'):
        ('why', 'needs a model from the net'),
    ('examples/guide/language-models.md', './llama model.gguf --exact --inputs ids.npz --outputs logits.npz'):
        ('why', 'needs a model from the net'),
    ('examples/guide/language-models.md',
     './llama model.gguf --train letters.txt --steps 200 --rank 8 --lr 0.001 --save adapter_model.safetensors'):
        ('why', 'needs a model from the net'),
    ('examples/guide/hugging-face.md', 'cc -O2 examples/run_model.c -o run_model -lm && ./run_model model.pt2 --list'):
        ('built', 'examples/run_model.c'),
    ('examples/guide/releases.md', 'python3 verify.py opdispatch-0.9.0.tar.gz --key opdispatch.pub'): PACKAGES,
    ('examples/guide/releases.md', 'python3 src/verify.py'): PACKAGES,
    ('examples/guide/releases.md', 'python3 src/join.py --id'): ('run', {}, None),
    ('examples/guide/releases.md', "(cd src && find */ files.txt join.py printing.py -type f ! -name '*.pyc' | LC_ALL=C sort | "
     "xargs sha256sum | sha256sum | cut -c 1-16)"): ('run', {}, None),
    ('examples/guide/releases.md', 'python3 src/archive.py v0.9.0 --to release --key opdispatch.sec'):
        ('why', 'needs a tag and a key; tests/packages.sh runs the same with a key of its own'),
    ('examples/guide/releases.md', 'python3 examples/packaging/write.py conan opdispatch-0.9.0.tar.gz --to recipes'): PACKAGES,
    ('examples/guide/releases.md',
     'tar xf opdispatch-0.9.0.tar.gz && ln -s opdispatch-0.9.0.tar.gz opdispatch_0.9.0.orig.tar.gz'): PACKAGES,
    ('examples/guide/releases.md', "(cd opdispatch-0.9.0 && python3 examples/packaging/write.py debian ../opdispatch-0.9.0.tar.gz "
     "--maintainer 'NAME <ADDRESS>')"): PACKAGES,
    ('examples/guide/releases.md', '(cd opdispatch-0.9.0 && dpkg-buildpackage -us -uc)'): PACKAGES,
    ('examples/guide/shipping.md', 'ar rcs libopdispatch.a opdispatch.o'): ('run', {}, None),
    ('examples/guide/shipping.md', 'cc -O2 program.c libopdispatch.a -o program -lm'):
        ('run', {'program.c': 'first program without implementation'}, None),
    ('examples/guide/shipping.md',
     'cc -O2 -shared -fPIC -DOPDISPATCH_IMPLEMENTATION -x c opdispatch.h -o libopdispatch.so -lm'):
        ('has', 'examples/guide/07-python.md', '-DOPDISPATCH_IMPLEMENTATION -x c opdispatch.h -o libopdispatch.so -lm'),
    ('examples/guide/shipping.md', "cc -O2 program.c -L. -lopdispatch -Wl,-rpath,'$ORIGIN' -o program -lm && ./program"):
        ('run', {'program.c': 'first program without implementation'}, FIRST),
    ('examples/guide/shipping.md',
     'cc -O2 -shared -fPIC -fvisibility=hidden -DOPD_STATIC -DOPD_LEAN loudness.c -o libloudness.so -lm'):
        ('run', {'loudness.c': 'hidden copy'}, None),
    ('src/README.md', 'python3 src/join.py --id'): ('run', {}, None),
    ('src/README.md', 'python3 src/join.py'): ('has', 'tests/check_header.sh', 'python3 join.py >/dev/null'),
    ('src/README.md', 'python3 src/join.py --check'): ('has', 'tests/check_header.sh', 'src/join.py" --check'),
    ('src/README.md', 'python3 src/join.py --where 12345'): ('run', {}, None),
    ('src/README.md', 'python3 src/join.py --remap FILE'): ('run', {}, None),
    ('src/README.md', 'python3 src/join.py --once FILE'): ('run', {}, None),
    ('src/README.md', 'python3 src/join.py --id'): ('run', {}, None),
    ('src/README.md', 'python3 src/join.py --measure'): ('why', 'takes minutes; the numbers only balance the parts'),
    ('src/README.md', 'sh tests/run.sh --rooms autograd'): ('has', '.ci/run', '--rooms --cxx-on-c'),
    ('src/README.md', 'make -C src'): ('has', '.ci/run', 'make -s -C src'),
    ('src/README.md', 'python3 -m pip install -r examples/site/requirements.txt'): ('has', 'tests/site.sh', 'examples/site/requirements.txt'),
    ('src/README.md', 'python3 examples/site/build.py'): ('has', 'tests/site.sh', 'examples/site/build.py" --to'),
    ('src/README.md', 'git add src opdispatch.h'): ('why', 'writes into the repository'),
    ('bench/README.md', 'cc -O2 bench/cuda.c -o bench_cuda -lm -lpthread && ./bench_cuda --load ./opdispatch_cuda.so'):
        ('built', 'bench/cuda.c'),
    ('bench/README.md', 'cc -O2 bench/gpu_models.c -o gpu_models -lm -lpthread -ldl && ./gpu_models --load ./opdispatch_cuda.so'):
        ('built', 'bench/gpu_models.c'),
    ('bench/README.md', 'python3 bench/peers/torch_models.py --compile'): ('why', GPU, 'bench/peers/torch_models.py'),
    ('bench/README.md', '(cd bench/peers && c++ -O2 -std=c++17 torch_dispatch.cpp -I/usr/include/torch/csrc/api/include '
     '-ltorch_cpu -lc10 -o torch_dispatch)'): ('built', 'bench/peers/torch_dispatch.cpp'),
    ('bench/README.md', 'cc -O2 bench/dispatch.c -o bench_dispatch -lm -lpthread && ./bench_dispatch --markdown'):
        ('built', 'bench/dispatch.c'),
    ('bench/README.md', './bench_dispatch --compile --quick --markdown'): ('why', 'takes minutes', 'bench/dispatch.c'),
    ('bench/README.md', 'cc -O2 bench/growth.c -o bench_growth -lm -lpthread && ./bench_growth --quick'):
        ('built', 'bench/growth.c'),
    ('bench/README.md', 'cc -O2 bench/linalg.c -o bench_linalg -lm -lpthread -ldl && ./bench_linalg --quick'):
        ('built', 'bench/linalg.c'),
    ('bench/README.md',
     'cc -O2 bench/kernels.c -o bench_kernels -lm -lpthread -ldl && ./bench_kernels --quick --python python3'):
        ('built', 'bench/kernels.c', 'bench/rows.h', 'bench/peer.h'),
    ('bench/README.md',
     'cc -O2 bench/operators.c -o bench_operators -lm -lpthread -ldl && ./bench_operators --quick --python python3'):
        ('built', 'bench/operators.c', 'bench/rows.h', 'bench/peer.h'),
    ('bench/README.md',
     'cc -O2 bench/convolutions.c -o bench_convolutions -lm -lpthread -ldl && ./bench_convolutions --quick --python python3'):
        ('built', 'bench/convolutions.c', 'bench/rows.h', 'bench/peer.h'),
    ('bench/README.md',
     'cc -O2 bench/functions.c -o bench_functions -lm -lpthread -ldl && ./bench_functions --quick --python python3'):
        ('built', 'bench/functions.c', 'bench/rows.h', 'bench/peer.h'),
    ('bench/README.md', 'cc -O2 bench/scaling.c -o bench_scaling -lm -lpthread && ./bench_scaling --quick'):
        ('built', 'bench/scaling.c'),
    ('bench/README.md', 'cc -O2 bench/blocks.c -o bench_blocks -lm -lpthread -ldl && ./bench_blocks --quick'):
        ('built', 'bench/blocks.c'),
    ('bench/README.md', 'python3 bench/peers/llama_cpp.py --types BF16,Q8_0,q4_K'): ('why', 'needs llama.cpp'),
    ('bench/README.md', 'sh bench/instructions.sh'): ('why', 'needs a cross compiler and takes minutes',
                                                      'bench/instructions.c', 'bench/instructions_counter.c'),
    ('bench/README.md', 'python3 bench/peers/compiled_models.py FOLDER'): ('why', 'needs PyTorch and torchvision'),
    ('bench/README.md', 'python3 bench/peers/quantized_models.py FOLDER'): ('why', 'needs PyTorch and torchao'),
    ('bench/README.md', 'python3 bench/peers/torch_quantized.py FOLDER'): ('why', 'needs PyTorch'),
    ('bench/README.md', 'cc -O2 bench/compiled.c -o bench_compiled -lm -lpthread -ldl && '
     './bench_compiled --quick --python python3 FOLDER'): ('built', 'bench/compiled.c', 'bench/peer.h'),
    ('bench/README.md', 'python3 bench/peers/torch_steps.py FOLDER'): ('why', 'needs PyTorch and torchvision'),
    ('bench/README.md', 'cc -O2 bench/steps.c -o bench_steps -lm -lpthread -ldl && '
     './bench_steps --python python3 FOLDER'): ('built', 'bench/steps.c', 'bench/peer.h'),
    ('bench/README.md', 'mpicc -O2 bench/collectives.c -o bench_collectives -lm && '
     'mpirun -n 2 ./bench_collectives --python python3'): ('built', 'bench/collectives.c'),
    ('bench/README.md', 'mpicc -O2 -DSCALING_MPI bench/scaling.c -o bench_scaling_mpi -lm && '
     'mpirun -n 2 ./bench_scaling_mpi --measure'): ('built', 'bench/scaling.c'),
}

# kind of block: the test that compiles or runs the blocks of this kind on all pages
BLOCKS = {'c': 'tests/linkage.sh (pages_code), programs of some pages also tests/documents.py', 'sh': 'this script',
          'cmake': 'tests/packages.sh', 'python': 'tests/python_module.py', 'py': 'tests/python_module.py',
          'text': 'tests/documents.py, if it shows what a program prints'}
# (page, kind): the test for the blocks of this kind on one page
OTHER_BLOCKS = {
    ('examples/guide/hugging-face.md', 'python3'): 'none: needs the package transformers and weights from the net',
    ('examples/guide/shipping.md', 'C'): 'this script', ('src/README.md', 'C'): 'tests/recipes.py',
    ('examples/guide/11-processes.md', 'C'): 'this script, with mpicc',
    ('examples/coming-from.md', 'C'): 'only with --foreign: needs ggml',
    ('examples/coming-from.md', 'cpp'): 'only with --foreign: needs libtorch and ONNX Runtime'}


def read(name):
    with open(os.path.join(ROOT, name), encoding='utf-8') as f:
        return f.read()


def wrong_blocks():
    """Returns messages about kinds of code blocks for which no test is known."""
    there = {(page, kind or 'without a kind') for page in PAGES for kind in re.findall(r'^```(\w*)\n.*?^```$', read(page), re.M | re.S)}
    return (['%s has a block of %s: tests/commands.py does not say which test compiles it' % place for place in sorted(there)
             if place[1] not in BLOCKS and place not in OTHER_BLOCKS] +
            ['%s has no block of %s' % place for place in OTHER_BLOCKS if place not in there])


def foreign(cc, cxx, folder):
    """Compiles the programs for ggml, libtorch and ONNX Runtime without linking them.  Returns error messages."""
    try:
        from torch.utils.cpp_extension import include_paths
        torch = include_paths()
    except ImportError:
        torch = []
    page, wrong = 'examples/coming-from.md', []
    for kind, text, places, command in (
            ('C', 'ggml.h', [os.environ.get('GGML_INCLUDE')], cc + ' -x c'),
            ('cpp', 'torch/torch.h', torch, cxx + ' -std=c++20 -x c++'),
            ('cpp', 'onnxruntime_cxx_api.h', [os.environ.get('ONNXRUNTIME_INCLUDE')], cxx + ' -std=c++17 -x c++')):
        if not any(places):
            print('skip the program with %s in %s: the library is not here' % (text, page))
            continue
        path = os.path.join(folder, 'foreign.txt')
        with open(path, 'w') as f:
            f.write(block(page, kind, text))
        done = subprocess.run(command.split() + ['-fsyntax-only', '-w'] + ['-I' + place for place in places] + [path],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode:
            wrong.append('%s: the program with %s: %s' % (page, text, done.stdout.decode(errors='replace')[:1500]))
    return wrong


def commands():
    """Yields (page, command) for all commands, in the order of the pages."""
    for page in PAGES:
        kind = ''
        for line in read(page).split('\n'):
            if line.startswith('```'):
                kind = '' if kind else line[3:] or 'text'
                continue
            text = line[4:] if line.startswith('    ') and not kind else line if kind == 'sh' else ''
            if COMMAND.match(text):
                yield page, re.sub(r'  +(# |\().*', '', text).rstrip()


def block(page, fence, text):
    found = [b for b in re.findall(r'^```%s\n(.*?)^```' % fence, read(page), re.M | re.S) if text in b]
    if len(found) != 1:
        sys.exit('%s has %d blocks with %s' % (page, len(found), text))
    return found[0]


def contents(what):
    """Returns the text of a file that a command needs."""
    first = block('README.md', 'c', 'int main')
    if what == 'first program':
        return first
    if what == 'first program without implementation':
        return re.sub(r'#define OPDISPATCH_IMPLEMENTATION.*\n', '', first)
    if what == 'implementation':
        return block('examples/guide/01-install.md', 'c', '#define OPDISPATCH_IMPLEMENTATION')
    if what == 'hidden copy':
        return block('examples/guide/shipping.md', 'C', 'loudness')
    if what == 'MPI program':
        return block('examples/guide/11-processes.md', 'C', 'mpi_group_begin')
    return read(what).replace('../opdispatch.h', 'opdispatch.h')


def copy_of_the_repository(folder):
    """Links the files that commands read, and copies the files that they write."""
    for name in os.listdir(ROOT):
        path = os.path.join(ROOT, name)
        if name in ('src', 'bench'):
            shutil.copytree(path, os.path.join(folder, name), ignore=shutil.ignore_patterns('__pycache__', 'build'))
        elif name.startswith('opdispatch'):
            shutil.copy(path, folder)
        elif name in ('examples', 'tests'):
            os.symlink(path, os.path.join(folder, name))


def run(command, files, prints, cc, folder):
    """Runs a command.  Returns an error message, or None."""
    if re.search(r'\bmpi(cc|run)\b', command) and not (shutil.which('mpicc') and shutil.which('mpirun')):
        print('skip %s: no MPI' % command)
        return None
    for name, what in files.items():
        with open(os.path.join(folder, name), 'w') as f:
            f.write(contents(what))
    before = read(prints) if prints and os.path.exists(os.path.join(ROOT, prints)) else None
    line = re.sub(r'^cc ', cc + ' -w ', command).replace('-O2', '-O0').replace('mpirun ', 'mpirun --oversubscribe ')
    if ' -o ' in line and '-lm' in line:
        line = re.sub(r' -lm\b', ' -lm -lpthread -ldl', line, count=1)
    open_mpi = dict(os.environ, OMPI_CC=cc, MPICH_CC=cc, OMPI_ALLOW_RUN_AS_ROOT='1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM='1')
    done = subprocess.run(line, shell=True, cwd=folder, env=open_mpi, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said = done.stdout.decode(errors='replace')
    if done.returncode:
        return 'status %d: %s' % (done.returncode, said[:1500])
    if before is not None:
        with open(os.path.join(folder, prints), encoding='utf-8') as f:
            return None if f.read() == before else 'another %s than that of the repository' % prints
    return None if prints is None or said.endswith(prints) else 'it prints ' + said[:500]


def wrong_with(page, command, row, cc, folder):
    kind = row[0]
    if kind == 'run':
        return run(command, row[1], row[2], cc, folder)
    if kind == 'has':
        return None if row[2] in read(row[1]) else '%s has no "%s"' % row[1:]
    sources = ''.join(read(name) for name in row[1:] if os.path.exists(os.path.join(ROOT, name)))
    if kind == 'built':
        build = re.sub(r'^\(cd \S+ && ', '', command).split(' && ')[0].rstrip(')')
        comment = ' '.join(read(row[1])[:2500].split())
        if build not in comment:
            return 'the first comment of %s has no "%s"' % (row[1], build)
    if sources:
        known = set(re.findall(r'--[a-z-]+', sources + read('examples/digits.c')))
        for option in re.findall(r' (--[a-z-]+)', command.split('./')[-1] if './' in command else ''):
            if option not in known:
                return 'the program has no option ' + option
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--cc', default=os.environ.get('CC', 'cc'))
    parser.add_argument('--cxx', default=os.environ.get('CXX', 'c++'))
    parser.add_argument('--foreign', action='store_true')
    parser.add_argument('--list', action='store_true')
    args = parser.parse_args()
    found, wrong = list(commands()), 0
    if args.list:
        for page, command in found:
            row = ROWS.get((page, command), ('nothing',))
            print('%s: %s\n    %s' % (page, command, row[0] if row[0] == 'run' else ': '.join(row[:2])))
        return 0
    for place in [place for place in found if place not in ROWS]:
        print('%s: no row in tests/commands.py says how this is checked: %s' % place)
        wrong += 1
    for place in [place for place in ROWS if place not in found]:
        print('%s no longer has: %s' % place)
        wrong += 1
    for what in wrong_blocks():
        print(what)
        wrong += 1
    with tempfile.TemporaryDirectory() as folder:
        for what in foreign(args.cc, args.cxx, folder) if args.foreign else []:
            print(what)
            wrong += 1
        copy_of_the_repository(folder)
        for place in found:
            what = wrong_with(*place, ROWS[place], args.cc, folder) if place in ROWS else None
            if what:
                print('%s: %s: %s' % (*place, what))
                wrong += 1
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
