"""Makes the network of finetune.c with PyTorch, and checks the file that finetune saves.  Needs PyTorch 2.6 or later.

    python3 examples/finetune_network.py --make              trains the network on the digits 0 to 3, and writes
                                                             examples/data/four_digits.pt2
    python3 examples/finetune_network.py --check FILE        loads the file that finetune saved, and prints how many
                                                             of the 359 test images are classified correctly
"""
import argparse
import os

here = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(here, 'data', 'four_digits.pt2')
parser = argparse.ArgumentParser(description='The network of finetune.c.')
parser.add_argument('--make', action='store_true', help='train it on four digits and write ' + PROGRAM)
parser.add_argument('--check', metavar='FILE', help='load what finetune saved and test it')
args = parser.parse_args()

import torch
from torch import nn


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(),
                                      nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.head = nn.Sequential(nn.Linear(256, 32), nn.ReLU(), nn.Linear(32, 10))

    def forward(self, images):
        return self.head(self.features(images).flatten(1))


def digits():
    """Returns the images (1797, 1, 8, 8), with values in 0..1, and their labels.  Every fifth image is for the test."""
    rows = [line.split() for line in open(os.path.join(here, 'data', 'digits.txt')) if not line.startswith('#')]
    images = torch.tensor([[int(c, 17) / 16 for c in pixels] for pixels, _ in rows]).reshape(-1, 1, 8, 8)
    labels = torch.tensor([int(label) for _, label in rows])
    held_out = torch.arange(len(rows)) % 5 == 4
    return images, labels, held_out


def right(network, images, labels):
    with torch.no_grad():
        return int((network(images).argmax(1) == labels).sum())


def make():
    torch.manual_seed(0)
    images, labels, held_out = digits()
    four = labels < 4
    train, test = four & ~held_out, four & held_out
    network = Network()
    adam = torch.optim.Adam(network.parameters(), lr=2e-3)
    for epoch in range(15):
        for part in torch.randperm(int(train.sum())).split(64):
            adam.zero_grad()
            loss = nn.functional.cross_entropy(network(images[train][part]), labels[train][part])
            loss.backward()
            adam.step()
    print(f'of the digits 0 to 3: {right(network, images[test], labels[test])} of {int(test.sum())}; '
          f'of all ten: {right(network, images[held_out], labels[held_out])} of {int(held_out.sum())}')
    program = torch.export.export(network, (images[:2].clone(),), dynamic_shapes=({0: torch.export.Dim('batch')},))
    torch.export.save(program, PROGRAM)


def check(path):
    images, labels, held_out = digits()
    network = Network()
    network.load_state_dict(torch.load(path, weights_only=True))
    print(f'PyTorch, with {path}: {right(network, images[held_out], labels[held_out])} of {int(held_out.sum())}')


if args.make:
    make()
if args.check:
    check(args.check)
