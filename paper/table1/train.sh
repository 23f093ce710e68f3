#!/bin/sh
# SPDX-License-Identifier: MIT
# train.sh - measures the bits/dim column of Table 1 with small models; train_images.sh lists the
# variables that may be set.
page=$(cd "$(dirname "$0")" && pwd)
preset=small
context=1,26,27,28 # the byte before, above left, above, above right
batch=4
eval_every=200
minutes=6
test_batches=500
images=36
recomputed=9
title='MNIST, 4 layers of 4 heads, one thread: training'
. "$page/../train_images.sh"
