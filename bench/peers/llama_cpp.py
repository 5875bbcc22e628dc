"""Measures language models from GGUF files, beside llama.cpp on the CPU: tokens per second of a prompt and of text.
    python3 bench/peers/llama_cpp.py [--types Q8_0,Q4_0,q4_K] [--threads 1,2] [--rounds 5] [--tiny] [--busy]
The model is a llama of 124 million random parameters (12 layers of width 768, 12 heads, 4 of keys and values, 32,000
words).  A prompt has 128 tokens, and 32 tokens of text follow.  Both programs run in turns, each in a process of its
own; a figure is the median of the rounds, and the ratio divides the medians (above 1: faster here).  --busy is for a
machine that does other work, too: it measures the processor time of one thread, and subtracts the time of a short run
from the time of a longer one.  Types that the package gguf cannot write are converted by examples/convert_weights.c, so
both programs read the same file.  Q4_K_M is llama.cpp's mixture of q4_K and q6_K.
Needs cc, and the packages gguf, numpy and xllamacpp from pip."""
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import urllib.request

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
PROMPT, TEXT = 128, 32


def option(name, default):
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default


def mixed(name, layers):
    """Returns the type of a weight in llama.cpp's mixture Q4_K_M."""
    block = int(name.split('.')[1]) if name.startswith('blk.') else 0
    more = block < layers // 8 or block >= 7 * layers // 8 or (block - layers // 8) % 3 == 2
    return 'q6_K' if name == 'output' or ('attn_v' in name or 'ffn_down' in name) and more else 'q4_K'


