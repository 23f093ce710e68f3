/* SPDX-License-Identifier: MIT */
/* unpack.c - a tar archive is a header of 512 bytes, the data of a member up to a multiple of
 * that, and so on; a header of zeros is the end. The archive is read once, front to back, by
 * zlib, which takes what is not gzip as it is. */
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64
#include "file/unpack.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/written.h"
#include "file/file_bytes.h"
#include "file/file_writer.h"

enum { BLOCK = 512, BUFFER = 1 << 16, SUM = 148, SUM_BYTES = 8, NAME = 256 };

struct reading {
    gzFile file;
    const char *path;
    tarn_error *err;
};

static tarn_status refuse(const struct reading *r, const char *what)
{
    return tn_fail_path(r->err, TARN_EFORMAT, r->path, "%s", what);
}

/* After gzread() returned less than was asked for. */
static tarn_status failed(const struct reading *r, int got)
{
    int code = Z_OK;
    const char *const text = gzerror(r->file, &code);

    if (code == Z_ERRNO)
        return tn_fail_errno(r->err, r->path);
    if (code == Z_MEM_ERROR)
        return tn_fail_path(r->err, TARN_ENOMEM, r->path, "not enough memory to unpack it");
    return refuse(r, got < 0 && code != Z_BUF_ERROR
                         ? text
                         : "ends too early; truncated, or not a tar archive");
}

/* Exactly so many bytes. */
static tarn_status take(const struct reading *r, void *out, size_t bytes)
{
    const int got = gzread(r->file, out, (unsigned)bytes);

    TN_WRITTEN(out, bytes);
    return got >= 0 && (size_t)got == bytes ? TARN_OK : failed(r, got);
}

/* ---- Headers ------------------------------------------------------------ */

/* One member. */
struct member {
    char name[NAME + 1]; /* "" after the last */
    uint64_t bytes;
    bool is_file;
};

/* Octal digits between blanks; false: something else. */
static bool octal(uint64_t *number, const unsigned char *text, size_t width)
{
    size_t i = 0;

    while (i < width && text[i] == ' ')
        i++;
    for (*number = 0; i < width && text[i] >= '0' && text[i] <= '7'; i++)
        *number = *number << 3 | (uint64_t)(text[i] - '0');
    return i == width || text[i] == ' ' || text[i] == '\0';
}

/* The sum of all bytes, with blanks in the place of the sum itself. */
static bool sum_is_right(const unsigned char header[BLOCK])
{
    uint64_t sum = SUM_BYTES * ' ', claimed;

    for (size_t i = 0; i < BLOCK; i++)
        sum += i >= SUM && i < SUM + SUM_BYTES ? 0 : header[i];
    return octal(&claimed, header + SUM, SUM_BYTES) && claimed == sum;
}

/* "prefix/name", neither of which ends in a zero byte if it fills its field. */
static void read_name(char name[NAME + 1], const unsigned char header[BLOCK])
{
    const bool ustar = memcmp(header + 257, "ustar", 6) == 0; /* GNU's differ */
    const size_t prefix = ustar ? strnlen((const char *)header + 345, 155) : 0;
    const size_t length = strnlen((const char *)header, 100);

    memcpy(name, header + 345, prefix);
    name[prefix] = '/';
    memcpy(name + prefix + (prefix > 0), header, length);
    name[prefix + (prefix > 0) + length] = '\0';
}

static tarn_status next_member(struct member *member, const struct reading *r)
{
    static const unsigned char zeros[BLOCK];
    unsigned char header[BLOCK];
    const tarn_status status = take(r, header, BLOCK);

    *member = (struct member){.bytes = 0};
    if (status != TARN_OK || memcmp(header, zeros, BLOCK) == 0)
        return status;
    if (!sum_is_right(header) || !octal(&member->bytes, header + 124, 12))
        return refuse(r, "not a tar archive, or damaged");
    read_name(member->name, header);
    member->is_file = header[156] == '0' || header[156] == '\0';
    return *member->name ? TARN_OK : refuse(r, "has a member without a name");
}

/* ---- Members ------------------------------------------------------------ */

