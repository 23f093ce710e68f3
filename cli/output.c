/* SPDX-License-Identifier: MIT */
#include "output.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Format ------------------------------------------------------------- */

/* By use; each bit once or more. 0: other programs write these. */
static const struct {
    const char *ending;
    unsigned uses;
} table[] = {
    {".png", FORMAT_PICTURE},
    {".svg", FORMAT_PICTURE},
    {".safetensors", FORMAT_MODEL | FORMAT_EXPORT},
    {".npz", FORMAT_EXPORT},
    {".txt", FORMAT_TEXT},
    {".json", FORMAT_TEXT},
    {".jsonl", FORMAT_TEXT},
    /* pictures */
    {".apng", 0},
    {".avif", 0},
    {".bmp", 0},
    {".eps", 0},
    {".gif", 0},
    {".heic", 0},
    {".jpeg", 0},
    {".jpg", 0},
    {".mp4", 0},
    {".pdf", 0},
    {".pgm", 0},
    {".pnm", 0},
    {".ppm", 0},
    {".ps", 0},
    {".tif", 0},
    {".tiff", 0},
    {".webp", 0},
    /* models and arrays */
    {".bin", 0},
    {".ckpt", 0},
    {".ggml", 0},
    {".gguf", 0},
    {".h5", 0},
    {".hdf5", 0},
    {".keras", 0},
    {".mat", 0},
    {".mlmodel", 0},
    {".npy", 0},
    {".onnx", 0},
    {".pb", 0},
    {".pickle", 0},
    {".pkl", 0},
    {".pt", 0},
    {".pth", 0},
    {".tflite", 0},
    {".zip", 0},
};

enum { ENDINGS = sizeof table / sizeof table[0] };

bool format_ends_in(const char *path, const char *ending)
{
    const size_t length = strlen(path), tail = strlen(ending);

    return length > tail && strcasecmp(path + length - tail, ending) == 0;
}

bool format_is_foreign(const struct command *command, const char *option, const char *path,
                       enum format_use use)
{
    const char *between = "";
    size_t i = 0;

    while (i < ENDINGS && !format_ends_in(path, table[i].ending))
        i++;
    if (i == ENDINGS || (table[i].uses & (unsigned)use))
        return false;
    fprintf(stderr,
            "%s: %s is '%s'; %s files cannot be written here; supported: ", command->name,
            option, path, table[i].ending);
    for (size_t k = 0; k < ENDINGS; k++)
        if (table[k].uses & (unsigned)use) {
            fprintf(stderr, "%s%s", between, table[k].ending);
            between = ", ";
        }
    fputc('\n', stderr);
    return true;
}

/* ---- Place -------------------------------------------------------------- */

bool output_can_be(const struct command *command, const char *option, const char *path)
{
    char folder[TARN_PATH_SIZE] = ".";
    const char *const slash = strrchr(path, '/'), *why = NULL;
    struct stat about;

    if (slash)
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - path + 1), path);
    if (!*path)
        why = "the file name is empty";
    else if (strlen(path) >= sizeof folder)
        why = strerror(ENAMETOOLONG);
    else if (stat(path, &about) == 0 && S_ISDIR(about.st_mode))
        why = strerror(EISDIR);
    else if (stat(path, &about) == 0 && !S_ISREG(about.st_mode))
        why = "is a device, pipe or socket; it must be a regular file";
    else if (access(folder, W_OK) != 0)
        why = strerror(errno);
    if (why)
        command_fail(command, "%s: %s", *path ? path : option, why);
    return !why;
}
