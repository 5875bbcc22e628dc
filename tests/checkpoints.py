#!/usr/bin/env python3
"""Checks what test_checkpoints.c and test_modules.c cannot check: whether PyTorch reads the files that we write.

    python3 checkpoints.py values FILE ...      reads the files that test_checkpoints.c has written
    python3 checkpoints.py train FOLDER         continues trainings that test_modules.c has begun, and begins others
    python3 checkpoints.py tied FOLDER          does the same with a model of tied weights

Prints "checked: ..." with exit status 0.  If a package is missing, prints its name with exit status 77.
"""
import sys
import zipfile

if set(sys.argv[1:]) & {'--help', '-h'}:                  # needs no package
    print(__doc__.strip())
    sys.exit(0)
if len(sys.argv) < 3 or sys.argv[1] not in ('values', 'train', 'tied'):
    sys.exit(__doc__)
try:
    import torch
except ImportError:
    print('no torch')
    sys.exit(77)
if tuple(int(n) for n in torch.__version__.split('.')[:2]) < (2, 1):
    print('torch %s is too old' % torch.__version__)
    sys.exit(77)


def load(name, **options):
    return torch.load(name, weights_only=True, **options)


def values(name):
    base = torch.arange(24, dtype=torch.float32)
    for options in {}, {'mmap': True}:
        v = load(name, **options)
        m = v['model']
        assert list(v) == ['model', 'optimizer', 'epoch', 'name', 'flag', 'nothing', 'low', 'numbers', 'empty', 'part', 'bits',
                           'types']
        assert list(m) == ['0.weight', '0.bias', 'turned', 'wide', 'last', 'none']
        assert torch.equal(m['0.weight'], torch.ones(2, 3)) and m['0.weight'].requires_grad and not m['0.bias'].requires_grad
        assert torch.equal(m['0.bias'], base[3:9:2])
        assert torch.equal(m['turned'], base.view(4, 6).t()) and m['turned'].stride() == (1, 6)
        assert torch.equal(m['wide'], base[5].expand(2, 3)) and m['wide'].stride() == (0, 0)
        assert m['last'].shape == (1, 2, 2, 2) and m['last'].is_contiguous(memory_format=torch.channels_last)
        assert m['none'].shape == (0, 3)
        where = {m[k].untyped_storage().data_ptr() for k in ('0.bias', 'turned', 'wide')}
        assert len(where | {v['bits'].untyped_storage().data_ptr()}) == 1
        m['0.bias'].fill_(-1)
        assert m['turned'][3, 0] == -1
        assert v['optimizer'] == {'state': {0: {'step': 4}, -3: {'x': 0.25}},
                                  'param_groups': [{'betas': (0.9, 0.999), 'params': []}, {'lr': -1e300}]}
        assert v['epoch'] == -7 and v['name'] == 'h\u00e9llo' and v['flag'] is True and v['nothing'] is None
        assert v['low'] == -2 ** 63 and v['numbers'] == [[1, -2, 300, 2 ** 40], [0.5, float('inf')]] and v['empty'] == {}
        assert v['part'].tolist() == [0x03020100, 0x07060504]        # a view of a storage of ten bytes
        assert v['bits'].dtype == torch.int32 and v['bits'][1] == 0x3f800000
        for k, t in v['types'].items():
            assert str(t.dtype) == 'torch.' + k and torch.equal(t, torch.tensor([0, 1, 1]).to(t.dtype)), k
        assert len(v['types']) == 12
    assert zipfile.ZipFile(name).testzip() is None


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = torch.nn.Linear(3, 4), torch.nn.Linear(4, 2)
        self.norm = torch.nn.Module()
        self.norm.register_buffer('running_mean', torch.ones(3))
        self.norm.register_buffer('num_batches_tracked', torch.tensor(7))

    def loss(self, x):
        return (torch.tanh(self.two(torch.tanh(self.one(x)))) - 0.5).square().sum()


