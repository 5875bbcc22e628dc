#!/usr/bin/env python3
"""Writes tests/golden/folders: small random models of Hugging Face's architectures, with results of transformers.

usage: pip install torch transformers && python3 tests/golden/make_llama_folders.py

Each folder has config.json, weights (safetensors, one file or two), tokenizer.json and generation_config.json, as
save_pretrained writes them.  Some have settings in the form of older versions of transformers.  golden.npz has token
ids, their logits (computed in float64 from the saved weights), and tokens that follow them greedily.  golden.json has
the tokens of texts, in the form that tok_wrong of examples/llama/tokens.h explains.
"""
import json
import os
import shutil

import numpy
import tokenizers
import torch
import transformers
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, processors, trainers

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, 'folders')
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
          r"\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN = LLAMA3.replace(r'\p{N}{1,3}', r'\p{N}')
TEXTS = ['', ' ', 'Hello world', '  two  spaces and\ttabs\n\n\nlines ', "I'm here, we've 1234567 things: it's DON'T",
         'Caf\u00e9 na\u00efve \u00fcber', '\u4f60\u597d\uff0c\u4e16\u754c \u3053\u3093',
         '\U0001f600 ok \U0001f9d1\u200d\U0001f680!',
         'x = [1, 2.5e-3]; # done\r\n', '<s>the</s> and <|end|>  after <|mark|>  it', 'a<tool>b  <tool> c',
         '\u0430\u0431\u0432 \u05d0 ...?!  \n']
CORPUS = ['The sea is calm and the night is clear. We are here, and it is the end of the day.', 'in the house of the',
          'for (i = 0; i < 10; i++) { it[i] = 2.5; }', 'and they were there, their things and other things: 12, 123',
          'something or nothing, everything; another thing is the thing that there is'] * 20


def train(splitter, alphabet, size):
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = splitter
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    return json.loads(tokenizer.to_str())['model']


def tokenizer_of(model, specials, **parts):
    """specials: (text, special, rstrip), which get the next ids."""
    tokenizer = tokenizers.Tokenizer(model)
    for name, part in parts.items():
        setattr(tokenizer, name, part)
    for text, special, rstrip in specials:
        token = tokenizers.AddedToken(text, special=special, rstrip=rstrip, normalized=False)
        (tokenizer.add_special_tokens if special else tokenizer.add_tokens)([token])
    return tokenizer


def begins_with(tokenizer, text, byte_level=False):
    after = processors.TemplateProcessing(single=text + ' $A', pair=text + ' $A ' + text + ':1 $B:1',
                                          special_tokens=[(text, tokenizer.token_to_id(text))])
    if byte_level:
        after = processors.Sequence([processors.ByteLevel(trim_offsets=False), after])
    tokenizer.post_processor = after
    return tokenizer


def bytes_bpe(pattern, specials, bos=None, normalizer=None, ignore_merges=False, size=290):
    splitter = (pre_tokenizers.ByteLevel(add_prefix_space=False) if pattern is None else
                pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), 'isolated', invert=False),
                                         pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]))
    learned = train(splitter, pre_tokenizers.ByteLevel.alphabet(), size)
    model = models.BPE(learned['vocab'], [tuple(pair) for pair in learned['merges']], ignore_merges=ignore_merges)
    parts = dict(pre_tokenizer=splitter, decoder=decoders.ByteLevel(), post_processor=processors.ByteLevel())
    if normalizer:
        parts['normalizer'] = normalizer
    tokenizer = tokenizer_of(model, specials, **parts)
    return begins_with(tokenizer, bos, True) if bos else tokenizer


