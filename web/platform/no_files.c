/* SPDX-License-Identifier: MIT */
/* no_files.c - writing files where there are none. Streams are packed into memory instead. */
#include "file/file_writer.h"

static tarn_status refuse(tarn_error *err)
{
    return tn_fail(err, TARN_EIO, "there are no files in WebAssembly");
}

tarn_status tn_file_writer_open(struct tn_file_writer *writer, const char *path,
                                tarn_error *err)
{
    (void)writer;
    (void)path;
    return refuse(err);
}

tarn_status tn_file_writer_put(struct tn_file_writer *writer, const void *data, size_t bytes,
                               tarn_error *err)
{
    (void)writer;
    (void)data;
    (void)bytes;
    return refuse(err);
}

tarn_status tn_file_writer_read(struct tn_file_writer *writer, void *data, size_t bytes,
                                uint64_t *size, tarn_error *err)
{
    (void)writer;
    (void)data;
    (void)bytes;
    (void)size;
    return refuse(err);
}

tarn_status tn_file_writer_commit(struct tn_file_writer *writer, tarn_error *err)
{
    (void)writer;
    return refuse(err);
}

void tn_file_writer_discard(struct tn_file_writer *writer)
{
    (void)writer;
}