def optimizers(net, plain):
    weights, biases = [net.one.weight, net.two.weight], [net.one.bias, net.two.bias]
    sgd = {} if plain else {'lr': 0.1, 'momentum': 0.9, 'nesterov': True, 'weight_decay': 0.01}
    adam = {} if plain else {'lr': 0.05, 'amsgrad': True, 'betas': (0.8, 0.999)}
    return {'sgd': lambda: torch.optim.SGD(net.parameters(), **sgd), 'adam': lambda: torch.optim.Adam(net.parameters(), **adam),
            'adamw': lambda: torch.optim.AdamW([{'params': weights}, {'params': biases, 'weight_decay': 0.0}],
                                               weight_decay=0.1, **adam)}


def steps(net, optimizer, x):
    for i in range(5):
        optimizer.zero_grad()
        net.loss(x).backward()
        optimizer.step()


def state(module):
    return {k: v.clone() for k, v in module.state_dict().items()}


def train(folder):
    torch.manual_seed(1)                      # the same numbers, and so the same rounding, each time
    for kind in 'sgd', 'adam', 'adamw':
        saved, after = load('%s/%s.pt' % (folder, kind)), load('%s/%s_10.pt' % (folder, kind))
        net = Net()
        optimizer = optimizers(net, True)[kind]()
        net.load_state_dict(saved['model'])
        optimizer.load_state_dict(saved['optimizer'])
        steps(net, optimizer, saved['x'])
        for k, v in net.state_dict().items():
            assert torch.allclose(v, after['model'][k], rtol=0, atol=2e-6), (kind, k, v, after['model'][k])
        for one, other in zip(optimizer.state_dict()['param_groups'], after['optimizer']['param_groups']):
            assert {k: v for k, v in one.items() if k != 'fused'} == {k: v for k, v in other.items() if k != 'fused'}, (one, other)
        for i, its in optimizer.state_dict()['state'].items():
            for k, v in its.items():
                assert torch.allclose(v, after['optimizer']['state'][i][k], rtol=1e-5, atol=2e-6), (kind, i, k)
        net = Net()
        optimizer = optimizers(net, False)[kind]()
        steps(net, optimizer, saved['x'])
        saved = {'model': state(net), 'optimizer': optimizer.state_dict(), 'epoch': 5}
        torch.save(saved, '%s/%s_torch.pt' % (folder, kind))
        steps(net, optimizer, load('%s/%s.pt' % (folder, kind))['x'])
        saved = load('%s/%s_torch.pt' % (folder, kind))
        saved['after'] = state(net)
        torch.save(saved, '%s/%s_torch.pt' % (folder, kind))


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = torch.nn.Linear(2, 2, bias=False), torch.nn.Linear(2, 2, bias=False)
        self.head.weight = self.embed.weight
        with torch.no_grad():
            self.embed.weight.fill_(0.5)
        self.one, self.two = torch.nn.Module(), torch.nn.Module()
        self.one.register_buffer('running_mean', torch.zeros(3))
        self.two.register_buffer('running_mean', self.one.running_mean)

    def step(self, optimizer):
        optimizer.zero_grad()
        ((self.embed.weight * self.embed.weight) @ self.head.weight).sum().backward()
        optimizer.step()


def tied(folder):
    saved = load(folder + '/a.pt')
    model = saved['model']
    assert list(model) == ['embed.weight', 'head.weight', 'one.running_mean', 'two.running_mean'], list(model)
    for one, other in ('embed.weight', 'head.weight'), ('one.running_mean', 'two.running_mean'):
        assert model[one].untyped_storage().data_ptr() == model[other].untyped_storage().data_ptr()
    net = Tied()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    net.load_state_dict(model)
    optimizer.load_state_dict(saved['optimizer'])
    net.step(optimizer)
    assert abs(net.head.weight[0, 0].item() - 0.3034) < 5e-5, net.head.weight
    net = Tied()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    net.step(optimizer)
    torch.save({'model': net.state_dict(), 'optimizer': optimizer.state_dict()}, folder + '/b.pt')


if __name__ == '__main__':
    for name in sys.argv[2:]:
        globals()[sys.argv[1]](name)
    print('checked: %d files by torch %s' % (len(sys.argv) - 2, torch.__version__))
