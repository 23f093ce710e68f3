#!/bin/sh
# SPDX-License-Identifier: MIT
# train.sh - the bits/dim column of Table 2, small; train_images.sh says what may be set.
page=$(cd "$(dirname "$0")" && pwd)
preset=small
batch=4
minutes=5
test_batches=250
images=4
title='CIFAR-10, 4 layers of 4 heads, one thread: training'
. "$page/../train_images.sh"
