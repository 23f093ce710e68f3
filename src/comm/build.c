/* SPDX-License-Identifier: MIT */
/* build.c - what tells the program of one process from that of another. */
#ifdef __linux__
#define _GNU_SOURCE /* dl_iterate_phdr() */
#include <link.h>
#endif

#include "comm/fingerprint.h"
#include "tarn/machine.h"

#ifdef __linux__

static bool is_inside(const struct dl_phdr_info *object, const ElfW(Phdr) * segment,
                      uintptr_t address)
{
    const uintptr_t from = object->dlpi_addr + segment->p_vaddr;

    return segment->p_type == PT_LOAD && address >= from && address - from < segment->p_memsz;
}

static bool has_this_code(const struct dl_phdr_info *object)
{
    for (size_t i = 0; i < object->dlpi_phnum; i++)
        if (is_inside(object, &object->dlpi_phdr[i], (uintptr_t)tn_hash_build))
            return true;
    return false;
}

/* Among the notes is the number that the linker gives to every program and library it makes. */
static int hash_notes(struct dl_phdr_info *object, size_t size, void *hash)
{
    (void)size;
    if (!has_this_code(object))
        return 0;
    for (size_t i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *const segment = &object->dlpi_phdr[i];
        const uintptr_t at = object->dlpi_addr + segment->p_vaddr;

        if (segment->p_type == PT_NOTE)
            *(uint64_t *)hash =
                tn_hash(*(uint64_t *)hash, (const void *)at, (size_t)segment->p_memsz);
    }
    return 1;
}

#endif

uint64_t tn_hash_build(uint64_t hash)
{
    hash = tn_hash_text(hash, tarn_version());
    hash = tn_hash_text(hash, __VERSION__); /* of the compiler */
#ifdef __linux__
    dl_iterate_phdr(hash_notes, &hash);
#endif
    return hash;
}
