/* SPDX-License-Identifier: MIT */
/* log_mel.c - frame by frame, of samples x_0 .. x_399 at 16 kHz:
 *
 *     d_i = x_i - mean(x)
 *     e_i = d_i - 0.97 d_{i-1},  e_0 = 0.03 d_0               louder where speech is quieter
 *     w_i = (0.5 - 0.5 cos(2 pi i / 399))^0.85                Povey's window
 *     P_k = |sum_i e_i w_i exp(-2 pi sqrt(-1) i k / 512)|^2   k = 0 .. 255
 *     y_b = log(max(sum_k M_bk P_k, 2^-23))                   b = 0 .. 39
 *
 * M_b is a triangle on the mel scale m(f) = 1127 log(1 + f / 700): 0 at m_b and m_{b+2}, 1 at
 * m_{b+1}, for m_0 .. m_41 that go in equal steps from m(20 Hz) to m(8 kHz). With samples of
 * full scale 1 the floor is near the noise of 16 bits, so that digital silence is quiet and not
 * an outlier. */
#include "data/log_mel.h"

#include <float.h>
#include <kiss_fftr.h>
#include <math.h>
#include <string.h>

#include "base/written.h"

static const double low = 20.0, high = TN_MEL_RATE / 2.0, pi = 3.14159265358979323846;

static double mel_of(double hertz)
{
    return 1127.0 * log(1.0 + hertz / 700.0);
}

static void plan_band(struct tn_mel_band *band, size_t b)
{
    const double step = (mel_of(high) - mel_of(low)) / (TN_MEL_BANDS + 1);
    const double left = mel_of(low) + (double)b * step;

    *band = (struct tn_mel_band){0};
    for (size_t k = 0; k < TN_MEL_BINS; k++) {
        const double at = (mel_of((double)k * TN_MEL_RATE / TN_MEL_POINTS) - left) / step;
        const double weight = 1.0 - fabs(at - 1.0);

        if (weight <= 0.0)
            continue;
        if (band->count == 0)
            band->first = k;
        band->weight[band->count++] = (float)weight;
    }
}

tarn_status tn_log_mel_open(struct tn_log_mel *mel, tarn_error *err)
{
    *mel = (struct tn_log_mel){.transform = kiss_fftr_alloc(TN_MEL_POINTS, 0, NULL, NULL)};
    if (!mel->transform)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for a Fourier transform");
    for (size_t i = 0; i < TN_MEL_WINDOW; i++)
        mel->window[i] =
            (float)pow(0.5 - 0.5 * cos(2.0 * pi * (double)i / (TN_MEL_WINDOW - 1)), 0.85);
    for (size_t b = 0; b < TN_MEL_BANDS; b++)
        plan_band(&mel->band[b], b);
    return TARN_OK;
}

void tn_log_mel_close(struct tn_log_mel *mel)
{
    if (mel->transform)
        kiss_fftr_free(mel->transform);
    *mel = (struct tn_log_mel){0};
}

void tn_log_mel_reset(struct tn_log_mel *mel)
{
    mel->waiting = 0;
}

/* ---- One frame ---------------------------------------------------------- */

static void shape(float out[TN_MEL_POINTS], const float *samples, const float *window)
{
    float sum = 0.0f;

    for (size_t i = 0; i < TN_MEL_WINDOW; i++)
        sum += samples[i];
    const float mean = sum / TN_MEL_WINDOW;
    float before = samples[0] - mean;

    for (size_t i = 0; i < TN_MEL_WINDOW; i++) {
        const float d = samples[i] - mean;

        out[i] = (d - 0.97f * before) * window[i];
        before = d;
    }
    memset(out + TN_MEL_WINDOW, 0, (TN_MEL_POINTS - TN_MEL_WINDOW) * sizeof *out);
}

static float band_power(const struct tn_mel_band *band, const float *power)
{
    float sum = 0.0f;

    for (size_t k = 0; k < band->count; k++)
        sum += band->weight[k] * power[band->first + k];
    return sum;
}

static void make_frame(const struct tn_log_mel *mel, float *frame, const float *samples)
{
    float shaped[TN_MEL_POINTS], power[TN_MEL_BINS];
    kiss_fft_cpx spectrum[TN_MEL_BINS + 1];

    shape(shaped, samples, mel->window);
    kiss_fftr(mel->transform, shaped, spectrum);
    TN_WRITTEN(spectrum, sizeof spectrum);
    for (size_t k = 0; k < TN_MEL_BINS; k++)
        power[k] = spectrum[k].r * spectrum[k].r + spectrum[k].i * spectrum[k].i;
    for (size_t b = 0; b < TN_MEL_BANDS; b++)
        frame[b] = logf(fmaxf(band_power(&mel->band[b], power), FLT_EPSILON));
}

/* ---- Pieces ------------------------------------------------------------- */

uint64_t tn_log_mel_frames(uint64_t samples)
{
    return samples < TN_MEL_WINDOW ? 0 : (samples - TN_MEL_WINDOW) / TN_MEL_HOP + 1;
}

size_t tn_log_mel_ready(const struct tn_log_mel *mel, size_t count)
{
    return (size_t)tn_log_mel_frames(mel->waiting + count);
}

size_t tn_log_mel_push(struct tn_log_mel *mel, float *frames, const float *samples,
                       size_t count)
{
    size_t made = 0;

    while (count > 0) {
        const size_t taken = tn_min(count, TN_MEL_WINDOW - mel->waiting);

        memcpy(mel->held + mel->waiting, samples, taken * sizeof *samples);
        mel->waiting += taken;
        samples += taken;
        count -= taken;
        if (mel->waiting == TN_MEL_WINDOW) {
            make_frame(mel, frames + made++ * TN_MEL_BANDS, mel->held);
            mel->waiting -= TN_MEL_HOP;
            memmove(mel->held, mel->held + TN_MEL_HOP, mel->waiting * sizeof *mel->held);
        }
    }
    return made;
}
