/* SPDX-License-Identifier: MIT */
/* known_sets.c - the table of published sets. A set is one row. */
#include <string.h>

#include "base/base.h"
#include "tarn/data.h"

static const tarn_data_file mnist[] = {
    {"mnist/train-images-idx3-ubyte.gz", 9912422,
     "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"},
    {"mnist/train-labels-idx1-ubyte.gz", 28881,
     "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"},
    {"mnist/t10k-images-idx3-ubyte.gz", 1648877,
     "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"},
    {"mnist/t10k-labels-idx1-ubyte.gz", 4542,
     "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"},
    {0},
};

static const tarn_data_file cifar10[] = {
    {"cifar-10-batches-bin/data_batch_1.bin", 30730000,
     "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"},
    {"cifar-10-batches-bin/data_batch_2.bin", 30730000,
     "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"},
    {"cifar-10-batches-bin/data_batch_3.bin", 30730000,
     "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"},
    {"cifar-10-batches-bin/data_batch_4.bin", 30730000,
     "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"},
    {"cifar-10-batches-bin/data_batch_5.bin", 30730000,
     "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"},
    {"cifar-10-batches-bin/test_batch.bin", 30730000,
     "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"},
    {0},
};

static const tarn_data_set sets[] = {
    {
        .name = "mnist",
        .about = "handwritten digits, 28 x 28 grey: 60,000 for training, 10,000 for validation",
        .licence = "copyright Y. LeCun and C. Cortes; commonly given as CC BY-SA 3.0",
        .address = "https://ossci-datasets.s3.amazonaws.com/mnist",
        .folder = "mnist",
        .files = mnist,
    },
    {
        .name = "cifar10",
        .about = "photographs of ten classes, 32 x 32 in colour: 50,000 for training, 10,000 "
                 "for validation",
        .licence = "none stated; please cite A. Krizhevsky, Learning Multiple Layers of "
                   "Features from Tiny Images, 2009",
        .address = "https://www.cs.toronto.edu/~kriz",
        .folder = "cifar-10-batches-bin",
        .archive = {"cifar-10-binary.tar.gz", 170052171,
                    "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"},
        .files = cifar10,
    },
};

const tarn_data_set *tarn_data_set_at(size_t index)
{
    return index < sizeof sets / sizeof sets[0] ? &sets[index] : NULL;
}

const tarn_data_set *tarn_data_set_find(const char *name)
{
    for (size_t i = 0; name && i < sizeof sets / sizeof sets[0]; i++)
        if (strcmp(sets[i].name, name) == 0)
            return &sets[i];
    return NULL;
}
