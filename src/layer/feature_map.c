/* SPDX-License-Identifier: MIT */
#include "layer/feature_map.h"

static const struct tn_feature_row *const rows[] = {
    &tn_map_elu,     &tn_map_relu,     &tn_map_square,
    &tn_map_fourier, &tn_map_positive, &tn_map_identity,
};

const struct tn_table tn_feature_maps = {"feature_map", tarn_feature_map};

const tarn_table_row *tarn_feature_map(size_t index)
{
    return index < sizeof rows / sizeof rows[0] ? &rows[index]->about : NULL;
}

tarn_status tn_feature_map_init(struct tn_feature_map *map, const char *spec, size_t D,
                                const struct tn_kernels *kernels, tarn_error *err)
{
    tarn_status status;

    *map = (struct tn_feature_map){.kernels = kernels, .D = D};
    map->row = tn_table_find(&tn_feature_maps, &map->options, spec, &status, err);
    if (!map->row)
        return status;
    map->C = map->row->features(map);
    if (map->C == 0)
        return tn_fail(err, TARN_EINVAL,
                       "feature_map: '%s' makes too many features of a query_width of %zu",
                       map->row->about.name, D);
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
