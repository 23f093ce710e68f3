#!/bin/sh
# SPDX-License-Identifier: MIT
# train.sh - measures the bits/dim column of Table 2 with small models; train_images.sh lists the
# variables that may be set.
page=$(cd "$(dirname "$0")" && pwd)
preset=small
context=1,2,95 # the other channels, the same one to the left and above
batch=2
eval_every=100
minutes=32
test_batches=500
images=4
recomputed=1
title='CIFAR-10, 4 layers of 4 heads, one thread: training'
. "$page/../train_images.sh"
