/* SPDX-License-Identifier: MIT */
/* kernel_body_vector.h - the words of the vector loops: vectors, the ends of rows that do not
 * fill one, walks over rows, and what is taken over all lanes. */
typedef float vec __attribute__((vector_size(4 * LANES)));
typedef int32_t ivec __attribute__((vector_size(4 * LANES)));
typedef uint32_t uvec __attribute__((vector_size(4 * LANES)));
typedef float vec_anywhere __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int32_t ivec_anywhere __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

/* Small inner loops over constant counts must unroll, or their arrays are not registers. */
#define FORCE_INLINE static inline __attribute__((always_inline))

enum { PAIR = 2, FOUR = 4 }; /* vectors side by side: in the register tiles, in other loops */

FORCE_INLINE vec load(const float *p)
{
    return *(const vec_anywhere *)p;
}

FORCE_INLINE void store(float *p, vec v)
{
    *(vec_anywhere *)p = v;
}

FORCE_INLINE ivec load_int(const int32_t *p)
{
    return *(const ivec_anywhere *)p;
}

FORCE_INLINE vec splat(float x)
{
    return (vec){0} + x;
}

/* Rows that are not read again soon need not push others out of the cache. */
#ifdef STREAM
FORCE_INLINE bool can_stream(const float *y, ptrdiff_t ldy)
{
    return ((uintptr_t)y | ((uintptr_t)ldy * sizeof(float))) % sizeof(vec) == 0;
}
#else
#define STREAM(p, v) store(p, v)
#define STREAMED() (void)0

FORCE_INLINE bool can_stream(const float *y, ptrdiff_t ldy)
{
    (void)y;
    (void)ldy;
    return false;
}
#endif

FORCE_INLINE void put(float *p, vec v, bool streams)
{
    if (streams)
        STREAM(p, v);
    else
        store(p, v);
}

typedef float quad __attribute__((vector_size(16)));
typedef float quad_anywhere __attribute__((vector_size(16), aligned(4), may_alias));
typedef float half_quad __attribute__((vector_size(8)));

/* The first n < 4 floats at p, 0 < n; the others are those of fill. */
FORCE_INLINE quad load_quad(const float *p, size_t n, quad fill)
{
    half_quad low;

    if (n < 2)
        return (quad){p[0], fill[1], fill[2], fill[3]};
    memcpy(&low, p, sizeof low);
    return (quad){low[0], low[1], n > 2 ? p[2] : fill[2], fill[3]};
}

FORCE_INLINE void store_quad(float *p, quad v, size_t n)
{
    const half_quad low = {v[0], v[1]};

    if (n < 2)
        p[0] = v[0];
    else
        memcpy(p, &low, sizeof low);
    if (n > 2)
        p[2] = v[2];
}

/* The last n < LANES floats of a row, 0 < n; the other lanes are `fill`. A memcpy() of n floats
 * would be a call, and take longer than what most loops do with a vector; in halves or one lane
 * after the other, the vector stays in its register. */
#ifndef LOAD_TAIL
#define LOAD_TAIL(p, n, fill) load_lanes(p, n, fill)
#define STORE_TAIL(p, v, n) store_lanes(p, v, n)

#if LANES == 4
FORCE_INLINE vec load_lanes(const float *p, size_t n, vec fill)
{
    return load_quad(p, n, fill);
}

FORCE_INLINE void store_lanes(float *p, vec v, size_t n)
{
    store_quad(p, v, n);
}
#else
FORCE_INLINE vec load_lanes(const float *p, size_t n, vec fill)
{
    for (size_t i = 0; i < LANES - 1; i++)
        if (i < n)
            fill[i] = p[i];
    return fill;
}

FORCE_INLINE void store_lanes(float *p, vec v, size_t n)
{
    for (size_t i = 0; i < LANES - 1; i++)
        if (i < n)
            p[i] = v[i];
}
#endif
#endif

#ifndef LOAD_TAIL_ZERO
#define LOAD_TAIL_ZERO(p, n) LOAD_TAIL(p, n, splat(0.0f))
#endif

