#!/usr/bin/env python3
"""Writes detection.npz: the results of torchvision's nms and roi_align, and the gradient of roi_align.

usage: make_detection.py (with PyTorch 2 and torchvision)
"""
import os

import numpy as np
import torch
import torchvision

torch.manual_seed(0)
corner, size = torch.rand(30, 2) * 50, torch.rand(30, 2) * 30
boxes = torch.cat([corner, corner + size], 1)
scores = (torch.rand(30) * 10).round() / 10
boxes[7], scores[4] = boxes[3], float('nan')
arrays = {'boxes': boxes, 'scores': scores}
for i, most in enumerate((0.5, 0.0, 1.0)):
    arrays['kept%d' % i] = torchvision.ops.nms(boxes, scores, most)
    arrays['kept_double%d' % i] = torchvision.ops.nms(boxes.double(), scores.double(), most)
image = torch.randn(2, 3, 7, 6)
rois = torch.tensor([[0, 1., 2, 20, 30], [1, -5, -5, 8, 8], [0, 30, 30, 60, 70], [1, 3, 3, 3.2, 3.1], [0, 5, 6, 4, 2.]])
arrays.update(image=image, rois=rois)
for i, (scale, ratio, aligned) in enumerate(((0.25, 2, True), (0.25, -1, False), (1.0, 0, True), (0.5, 1, False))):
    x = image.clone().requires_grad_()
    y = torchvision.ops.roi_align(x, rois, (2, 3), scale, ratio, aligned)
    y.backward(torch.arange(y.numel()).view_as(y).float().sin())
    arrays['pooled%d' % i] = y.detach()
    arrays['slope%d' % i] = x.grad
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'detection.npz')
np.savez_compressed(path, **{name: value.numpy() for name, value in arrays.items()})
