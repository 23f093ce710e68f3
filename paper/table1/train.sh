#!/bin/sh
# SPDX-License-Identifier: MIT
# train.sh - the bits/dim column of Table 1, small; train_images.sh says what may be set.
page=$(cd "$(dirname "$0")" && pwd)
preset=small
batch=10
minutes=5
test_batches=200
images=36
recomputed=9
title='MNIST, 4 layers of 4 heads, one thread: training'
. "$page/../train_images.sh"