/* `fill` is a constant where it is inlined. */
FORCE_INLINE vec load_tail(const float *p, size_t n, float fill)
{
    return fill == 0.0f ? LOAD_TAIL_ZERO(p, n) : LOAD_TAIL(p, n, splat(fill));
}

FORCE_INLINE void store_tail(float *p, vec v, size_t n)
{
    STORE_TAIL(p, v, n);
}

/* Rows of `width` floats end with width % LANES that do not fill a vector: REST in `call`,
 * which is the same for all rows, so that a mask is made once. Where tails take branches, there
 * is a loop for each number, in which the compiler knows it. */
#define CASE_REST(rest, call)                                                                  \
    case rest: {                                                                               \
        enum { REST = rest };                                                                  \
        call;                                                                                  \
    } break;
#if LANES <= 8 && !defined(FULL_MASKS)
#if LANES == 4
#define MORE_RESTS(call)
#else
#define MORE_RESTS(call)                                                                       \
    CASE_REST(4, call) CASE_REST(5, call) CASE_REST(6, call) CASE_REST(7, call)
#endif
#define BY_REST(width, call)                                                                   \
    do                                                                                         \
        switch ((width) % LANES) {                                                             \
            CASE_REST(0, call)                                                                 \
            CASE_REST(1, call)                                                                 \
            CASE_REST(2, call)                                                                 \
            CASE_REST(3, call)                                                                 \
            MORE_RESTS(call)                                                                   \
        }                                                                                      \
    while (0)
#else
#define BY_REST(width, call)                                                                   \
    do                                                                                         \
        switch ((width) % LANES) {                                                             \
            CASE_REST(0, call)                                                                 \
        default: {                                                                             \
            const size_t REST = (width) % LANES;                                               \
            call;                                                                              \
        }                                                                                      \
        }                                                                                      \
    while (0)
#endif

/* The next floats of a row of which n are left, 0 < n; lanes past its end are 0. */
FORCE_INLINE vec fetch(const float *p, size_t n)
{
    return n >= LANES ? load(p) : load_tail(p, n, 0.0f);
}

FORCE_INLINE void keep(float *p, vec v, size_t n)
{
    if (n >= LANES)
        store(p, v);
    else
        store_tail(p, v, n);
}

/* `call` for each vector of a row of n floats, or for four, two and one of them side by side:
 * COUNT vectors from AT on, of which LEFT floats belong to the row. COUNT is a constant, and so
 * is LEFT but for the last vector, if that is not full. */
#define AT_ONCE(n, count, call)                                                                \
    if (AT + (count)*LANES <= (n)) {                                                           \
        enum { COUNT = count, LEFT = LANES };                                                  \
        call;                                                                                  \
        AT += (count)*LANES;                                                                   \
    }
#define AT_ALL(n, count, call)                                                                 \
    for (; AT + (count)*LANES <= (n); AT += (count)*LANES) {                                   \
        enum { COUNT = count, LEFT = LANES };                                                  \
        call;                                                                                  \
    }
#define AT_REST(n, call)                                                                       \
    if (AT < (n)) {                                                                            \
        enum { COUNT = 1 };                                                                    \
        const size_t LEFT = (n)-AT;                                                            \
        call;                                                                                  \
    }
#define BY_VECTORS(n, call)                                                                    \
    do {                                                                                       \
        size_t AT = 0;                                                                         \
        AT_ALL(n, 1, call)                                                                     \
        AT_REST(n, call)                                                                       \
    } while (0)
#define BY_PAIRS(n, call)                                                                      \
    do {                                                                                       \
        size_t AT = 0;                                                                         \
        AT_ALL(n, PAIR, call)                                                                  \
        AT_ONCE(n, 1, call)                                                                    \
        AT_REST(n, call)                                                                       \
    } while (0)
#define BY_WHOLE_FOURS(n, call) BY_FOURS_AND(n, call, )
#define BY_FOURS(n, call) BY_FOURS_AND(n, call, AT_REST(n, call))
#define BY_FOURS_AND(n, call, rest)                                                            \
    do {                                                                                       \
        size_t AT = 0;                                                                         \
        AT_ALL(n, FOUR, call)                                                                  \
        AT_ONCE(n, PAIR, call)                                                                 \
        AT_ONCE(n, 1, call)                                                                    \
        rest                                                                                   \
    } while (0)