def make(path, kind, tiny, parts=None):
    """Writes a model whose weights have the type `kind`.  For Q4_K_M, `parts` has the files of the two types."""
    import gguf
    import numpy
    layers, width, heads, shared, hidden, words = (2, 256, 4, 2, 512, 400) if tiny else (12, 768, 12, 4, 2048, 32000)
    numbers = numpy.random.default_rng(0)
    if parts:
        parts = {part: {tensor.name: tensor for tensor in gguf.GGUFReader(parts[part]).tensors} for part in parts}
    else:
        kind = getattr(gguf.GGMLQuantizationType, kind)
    file = gguf.GGUFWriter(path, 'llama')
    file.add_context_length(2048)
    file.add_embedding_length(width)
    file.add_block_count(layers)
    file.add_feed_forward_length(hidden)
    file.add_head_count(heads)
    file.add_head_count_kv(shared)
    file.add_layer_norm_rms_eps(1e-5)
    file.add_rope_dimension_count(width // heads)
    file.add_vocab_size(words)
    texts = ['<unk>', '<s>', '</s>'] + ['<0x%02X>' % i for i in range(256)]
    kinds = [2, 3, 3] + [6] * 256 + [1] * (words - 259)
    file.add_tokenizer_model('llama')
    file.add_token_list(texts + ['word%d' % i for i in range(words - 259)])
    file.add_token_scores([0.0] * words)
    file.add_token_types(kinds)
    file.add_bos_token_id(1)
    file.add_eos_token_id(2)
    file.add_unk_token_id(0)

    def add(name, *sizes):
        if len(sizes) == 1:
            file.add_tensor(name + '.weight', numpy.ones(sizes, numpy.float32))
            return
        if parts:
            tensor = parts[mixed(name, layers)][name + '.weight']
            file.add_tensor(name + '.weight', tensor.data, raw_dtype=tensor.tensor_type)
            return
        array = numbers.standard_normal(sizes, dtype=numpy.float32) / numpy.float32(sizes[1] ** 0.5)
        file.add_tensor(name + '.weight', gguf.quants.quantize(array, kind), raw_dtype=kind)
    add('token_embd', words, width)
    add('output', words, width)
    add('output_norm', width)
    for block in range(layers):
        part = width * shared // heads
        for name, *sizes in (('attn_norm', width), ('ffn_norm', width), ('attn_q', width, width),
                             ('attn_k', part, width), ('attn_v', part, width), ('attn_output', width, width),
                             ('ffn_gate', hidden, width), ('ffn_up', hidden, width), ('ffn_down', width, hidden)):
            add('blk.%d.%s' % (block, name), *sizes)
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()


def theirs(path, threads, prompt, text):
    """Prints the figures of llama.cpp.  Runs in a process of its own."""
    import xllamacpp
    setup = xllamacpp.CommonParams()
    setup.model.path, setup.n_ctx, setup.port, setup.warmup = path, 512, 0, True
    setup.cpuparams.n_threads = setup.cpuparams_batch.n_threads = threads
    server = xllamacpp.Server(setup)
    request = {'prompt': [1] + [(i * 7) % 250 + 3 for i in range(prompt - 1)], 'n_predict': text, 'temperature': 0,
               'cache_prompt': False, 'ignore_eos': True}
    request = urllib.request.Request(server.listening_address + '/completion', json.dumps(request).encode(),
                                     {'Content-Type': 'application/json'})
    said = json.loads(urllib.request.urlopen(request).read())['timings']
    print('figures', said['prompt_per_second'], said['predicted_per_second'])
    sys.stdout.flush()
    os._exit(0)                                  # the server's threads would go on


def their_command(path, threads, prompt, text):
    return [sys.executable, os.path.abspath(__file__), '--theirs', path, str(threads), str(prompt), str(text)]


def our_command(program, path, prompt, text):
    letters = ''.join(chr(97 + i * 7 % 20) for i in range(prompt - 4))    # a token for each byte; 4 more for the begin
    return [program, path, '--prompt', letters, '--tokens', str(text)]


def run_theirs(path, threads):
    said = subprocess.run(their_command(path, threads, PROMPT, TEXT), capture_output=True, text=True)
    found = re.search(r'figures (\S+) (\S+)', said.stdout)
    return [float(found.group(1)), float(found.group(2))] if found else sys.exit(said.stderr[-500:])


def run_ours(program, path, threads):
    said = subprocess.run(our_command(program, path, PROMPT, TEXT), capture_output=True, text=True, errors='replace',
                          env=dict(os.environ, OPD_NUM_THREADS=str(threads)))
    found = re.search(r'prompt: (\d+) tokens, ([\d.]+) per second; text: \d+ tokens, ([\d.]+) per second',
                      said.stderr + said.stdout)
    if not found or int(found.group(1)) != PROMPT:
        sys.exit((said.stderr + said.stdout)[-500:])
    return [float(found.group(2)), float(found.group(3))]


def busy(command):
    """Returns tokens of a prompt, and of text, per second of processor time.  command(prompt, text) runs them."""
    def seconds(prompt, text):
        process = subprocess.Popen(command(prompt, text), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   env=dict(os.environ, OPD_NUM_THREADS='1'))
        _, status, used = os.wait4(process.pid, 0)
        return used.ru_utime + used.ru_stime if status == 0 else sys.exit('a program failed')
    short = seconds(64, 16)
    return [256 / (seconds(320, 16) - short), 64 / (seconds(64, 80) - short)]


def main():
    tiny = '--tiny' in sys.argv
    with tempfile.TemporaryDirectory() as folder:
        tools = {}
        for name in ('llama', 'convert_weights'):
            tools[name] = os.path.join(folder, name)
            subprocess.run([os.environ.get('CC', 'cc'), '-O2', '-o', tools[name],
                            os.path.join(ROOT, 'examples', name + '.c'), '-lm', '-lpthread', '-ldl'], check=True)
        base = os.path.join(folder, 'F32.gguf')
        make(base, 'F32', tiny)

        def convert(kind, path):
            subprocess.run([tools['convert_weights'], base, path, '--type', kind], check=True,
                           stdout=subprocess.DEVNULL)
        print('%-6s %7s   %-26s   %-26s' % ('type', 'threads', 'prompt: here, llama.cpp', 'text: here, llama.cpp'))
        for kind in option('--types', 'F32,BF16,F16,Q8_0,Q4_0,q4_K,q6_K').split(','):
            path = os.path.join(folder, kind + '.gguf')
            if kind == 'Q4_K_M':
                parts = {part: os.path.join(folder, part + '_part.gguf') for part in ('q4_K', 'q6_K')}
                for part in parts:
                    convert(part, parts[part])
                make(path, kind, tiny, parts)
                for part in parts:
                    os.remove(parts[part])
            elif kind != 'F32' and kind.isupper():
                make(path, kind, tiny)
            elif kind != 'F32':
                convert(kind, path)
            for threads in [1] if '--busy' in sys.argv else map(int, option('--threads', '1,2').split(',')):
                here, there = [], []
                for _ in range(int(option('--rounds', '5'))):
                    if '--busy' in sys.argv:
                        here.append(busy(lambda prompt, text: our_command(tools['llama'], path, prompt, text)))
                        there.append(busy(lambda prompt, text: their_command(path, 1, prompt, text)))
                        continue
                    here.append(run_ours(tools['llama'], path, threads))
                    there.append(run_theirs(path, threads))
                figures = [(statistics.median(a[k] for a in here), statistics.median(a[k] for a in there))
                           for k in range(2)]
                print('%-6s %7d   %s' % (kind, threads, '   '.join('%7.0f %7.0f  %8.2f' % (a, b, a / b)
                                                                   for a, b in figures)), flush=True)
            if path != base:
                os.remove(path)


if __name__ == '__main__':
    if '--theirs' in sys.argv:
        theirs(sys.argv[2], *map(int, sys.argv[3:6]))
    elif '--help' in sys.argv or '-h' in sys.argv:
        print(__doc__)
    else:
        main()
