/* SPDX-License-Identifier: MIT */
/* safetensor.c - one tensor: its sizes, and its numbers as floats. */
#include <string.h>

#include "file/safetensors.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "numbers are copied as they are between files, which are little-endian, and memory"
#endif

static const struct {
    const char *name;
    size_t size;
} dtypes[TN_DTYPE_COUNT] = {
    [TN_DTYPE_F32] = {"F32", 4},   [TN_DTYPE_F16] = {"F16", 2}, [TN_DTYPE_BF16] = {"BF16", 2},
    [TN_DTYPE_F64] = {"F64", 8},   [TN_DTYPE_I64] = {"I64", 8}, [TN_DTYPE_I32] = {"I32", 4},
    [TN_DTYPE_I16] = {"I16", 2},   [TN_DTYPE_I8] = {"I8", 1},   [TN_DTYPE_U8] = {"U8", 1},
    [TN_DTYPE_BOOL] = {"BOOL", 1},
};

const char *tn_dtype_name(enum tn_dtype dtype)
{
    return dtypes[dtype].name;
}

size_t tn_dtype_size(enum tn_dtype dtype)
{
    return dtypes[dtype].size;
}

bool tn_safetensor_count(size_t *out, const struct tn_safetensor *t)
{
    return tn_size_product(out, t->shape, t->rank);
}

bool tn_safetensor_bytes(size_t *out, const struct tn_safetensor *t)
{
    size_t count;

    return tn_safetensor_count(&count, t) &&
           tn_size_product(out, (size_t[]){count, tn_dtype_size(t->dtype)}, 2);
}

/* ---- Floats ------------------------------------------------------------- */

static float float_of_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

/* 1 sign, 5 exponent (bias 15) and 10 fraction bits become 1, 8 (bias 127) and 23. Numbers
 * without the leading one are fraction * 2^-24, which a float holds exactly. */
static float float_of_f16(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    const uint32_t exponent = (half >> 10) & 31u, fraction = half & 1023u;

    if (exponent == 0)
        return (sign ? -1.0f : 1.0f) * (float)fraction * 0x1p-24f;
    if (exponent == 31)
        return float_of_bits(sign | 0x7f800000u | fraction << 13);
    return float_of_bits(sign | (exponent + 127 - 15) << 23 | fraction << 13);
}

static void floats_of_16(const struct tn_safetensor *t, float *out, size_t count)
{
    const unsigned char *const data = t->data;

    for (size_t i = 0; i < count; i++) {
        uint16_t bits;

        memcpy(&bits, data + i * sizeof bits, sizeof bits);
        out[i] = t->dtype == TN_DTYPE_BF16 ? float_of_bits((uint32_t)bits << 16)
                                           : float_of_f16(bits);
    }
}

static void floats_of_f64(const struct tn_safetensor *t, float *out, size_t count)
{
    const unsigned char *const data = t->data;

    for (size_t i = 0; i < count; i++) {
        double value;

        memcpy(&value, data + i * sizeof value, sizeof value);
        out[i] = (float)value;
    }
}

bool tn_safetensor_floats(const struct tn_safetensor *t, float *out)
{
    size_t count = 0;

    if (t->dtype > TN_DTYPE_F64 || !tn_safetensor_count(&count, t))
        return false;
    if (t->dtype == TN_DTYPE_F64)
        floats_of_f64(t, out, count);
    else if (t->dtype != TN_DTYPE_F32)
        floats_of_16(t, out, count);
    else if (count > 0)
        memcpy(out, t->data, count * sizeof *out);
    return true;
}
