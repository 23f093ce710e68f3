/* SPDX-License-Identifier: MIT */
#define _DEFAULT_SOURCE /* madvise */
#include "hardware.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "command.h"

void hardware_name(char *name, size_t size)
{
    char line[256];
    FILE *const file = fopen("/proc/cpuinfo", "r");

    snprintf(name, size, "unknown processor");
    while (file && fgets(line, sizeof line, file)) {
        const char *const value = strstr(line, ": ");

        if (value && strncmp(line, "model name", 10) == 0) {
            snprintf(name, size, "%.*s", (int)strcspn(value + 2, "\n"), value + 2);
            break;
        }
    }
    if (file)
        fclose(file);
}

/* ---- Caches ------------------------------------------------------------- */

/* One line of a file below cpu0's caches; "" if it cannot be read. */
static void read_cache_line(char *line, size_t size, int index, const char *file_name)
{
    char path[128];

    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", index,
             file_name);
    FILE *const file = fopen(path, "r");

    if (!file || !fgets(line, (int)size, file))
        line[0] = '\0';
    if (file)
        fclose(file);
}

/* Processors in a list such as "0-3,8-11". */
static size_t count_processors(const char *list)
{
    size_t count = 0;

    while (*list) {
        char *end;
        const long first = strtol(list, &end, 10);
        const long last = *end == '-' ? strtol(end + 1, &end, 10) : first;

        if (end == list || last < first)
            break;
        count += (size_t)(last - first + 1);
        list = end + (*end == ',');
    }
    return count > 0 ? count : 1;
}

struct hardware_cache hardware_cache(int level)
{
    char line[256];

    for (int index = 0; index < 8; index++) {
        read_cache_line(line, sizeof line, index, "level");
        if (line[0] == '\0' && index == 0)
            return (struct hardware_cache){level == 2 ? (size_t)512 << 10 : (size_t)16 << 20,
                                           1};
        if (atoi(line) != level)
            continue;
        read_cache_line(line, sizeof line, index, "size"); /* "512K" */
        const size_t bytes = (size_t)strtoul(line, NULL, 10) << 10;

        read_cache_line(line, sizeof line, index, "shared_cpu_list");
        return (struct hardware_cache){bytes, count_processors(line)};
    }
    return (struct hardware_cache){0, 1};
}

/* ---- Memory, instruction set -------------------------------------------- */

size_t hardware_memory(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

    return pages > 0 && page > 0 ? (size_t)pages * (size_t)page : (size_t)8 << 30;
}

double hardware_resident(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return 1024.0 * (double)usage.ru_maxrss; /* Linux counts in KiB */
}

/* Walking through many long arrays at once in small pages waits for address translations, which
 * is not what is measured. */
enum { HUGE_PAGE = 2 * 1024 * 1024 };

void *hardware_block(size_t bytes)
{
    const size_t alignment = bytes >= HUGE_PAGE ? HUGE_PAGE : 64;

    if (bytes > SIZE_MAX - alignment)
        return NULL;
    const size_t rounded = (bytes / alignment + 1) * alignment;
    void *const block = aligned_alloc(alignment, rounded);

    if (!block)
        return NULL;
#ifdef MADV_HUGEPAGE
    if (alignment == HUGE_PAGE)
        madvise(block, rounded, MADV_HUGEPAGE);
#endif
    memset(block, 0, bytes);
    return block;
}

const char *hardware_cpu(void)
{
    const char *const cpu = getenv("TARN_CPU");
    char list[256];

    if (!cpu || !*cpu)
        return NULL;
    for (size_t i = 0; tarn_cpu_name(i); i++)
        if (strcmp(cpu, tarn_cpu_name(i)) == 0)
            return cpu;
    words_list(list, sizeof list, tarn_cpu_name);
    refuse("TARN_CPU is '%.40s', which is not supported here; available: %s", cpu, list);
}

/* ---- Clocks ------------------------------------------------------------- */

double seconds_now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

double cpu_seconds_now(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}
