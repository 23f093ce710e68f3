/* SPDX-License-Identifier: MIT */
#include "layer/feature_map.h"

#define TN_FEATURE_MAP(name) extern const struct tn_feature_row tn_map_##name;
#include "layer/feature_maps.def"
#undef TN_FEATURE_MAP

#define TN_FEATURE_MAP(name) &tn_map_##name.about,
const tarn_table_row *const tn_feature_rows[] = {
#include "layer/feature_maps.def"
    NULL,
};
#undef TN_FEATURE_MAP

const tarn_table_row *tarn_feature_map(size_t index)
{
    return tn_row_at(tn_feature_rows, index);
}

tarn_status tn_feature_map_init(struct tn_feature_map *map, const char *spec, size_t D,
                                const struct tn_kernels *kernels, tarn_error *err)
{
    const tarn_table_row *about = NULL;

    *map = (struct tn_feature_map){.kernels = kernels, .D = D};
    const tarn_status status =
        tn_option_choose(&about, &map->options, tn_feature_rows, "feature_map", spec, err);

    if (status != TARN_OK)
        return status;
    map->row = (const struct tn_feature_row *)about; /* its first member */
    map->C = map->row->features(map);
    if (map->C == 0)
        return tn_fail(err, TARN_EINVAL,
                       "feature_map: '%s' makes too many features of a query_width of %zu",
                       about->name, D);
    return TARN_OK;
}

void tn_feature_map_forward(const struct tn_feature_map *map, float *phi, ptrdiff_t ldphi,
                            const float *x, ptrdiff_t ldx, size_t n)
{
    if (map->row->forward_rows)
        map->row->forward_rows(map, phi, ldphi, x, ldx, n);
    else
        for (size_t i = 0; i < n; i++, phi += ldphi, x += ldx)
            map->row->forward(map, phi, x);
}

void tn_feature_map_backward(const struct tn_feature_map *map, float *dx, ptrdiff_t lddx,
                             const float *dphi, ptrdiff_t lddphi, const float *x, ptrdiff_t ldx,
                             const float *phi, ptrdiff_t ldphi, size_t n, bool streams)
{
    if (map->row->backward_rows)
        map->row->backward_rows(map, dx, lddx, dphi, lddphi, x, ldx, phi, ldphi, n, streams);
    else
        for (size_t i = 0; i < n; i++, dx += lddx, dphi += lddphi, x += ldx)
            map->row->backward(map, dx, dphi, x);
}

size_t tn_feature_map_draws(const struct tn_feature_map *map)
{
    return map->row && map->row->draws ? map->row->draws(map) : 0;
}

void tn_feature_map_draw(const struct tn_feature_map *map, struct tn_random *random)
{
    if (map->row && map->row->draw)
        map->row->draw(map, random);
}
