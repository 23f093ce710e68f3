/* SPDX-License-Identifier: MIT */
#include "train/schedule.h"
#include "tarn/train.h"

#include <assert.h>

#define TN_SCHEDULE(name) extern const struct tn_schedule_row tn_sched_##name;
#include "train/schedules.def"
#undef TN_SCHEDULE

#define TN_SCHEDULE(name) &tn_sched_##name.about,
const tarn_table_row *const tn_schedule_rows[] = {
#include "train/schedules.def"
    NULL,
};
#undef TN_SCHEDULE

const tarn_table_row *tarn_schedule(size_t index)
{
    return tn_row_at(tn_schedule_rows, index);
}

static const double rate_most = 10.0;

tarn_status tn_schedule_init(struct tn_schedule *schedule, const char *spec, double rate,
                             size_t steps, tarn_error *err)
{
    const tarn_table_row *about = NULL;

    *schedule = (struct tn_schedule){.rate = rate, .steps = steps};
    const tarn_status status =
        tn_option_choose(&about, &schedule->options, tn_schedule_rows, "schedule", spec, err);

    if (status != TARN_OK)
        return status;
    if (!(rate > 0.0 && rate <= rate_most)) /* NaN too */
        return tn_fail(err, TARN_EINVAL, "lr is %g; it must be above 0 and at most %g", rate,
                       rate_most);
    schedule->row = (const struct tn_schedule_row *)about; /* its first member */
    return schedule->row->check ? schedule->row->check(schedule, err) : TARN_OK;
}

double tn_schedule_rate(const struct tn_schedule *schedule,
                        const struct tn_schedule_state *state, uint64_t t)
{
    assert(t > 0);
    return schedule->row->rate(schedule, state, tn_schedule_point(state, t));
}

double tn_schedule_point(const struct tn_schedule_state *state, uint64_t t)
{
    if (state->stretch == 0.0)
        return (double)t;
    return state->point + state->stretch * ((double)t - (double)state->since);
}

void tn_schedule_stretch(struct tn_schedule_state *state, uint64_t t, double end, uint64_t last)
{
    const double point = tn_schedule_point(state, t);

    assert(last > t && end > point);
    state->since = t;
    state->point = point;
    state->stretch = (end - point) / (double)(last - t);
}

double tn_schedule_end(const struct tn_schedule *schedule)
{
    return schedule->row->end ? schedule->row->end(schedule) : 0.0;
}

void tn_schedule_observe(const struct tn_schedule *schedule, struct tn_schedule_state *state,
                         double metric)
{
    if (schedule->row->observe)
        schedule->row->observe(schedule, state, metric);
}