def pieces_bpe(specials, style, size=90):
    """style: llama, mistral (Metaspace) or gemma: how spaces become U+2581."""
    learned = train(pre_tokenizers.Metaspace(), [], size)
    texts = ['<unk>', '<s>', '</s>'] + ['<0x%02X>' % i for i in range(256)] + [text for text in learned['vocab']]
    vocab = {text: i for i, text in enumerate(texts)}
    model = models.BPE(vocab, [tuple(pair) for pair in learned['merges']], unk_token='<unk>', fuse_unk=True,
                       byte_fallback=True)
    back = [decoders.Replace('\u2581', ' '), decoders.ByteFallback(), decoders.Fuse()]
    if style == 'llama':
        parts = dict(normalizer=normalizers.Sequence([normalizers.Prepend('\u2581'),
                                                      normalizers.Replace(' ', '\u2581')]))
    elif style == 'mistral':
        parts = dict(pre_tokenizer=pre_tokenizers.Metaspace(prepend_scheme='first', split=False))
    else:
        parts = dict(normalizer=normalizers.Replace(' ', '\u2581'),
                     pre_tokenizer=pre_tokenizers.Split(' ', 'merged_with_previous', invert=False))
    if style != 'gemma':
        back.append(decoders.Strip(' ', 1, 0))
    first = [('<unk>', True, False), ('<s>', True, False), ('</s>', True, False)]
    tokenizer = tokenizer_of(model, first + specials, decoder=decoders.Sequence(back), **parts)
    return begins_with(tokenizer, '<s>')


def old_style(folder, change):
    path = os.path.join(folder, 'config.json')
    with open(path) as file:
        config = json.load(file)
    change(config)
    with open(path, 'w') as file:
        json.dump(config, file, indent=1, sort_keys=True)
        file.write('\n')


def numbers_for(model):
    for name, parameter in model.named_parameters():
        noise = torch.randn_like(parameter)
        if parameter.dim() > 1:
            into = parameter.shape[-2] if '.c_' in name else parameter.shape[-1]
            parameter.data = noise * (0.5 if 'embed' in name or 'wte' in name or 'wpe' in name else 1.3 / into ** 0.5)
        elif name.endswith('bias') or 'Gemma' in type(model).__name__:
            parameter.data = 0.2 * noise
        else:
            parameter.data = 1 + 0.2 * noise


def greedy(model, ids, count, words):
    for _ in range(count):
        ids = torch.cat([ids, model(ids[None]).logits[0, -1, :words].argmax()[None]])
    return ids[-count:]


def write(name, model_type, tokenizer, dtype, change=None, split=False, **settings):
    torch.manual_seed(len(name) + 7)
    folder = os.path.join(OUT, name)
    base = dict(vocab_size=tokenizer.get_vocab_size() + 3, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                num_key_value_heads=2, intermediate_size=64, max_position_embeddings=64)
    if model_type == 'GPT2':
        base = dict(vocab_size=base['vocab_size'], n_embd=32, n_layer=2, n_head=4, n_positions=64)
    config_type = model_type + ('Text' if model_type == 'Gemma3' else '') + 'Config'
    config = getattr(transformers, config_type)(**dict(base, **settings))
    end = 'LMHeadModel' if model_type == 'GPT2' else 'ForCausalLM'
    model = getattr(transformers, model_type + end)(config)
    numbers_for(model)
    model.to(dtype).save_pretrained(folder, max_shard_size='60KB' if split else '1GB')
    tokenizer.save(os.path.join(folder, 'tokenizer.json'))
    if change:
        old_style(folder, change)
    model = getattr(transformers, model_type + end).from_pretrained(folder, dtype=torch.float64,
                                                                     attn_implementation='eager',
                                                                     experts_implementation='eager').eval()
    ids = torch.tensor([(5 + 37 * i) % tokenizer.get_vocab_size() for i in range(20)])
    with torch.no_grad():
        logits, after = model(ids[None]).logits[0], greedy(model, ids, 12, tokenizer.get_vocab_size())
    numpy.savez_compressed(os.path.join(folder, 'golden.npz'), ids=ids.numpy(), greedy_exact=after.numpy(),
                           logits_exact=logits.float().numpy())
    rows = []
    for text in TEXTS:
        tokenizer.encode_special_tokens = True
        plain = tokenizer.encode(text, add_special_tokens=False).ids
        tokenizer.encode_special_tokens = False
        within = tokenizer.encode(text, add_special_tokens=False).ids
        rows.append(dict(text=text, ids=tokenizer.encode(text).ids, ids_no_special=plain,
                         detokenised_hex=tokenizer.decode(within, skip_special_tokens=False).encode().hex()))
    with open(os.path.join(folder, 'golden.json'), 'w') as file:
        json.dump(rows, file)
        file.write('\n')
    top = logits.topk(2).values
    print(name, 'logits', float(logits.abs().max()), 'closest', float((top[:, 0] - top[:, 1]).min()),
          sum(os.path.getsize(os.path.join(folder, f)) for f in os.listdir(folder)))