/* The data of a member into a file, or nowhere, and what fills its last block. */
static tarn_status copy(const struct reading *r, const struct member *member,
                        struct tn_file_writer *writer)
{
    unsigned char buffer[BUFFER];
    const size_t filling = (size_t)(-member->bytes & (BLOCK - 1));
    tarn_status status = TARN_OK;

    for (uint64_t left = member->bytes; left > 0 && status == TARN_OK;) {
        const size_t some = left < BUFFER ? (size_t)left : BUFFER;

        if ((status = take(r, buffer, some)) == TARN_OK && writer)
            status = tn_file_writer_put(writer, buffer, some, r->err);
        left -= some;
    }
    return status == TARN_OK ? take(r, buffer, filling) : status;
}

/* Into a file that is not there before the whole archive was read. */
static tarn_status write_member(const struct reading *r, const struct member *member,
                                const struct tn_unpack *want, struct tn_file_writer *writer)
{
    tarn_status status;

    if (member->bytes != want->bytes)
        return tn_fail_path(r->err, TARN_EFORMAT, r->path,
                            "%s has %s bytes than the expected %ju", want->member,
                            member->bytes < want->bytes ? "fewer" : "more",
                            (uintmax_t)want->bytes);
    if ((status = tn_file_writer_open(writer, want->path, r->err)) == TARN_OK)
        status = copy(r, member, writer);
    return status;
}

static const struct tn_unpack *find(const struct tn_unpack *wanted, size_t count,
                                    const struct member *member)
{
    for (size_t i = 0; i < count && member->is_file; i++)
        if (strcmp(member->name, wanted[i].member) == 0)
            return &wanted[i];
    return NULL;
}

/* Where a member is there twice, the first is taken. */
static tarn_status walk(const struct reading *r, const struct tn_unpack *wanted, size_t count,
                        struct tn_file_writer *writers)
{
    struct member member;
    size_t found = 0;

    while (found < count) {
        tarn_status status = next_member(&member, r);

        if (status != TARN_OK)
            return status;
        if (!*member.name)
            return tn_fail_path(r->err, TARN_EFORMAT, r->path,
                                "contains only %zu of the %zu expected files", found, count);
        const struct tn_unpack *const want = find(wanted, count, &member);

        if (!want || writers[want - wanted].path) {
            status = copy(r, &member, NULL);
        } else {
            status = write_member(r, &member, want, &writers[want - wanted]);
            found++;
        }
        if (status != TARN_OK)
            return status;
    }
    return TARN_OK;
}

/* The checksum of gzip is after its last byte. */
static tarn_status read_rest(const struct reading *r)
{
    unsigned char buffer[BUFFER];
    int got, code = Z_OK;

    while ((got = gzread(r->file, buffer, BUFFER)) > 0)
        continue;
    gzerror(r->file, &code);
    return got == 0 && (code == Z_OK || code == Z_STREAM_END) ? TARN_OK : failed(r, got);
}

/* ---- All of it ---------------------------------------------------------- */

/* zlib closes the descriptor with its file. */
static tarn_status open_archive(struct reading *r)
{
    const int file = open(r->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

    if (file < 0)
        return tn_fail_errno(r->err, r->path);
    r->file = gzdopen(file, "rb");
    if (r->file)
        return TARN_OK;
    close(file);
    return tn_fail_path(r->err, TARN_ENOMEM, r->path, "not enough memory to unpack it");
}

tarn_status tn_unpack_tar(const char *archive, const struct tn_unpack *wanted, size_t count,
                          tarn_error *err)
{
    struct reading r = {.path = archive, .err = err};
    struct tn_file_writer *const writers = malloc((count + 1) * sizeof *writers);
    tarn_status status;

    if (!writers)
        return tn_fail(err, TARN_ENOMEM, "not enough memory to unpack %zu files", count);
    for (size_t i = 0; i < count; i++)
        writers[i] = (struct tn_file_writer){.file = -1};
    if ((status = open_archive(&r)) == TARN_OK &&
        (status = walk(&r, wanted, count, writers)) == TARN_OK)
        status = read_rest(&r);
    if (r.file)
        gzclose(r.file);
    for (size_t i = 0; i < count && status == TARN_OK; i++)
        status = tn_file_writer_commit(&writers[i], err);
    for (size_t i = 0; i < count; i++)
        tn_file_writer_discard(&writers[i]);
    free(writers);
    return status;
}
