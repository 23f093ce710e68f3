/* SPDX-License-Identifier: MIT */
#include "file/tensor_file.h"

#include "file/npz.h"
#include "file/pth.h"
#include "file/zip.h"

/* torch.save() stores its entries, so that what they hold is less than the file. NumPy may
 * deflate them; numbers that have been learnt barely shrink by that, and what grows 64 times is
 * none. */
enum { NPZ_RATIO = 64, NPZ_LEAST = 1 << 20 };

static size_t npz_most(size_t size)
{
    return size > (SIZE_MAX - NPZ_LEAST) / NPZ_RATIO / 2 ? SIZE_MAX / 2
                                                         : NPZ_RATIO * size + NPZ_LEAST;
}

static bool has_pickle(const struct tn_bytes *bytes)
{
    static const char name[] = "data.pkl"; /* near the beginning: it is the first entry */
    const size_t end = tn_min(bytes->size, 1024), length = sizeof name - 1;

    for (size_t at = 0; at + length <= end; at++) {
        size_t same = 0;

        while (same < length && bytes->data[at + same] == (unsigned char)name[same])
            same++;
        if (same == length)
            return true;
    }
    return false;
}

static tarn_status parse_zip(struct tn_safetensors *out, enum tn_tensor_format *format,
                             const struct tn_bytes *bytes, const char *name, tarn_error *err)
{
    const bool torch = has_pickle(bytes);
    struct tn_zip zip;
    tarn_status status =
        tn_zip_read(&zip, bytes, torch ? bytes->size : npz_most(bytes->size), name, err);

    if (status != TARN_OK)
        return status;
    *format = tn_pth_pickle(&zip) ? TN_FORMAT_PTH : TN_FORMAT_NPZ;
    status = *format == TN_FORMAT_PTH ? tn_pth_parse_zip(out, &zip, name, err)
                                      : tn_npz_parse_zip(out, &zip, name, err);
    tn_zip_free(&zip);
    return status;
}

tarn_status tn_tensor_file_parse(struct tn_safetensors *out, enum tn_tensor_format *format,
                                 struct tn_bytes *bytes, const char *name, tarn_error *err)
{
    tarn_status status;

    *out = (struct tn_safetensors){0};
    if (tn_is_zip(bytes)) {
        status = parse_zip(out, format, bytes, name, err);
        if (status == TARN_OK)
            tn_bytes_free(bytes);
        return status;
    }
    *format = tn_is_old_pth(bytes) ? TN_FORMAT_PTH : TN_FORMAT_SAFETENSORS;
    return *format == TN_FORMAT_PTH ? tn_pth_parse_old(out, bytes, name, err)
                                    : tn_safetensors_parse(out, bytes, name, err);
}

tarn_status tn_tensor_file_read(struct tn_safetensors *out, enum tn_tensor_format *format,
                                const char *path, tarn_error *err)
{
    struct tn_bytes bytes;
    tarn_status status = tn_bytes_read(&bytes, path, SIZE_MAX / 2, err);

    *out = (struct tn_safetensors){0};
    if (status == TARN_OK)
        status = tn_tensor_file_parse(out, format, &bytes, path, err);
    tn_bytes_free(&bytes);
    return status;
}