def main():
    shutil.rmtree(OUT, ignore_errors=True)
    chat = [('<s>', True, False), ('</s>', True, False), ('<|end|>', True, False), ('<tool>', False, False)]
    phi = [('<|end|>', True, True), ('<|mark|>', True, True), ('<tool>', False, False)]
    llama3 = bytes_bpe(LLAMA3, chat, bos='<s>', ignore_merges=True)
    write('llama3', 'Llama', llama3, torch.bfloat16, split=True, head_dim=32, num_attention_heads=2,
          num_key_value_heads=1, eos_token_id=[3, 291],
          rope_parameters=dict(rope_type='llama3', rope_theta=500.0, factor=8.0, low_freq_factor=1.0,
                               high_freq_factor=4.0, original_max_position_embeddings=32))
    def plain_rope(config):
        config['rope_theta'] = config.pop('rope_parameters')['rope_theta']
    write('llama2', 'Llama', pieces_bpe([('<tool>', False, False)], 'llama'), torch.float16, plain_rope,
          num_key_value_heads=4, eos_token_id=2)
    write('mistral', 'Mistral', pieces_bpe([('<tool>', False, False)], 'mistral'), torch.bfloat16, sliding_window=8)
    qwen = bytes_bpe(QWEN, chat[1:], normalizer=normalizers.NFC())
    write('qwen2', 'Qwen2', qwen, torch.bfloat16, tie_word_embeddings=True)
    write('qwen3', 'Qwen3', qwen, torch.bfloat16, head_dim=16, num_attention_heads=3, num_key_value_heads=1,
          rope_parameters=dict(rope_type='yarn', rope_theta=1000.0, factor=4.0, original_max_position_embeddings=16))
    write('qwen3moe', 'Qwen3Moe', qwen, torch.bfloat16, head_dim=8, num_experts=4, num_experts_per_tok=2,
          moe_intermediate_size=32, norm_topk_prob=False)
    gemma = pieces_bpe([('<tool>', False, False), ('\n\n', False, False), ('\n\n\n', False, False)], 'gemma')
    write('gemma', 'Gemma', gemma, torch.bfloat16, head_dim=16, num_key_value_heads=1)
    write('gemma2', 'Gemma2', gemma, torch.bfloat16, head_dim=8, sliding_window=8, query_pre_attn_scalar=12)
    def gemma3(config):
        ropes = config.pop('rope_parameters')
        config['rope_theta'] = ropes['full_attention']['rope_theta']
        config['rope_local_base_freq'] = ropes['sliding_attention']['rope_theta']
        config['rope_scaling'] = dict(rope_type='linear', factor=8.0)
        del config['layer_types']
        config['sliding_window_pattern'] = 2
    write('gemma3', 'Gemma3', gemma, torch.bfloat16, gemma3, head_dim=8, sliding_window=8, query_pre_attn_scalar=8,
          layer_types=['sliding_attention', 'full_attention'])
    short = [1.0, 1.1, 1.3]
    def phi3(config):
        config['rope_scaling'] = config.pop('rope_parameters')
        config['rope_theta'] = config['rope_scaling'].pop('rope_theta')
        config['rope_scaling']['type'] = config['rope_scaling'].pop('rope_type')
        for name in list(config['rope_scaling']):
            if name not in ('type', 'short_factor', 'long_factor'):
                config.setdefault(name, config['rope_scaling'].pop(name))
    write('phi3', 'Phi3', pieces_bpe(phi, 'llama'), torch.bfloat16, phi3, pad_token_id=0, sliding_window=12,
          original_max_position_embeddings=32, partial_rotary_factor=0.75, eos_token_id=2, bos_token_id=1,
          rope_parameters=dict(rope_type='longrope', rope_theta=10000.0, short_factor=short,
                               long_factor=[2.0, 3.0, 4.0], partial_rotary_factor=0.75,
                               original_max_position_embeddings=32))
    write('gpt2', 'GPT2', bytes_bpe(None, [('<|end|>', True, False), ('<tool>', False, False)]), torch.float16,
          eos_token_id=290, bos_token_id=290)
    write('mixtral', 'Mixtral', pieces_bpe([('<tool>', False, False)], 'mistral'), torch.bfloat16, num_local_experts=3,
          num_experts_per_tok=2, intermediate_size=32)


main()
