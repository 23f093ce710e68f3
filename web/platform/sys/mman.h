/* SPDX-License-Identifier: MIT */
/* mman.h - empty: WebAssembly's memory has no pages to advise the system about. */
