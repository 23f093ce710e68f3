/* SPDX-License-Identifier: MIT */
/* log_lines.c - whatever stands in the log of a run, it is continued or refused as it is, and
 * its curve is read, smoothed and measured, or refused. */
#include <math.h>
#include <string.h>

#include "support/fuzzing.h"
#include "support/program.h"

#include "curve.h"
#include "train/training.h"

static void check_resume(const char *path, size_t size)
{
    struct tn_log log;
    struct tn_bytes bytes;
    tarn_error err = {TARN_OK, ""};

    if (tn_log_open(&log, path, true, 3, &err) == TARN_OK) {
        need(tn_log_update(&log, &(tarn_report){.update = 4}, 1.0, NULL) == TARN_OK);
        tn_log_close(&log);
        need(tn_bytes_read(&bytes, path, SIZE_MAX / 2, NULL) == TARN_OK);
        need(bytes.size > 0 && bytes.data[bytes.size - 1] == '\n');
    } else {
        need_text(&err);
        need(tn_bytes_read(&bytes, path, SIZE_MAX / 2, NULL) == TARN_OK && bytes.size == size);
    }
    tn_bytes_free(&bytes);
}

static void check_curve(const char *path)
{
    static struct curve curve;

    curve = (struct curve){0};
    if (setjmp(program_end) == 0 && curve_read(&curve, path))
        for (size_t i = 0; i < curve.count; i++)
            need(isfinite(curve.points[i].loss) == isfinite(curve.points[i].loss));
    need(curve.losses <= curve.count && curve.validations <= curve.count);
    curve_free(&curve);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!program_output)
        program_output = fopen("/dev/null", "w");
    const char *const path = input_file("log.jsonl", data, size);

    check_curve(path);
    check_resume(path, size);
    return 0;
}
