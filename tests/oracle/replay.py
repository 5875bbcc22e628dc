#!/usr/bin/env python3
"""Repeats the recorded calls that come with optest.py, with two additions.

    python3 replay.py FOLDER_OF_OPTEST ./shim.so [--live] [optest's options]

If a result is an argument according to the schema (unsqueeze_, resize_, ...), it shows the sizes of the argument after
the call, for which odx_abi.h has no field.  With --live, the expected values, errors and gradients come from the
PyTorch that runs this script, for the recorded arguments.  Calls of operators that this PyTorch does not have are left
out."""
import sys
if set(sys.argv[1:]) & {'--help', '-h'}:                  # needs no package
    print(__doc__.strip())
    sys.exit(0)
if len(sys.argv) < 3 or sys.argv[1][:1] == '-':
    sys.exit(__doc__)
folder, library = sys.argv[1:3]
sys.path.insert(0, folder)
import warnings; warnings.filterwarnings('ignore')
import optest, torch

class Shown(optest.CtypesBackend):
    def call(self, name, overload, args, kwargs):
        outs = super().call(name, overload, args, kwargs)
        schema = optest.aten('aten::' + name + ('.' + overload if overload else ''))._schema
        given = dict(zip((a.name for a in schema.arguments), args), **kwargs)
        for out, ret in zip(outs, schema.returns):
            for a in schema.arguments:
                t = given.get(a.name)
                if not (a.alias_info and ret.alias_info and a.alias_info.is_write and ret.alias_info.is_write): continue
                if a.alias_info.before_set != ret.alias_info.before_set or not isinstance(t, torch.Tensor) or not isinstance(out, torch.Tensor): continue
                if t.dtype == out.dtype and t.storage().data_ptr() == out.storage().data_ptr(): t.set_(out)
        return outs

def today(s):
    """Returns the sample with the results of this PyTorch, or None if it has none that can be compared."""
    b, s = optest.TorchSelf(), dict(s)
    base, _, overload = optest.short(s['op']).partition('.')
    try: func = optest.aten(s['op'])
    except AttributeError: return None
    args, kw, leaves = optest.decode(s); torch.manual_seed(1)
    try: outs = optest.flat(b.call(base, overload, args, kw))
    except optest.BackendError as e:                  # newer bindings want lists where older ones accepted numbers
        return None if 'Expected a value of type' in str(e) else dict(s, mode='error', err=('', str(e)[:200]), grad=None)
    except Exception: return None
    try: s.update(out=[optest.enc_out(x, leaves) for x in outs], mut=[optest.enc_out(w, leaves) for w in optest.written_args(func, args, kw)])
    except Exception: return None
    if s['mode'] == 'error': s['mode'] = 'value'
    s.setdefault('grad', None)
    if s.get('grad'):
        args, kw, leaves = optest.decode(s); g = s['grad']
        try:
            got = b.grad(base, overload, args, kw, g['wrt'], [None if c is None else optest.from_bytes(c[2], c[0], c[1]) for c in g['cot']])
            s['grad'] = dict(g, exp=[None if x is None else optest.enc_out(x, []) for x in got])
        except Exception: s['grad'] = None
    return s

def main():
    rest = sys.argv[3:]
    if '--live' in rest:
        rest.remove('--live'); recorded = optest.load_samples
        optest.load_samples = lambda: [s for s in map(today, recorded()) if s]
    optest.make_backend = lambda spec: Shown(spec)
    sys.argv = ['optest.py', '--backend', library] + rest
    return optest.main()
if __name__ == '__main__': sys.exit(main())
