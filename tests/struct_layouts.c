/* SPDX-License-Identifier: MIT */
/* struct_layouts.c - sizes and offsets of public structs, for bindings that describe them
 * again: lines "struct size" and "struct.field offset size". */
#include <stdio.h>

#include "tarn/tarn.h"

enum { FIELDS_MOST = 24 };

struct field {
    const char *name;
    size_t offset, size;
};

#define AT(type, field)                                                                        \
    {                                                                                          \
#field, offsetof(type, field), sizeof(((type *)0)->field)                              \
    }

static const struct layout {
    const char *name;
    size_t size;
    struct field fields[FIELDS_MOST]; /* ended by a NULL name */
} layouts[] = {
    {"tarn_error", sizeof(tarn_error), {AT(tarn_error, status), AT(tarn_error, text)}},
    {"tarn_host",
     sizeof(tarn_host),
     {AT(tarn_host, threads), AT(tarn_host, cpu), AT(tarn_host, allocator)}},
    {"tarn_attention_desc",
     sizeof(tarn_attention_desc),
     {AT(tarn_attention_desc, kind), AT(tarn_attention_desc, feature_map),
      AT(tarn_attention_desc, causal), AT(tarn_attention_desc, batch),
      AT(tarn_attention_desc, heads), AT(tarn_attention_desc, queries),
      AT(tarn_attention_desc, keys), AT(tarn_attention_desc, query_width),
      AT(tarn_attention_desc, value_width), AT(tarn_attention_desc, seed),
      AT(tarn_attention_desc, host)}},
    {"tarn_input",
     sizeof(tarn_input),
     {AT(tarn_input, data), AT(tarn_input, batch), AT(tarn_input, position),
      AT(tarn_input, head)}},
    {"tarn_output",
     sizeof(tarn_output),
     {AT(tarn_output, data), AT(tarn_output, batch), AT(tarn_output, position),
      AT(tarn_output, head)}},
    {"tarn_attention_arrays",
     sizeof(tarn_attention_arrays),
     {AT(tarn_attention_arrays, in), AT(tarn_attention_arrays, y),
      AT(tarn_attention_arrays, dy), AT(tarn_attention_arrays, din),
      AT(tarn_attention_arrays, key_lengths), AT(tarn_attention_arrays, state0),
      AT(tarn_attention_arrays, state1), AT(tarn_attention_arrays, dstate1),
      AT(tarn_attention_arrays, dstate0)}},
    {"tarn_attention_input",
     sizeof(tarn_attention_input),
     {AT(tarn_attention_input, name), AT(tarn_attention_input, help),
      AT(tarn_attention_input, width), AT(tarn_attention_input, at_keys),
      AT(tarn_attention_input, parameter), AT(tarn_attention_input, activation),
      AT(tarn_attention_input, start)}},
    {"tarn_dot_product_sizes",
     sizeof(tarn_dot_product_sizes),
     {AT(tarn_dot_product_sizes, batch), AT(tarn_dot_product_sizes, heads),
      AT(tarn_dot_product_sizes, length), AT(tarn_dot_product_sizes, query_width),
      AT(tarn_dot_product_sizes, value_width), AT(tarn_dot_product_sizes, host)}},
    {"tarn_option_info",
     sizeof(tarn_option_info),
     {AT(tarn_option_info, name), AT(tarn_option_info, help), AT(tarn_option_info, minimum),
      AT(tarn_option_info, maximum), AT(tarn_option_info, initial), AT(tarn_option_info, whole),
      AT(tarn_option_info, choices)}},
    {"tarn_table_row",
     sizeof(tarn_table_row),
     {AT(tarn_table_row, name), AT(tarn_table_row, help), AT(tarn_table_row, options)}},
    {"tarn_config",
     sizeof(tarn_config),
     {AT(tarn_config, task),     AT(tarn_config, attention),  AT(tarn_config, feature_map),
      AT(tarn_config, position), AT(tarn_config, context),    AT(tarn_config, head),
      AT(tarn_config, norm),     AT(tarn_config, activation), AT(tarn_config, body),
      AT(tarn_config, causal),   AT(tarn_config, symbols),    AT(tarn_config, frames),
      AT(tarn_config, stack),    AT(tarn_config, layers),     AT(tarn_config, heads),
      AT(tarn_config, width),    AT(tarn_config, feed),       AT(tarn_config, positions),
      AT(tarn_config, dropout),  AT(tarn_config, seed)}},
    {"tarn_tensor",
     sizeof(tarn_tensor),
     {AT(tarn_tensor, name), AT(tarn_tensor, rows), AT(tarn_tensor, columns),
      AT(tarn_tensor, values)}},
    {"tarn_run_desc",
     sizeof(tarn_run_desc),
     {AT(tarn_run_desc, batch), AT(tarn_run_desc, length), AT(tarn_run_desc, host)}},
    {"tarn_engine_desc",
     sizeof(tarn_engine_desc),
     {AT(tarn_engine_desc, longest), AT(tarn_engine_desc, capacity),
      AT(tarn_engine_desc, method), AT(tarn_engine_desc, precision),
      AT(tarn_engine_desc, host)}},
    {"tarn_sampling",
     sizeof(tarn_sampling),
     {AT(tarn_sampling, temperature), AT(tarn_sampling, top_k), AT(tarn_sampling, top_p),
      AT(tarn_sampling, greedy), AT(tarn_sampling, seed), AT(tarn_sampling, number)}},
    {"tarn_streams_about",
     sizeof(tarn_streams_about),
     {AT(tarn_streams_about, model), AT(tarn_streams_about, method),
      AT(tarn_streams_about, count), AT(tarn_streams_about, position),
      AT(tarn_streams_about, has_next)}},
    {"tarn_import_desc",
     sizeof(tarn_import_desc),
     {AT(tarn_import_desc, heads), AT(tarn_import_desc, attention),
      AT(tarn_import_desc, feature_map), AT(tarn_import_desc, norm),
      AT(tarn_import_desc, activation), AT(tarn_import_desc, head),
      AT(tarn_import_desc, position), AT(tarn_import_desc, task), AT(tarn_import_desc, tell),
      AT(tarn_import_desc, context), AT(tarn_import_desc, allocator)}},
};

int main(void)
{
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        const struct layout *const layout = &layouts[i];

        printf("%s %zu\n", layout->name, layout->size);
        for (const struct field *field = layout->fields; field->name; field++)
            printf("%s.%s %zu %zu\n", layout->name, field->name, field->offset, field->size);
    }
    return 0;
}
