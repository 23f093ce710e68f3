/* SPDX-License-Identifier: MIT */
#include "files.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "words.h"

/* ---- MODEL -------------------------------------------------------------- */

bool is_folder(const char *path)
{
    struct stat about;

    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

void model_path(char path[MODEL_PATH], const char *given, bool best)
{
    const char *const name = best ? "best" : "model";

    snprintf(path, MODEL_PATH, "%s", given);
    if (is_folder(given)) {
        snprintf(path, MODEL_PATH, "%s/%s.safetensors", given, name);
        if (access(path, F_OK) != 0 && errno == ENOENT)
            fail("%s: contains no %s.safetensors; it must be a training folder", given, name);
    } else if (best && access(given, F_OK) == 0) {
        refuse("--best requires a training folder; %s is not a folder", given);
    }
}

tarn_model *model_open(const char *given, bool best)
{
    char path[MODEL_PATH];
    tarn_model *model;

    model_path(path, given, best);
    if (tarn_model_load(&model, path, NULL, &failure) != TARN_OK)
        fail("%s", failure.text);
    return model;
}

/* ---- Format ------------------------------------------------------------- */

/* Endings by use. To write another format, move its ending to a row of its own. */
static const struct {
    unsigned uses; /* 0: other programs write these */
    const char *endings;
} formats[] = {
    {FORMAT_PICTURE, ".png, .svg"},
    {FORMAT_MODEL | FORMAT_EXPORT, ".safetensors"},
    {FORMAT_EXPORT, ".npz"},
    {FORMAT_TEXT, ".txt, .json, .jsonl"},
    {0, ".apng .avif .bmp .eps .gif .heic .jpeg .jpg .mp4 .pdf .pgm .pnm .ppm .ps .tif .tiff "
        ".webp"},
    {0, ".bin .ckpt .ggml .gguf .h5 .hdf5 .keras .mat .mlmodel .npy .onnx .pb .pickle .pkl .pt "
        ".pth .tflite .zip"},
};

enum { FORMATS = sizeof formats / sizeof formats[0] };

/* ".safetensors, .npz" */
static void supported(char *text, size_t size, enum format_use use)
{
    size_t used = 0;

    for (size_t i = 0; i < FORMATS; i++)
        if (formats[i].uses & (unsigned)use)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "",
                                     formats[i].endings);
}

void check_format(const char *option, const char *path, enum format_use use)
{
    const char *const dot = strrchr(path, '.');
    char ending[16] = "", all[64];

    for (size_t i = 0; dot && dot > path && dot[i] && i + 1 < sizeof ending; i++)
        ending[i] = (char)tolower((unsigned char)dot[i]);
    for (size_t i = 0; *ending && i < FORMATS; i++)
        if (words_have(formats[i].endings, ending) && !(formats[i].uses & (unsigned)use)) {
            supported(all, sizeof all, use);
            refuse("%s is '%s'; %s files cannot be written here; supported: %s", option, path,
                   ending, all);
        }
}

/* ---- Place -------------------------------------------------------------- */

void check_writable(const char *option, const char *path)
{
    char folder[TARN_PATH_SIZE] = ".";
    const char *const slash = strrchr(path, '/');
    struct stat about;

    if (slash)
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - path + 1), path);
    if (!*path)
        fail("%s: the file name is empty", option);
    if (strlen(path) >= sizeof folder)
        fail("%s: %s", path, strerror(ENAMETOOLONG));
    if (is_folder(path))
        fail("%s: %s", path, strerror(EISDIR));
    if (stat(path, &about) == 0 && !S_ISREG(about.st_mode))
        fail("%s: is a device, pipe or socket; it must be a regular file", path);
    if (access(folder, W_OK) != 0)
        fail("%s: %s", path, strerror(errno));
}
