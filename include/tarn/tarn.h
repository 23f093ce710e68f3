/* SPDX-License-Identifier: MIT */
/* tarn.h - the whole library: transformers with linear attention, on CPUs. */
#ifndef TARN_TARN_H
#define TARN_TARN_H

#include "tarn/attention.h"
#include "tarn/comm.h"
#include "tarn/data.h"
#include "tarn/file.h"
#include "tarn/generate.h"
#include "tarn/image.h"
#include "tarn/import.h"
#include "tarn/machine.h"
#include "tarn/model.h"
#include "tarn/serve.h"
#include "tarn/speech.h"
#include "tarn/status.h"
#include "tarn/train.h"

#endif
