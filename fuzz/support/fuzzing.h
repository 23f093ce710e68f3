/* SPDX-License-Identifier: MIT */
/* fuzzing.h - what fuzzers share: checks, files of an input, and mutations that know a format.
 */
#ifndef FUZZING_H
#define FUZZING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "file/file_bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);

/* Aborts if something does not hold. */
void need(bool holds);
void need_text(const tarn_error *err); /* a sentence that ends */

/* A file with these bytes in a folder of its own in memory, which is removed at the end. The
 * name stays until the next call. */
const char *input_file(const char *name, const uint8_t *data, size_t size);
const char *input_folder(void);

/* ---- Mutations ---------------------------------------------------------- */

/* A valid input, from which mutations start: what is too short to be one becomes it. */
struct base {
    uint8_t *data;
    size_t size;
};

/* A random number below n, of a generator that *state is of. */
size_t pick(unsigned *state, size_t n);

/* Of a safetensors file the header or the data; then length and checksums are made right again,
 * most of the time: otherwise nothing behind them would ever be reached. */
size_t mutate_safetensors(uint8_t *data, size_t size, size_t most, unsigned seed,
                          const struct base *base);

/* Opcodes of a pickle are removed, repeated, exchanged and inserted, and their arguments
 * changed.
 */
size_t mutate_pickle(uint8_t *data, size_t size, size_t most, unsigned seed);

/* The contents of one entry of a zip archive, which is packed again with the right checksums:
 * pickles by mutate_pickle(). What is not an archive is mutated as bytes. */
size_t mutate_zip(uint8_t *data, size_t size, size_t most, unsigned seed, bool deflate);

#endif
