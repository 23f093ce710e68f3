/* SPDX-License-Identifier: MIT */
#include "layer/linear_ahead.h"

void tn_linear_ahead_add(struct tn_linear_ahead *ahead, const struct tn_linear_group *a,
                         tarn_input x, size_t width)
{
    const size_t i = ahead->count++;

    ahead->arrays[i].data = tn_in(x, a->b, a->h, 0);
    ahead->arrays[i].head = x.head;
    ahead->arrays[i].position = x.position;
    ahead->arrays[i].bytes = width * sizeof(float);
}

void tn_linear_ahead_add_output(struct tn_linear_ahead *ahead, const struct tn_linear_group *a,
                                tarn_output x, size_t width)
{
    tn_linear_ahead_add(ahead, a, (tarn_input){x.data, x.batch, x.position, x.head}, width);
}

void tn_linear_ahead_fetch(const struct tn_linear_ahead *ahead, size_t head, size_t i, size_t n)
{
    const size_t line = 64, end = tn_min(ahead->to, ahead->from + i + n);

    for (size_t x = 0; x < ahead->count; x++) {
        const float *const first =
            ahead->arrays[x].data + (ptrdiff_t)head * ahead->arrays[x].head;

        for (size_t at = ahead->from + i; at < end; at++) {
            const char *const row =
                (const char *)(first + (ptrdiff_t)at * ahead->arrays[x].position);

            for (size_t byte = 0; byte < ahead->arrays[x].bytes; byte += line)
                __builtin_prefetch(row + byte, 0, 2);
        }
    }
}