FORCE_INLINE ivec choose_int(ivec mask, ivec yes, ivec no)
{
    return (yes & mask) | (no & ~mask);
}

FORCE_INLINE vec choose(ivec mask, vec yes, vec no)
{
    return (vec)choose_int(mask, (ivec)yes, (ivec)no);
}

#ifndef LARGER
#define LARGER(a, b) choose((a) > (b), a, b)
#define SMALLER(a, b) choose((a) < (b), a, b)
#endif

/* b where one of them is NaN. */
FORCE_INLINE vec larger(vec a, vec b)
{
    return LARGER(a, b);
}

FORCE_INLINE vec smaller(vec a, vec b)
{
    return SMALLER(a, b);
}

/* A vector with its halves, or those of all its parts of 8, 4 or 2 lanes, exchanged. */
#if defined(__clang__) || __GNUC__ >= 12
#define SHUFFLE(v, ...) __builtin_shufflevector(v, v, __VA_ARGS__)
#if LANES == 4
#define SWAP_TWOS(v) SHUFFLE(v, 2, 3, 0, 1)
#define SWAP_ONES(v) SHUFFLE(v, 1, 0, 3, 2)
#elif LANES == 8
#define SWAP_FOURS(v) SHUFFLE(v, 4, 5, 6, 7, 0, 1, 2, 3)
#define SWAP_TWOS(v) SHUFFLE(v, 2, 3, 0, 1, 6, 7, 4, 5)
#define SWAP_ONES(v) SHUFFLE(v, 1, 0, 3, 2, 5, 4, 7, 6)
#elif LANES == 16
#define SWAP_EIGHTS(v) SHUFFLE(v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7)
#define SWAP_FOURS(v) SHUFFLE(v, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11)
#define SWAP_TWOS(v) SHUFFLE(v, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13)
#define SWAP_ONES(v) SHUFFLE(v, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14)
#endif
#else /* gcc before 12 has no portable shuffle */
FORCE_INLINE vec swap_parts(vec v, int part)
{
    vec swapped;

    for (int i = 0; i < LANES; i++)
        swapped[i] = v[i ^ part];
    return swapped;
}
#define SWAP_EIGHTS(v) swap_parts(v, 8)
#define SWAP_FOURS(v) swap_parts(v, 4)
#define SWAP_TWOS(v) swap_parts(v, 2)
#define SWAP_ONES(v) swap_parts(v, 1)
#endif

/* Fixed order: halves, quarters, ... Narrower registers are added faster. */
FORCE_INLINE float sum_lanes(vec v)
{
#if LANES > 4 && (defined(__clang__) || __GNUC__ >= 12)
#if LANES == 16
    typedef float half __attribute__((vector_size(32)));
    const half sum = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
                     __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
#else
    const vec sum = v;
#endif
    typedef float quarter __attribute__((vector_size(16)));
    quarter w = __builtin_shufflevector(sum, sum, 0, 1, 2, 3) +
                __builtin_shufflevector(sum, sum, 4, 5, 6, 7);

    w += __builtin_shufflevector(w, w, 2, 3, 0, 1);
    w += __builtin_shufflevector(w, w, 1, 0, 3, 2);
    return w[0];
#else
#if LANES > 8
    v += SWAP_EIGHTS(v);
#endif
#if LANES > 4
    v += SWAP_FOURS(v);
#endif
    v += SWAP_TWOS(v);
    v += SWAP_ONES(v);
    return v[0];
#endif
}

FORCE_INLINE float max_lanes(vec v)
{
#if LANES > 8
    v = larger(v, SWAP_EIGHTS(v));
#endif
#if LANES > 4
    v = larger(v, SWAP_FOURS(v));
#endif
    v = larger(v, SWAP_TWOS(v));
    v = larger(v, SWAP_ONES(v));
    return v[0];
}
