/* SPDX-License-Identifier: MIT */
/* struct_layouts.c - sizes and offsets of public structs, for bindings that describe them again:
 * lines "struct size" and "struct.field offset size". */
#include <stdio.h>

#include "tarn/tarn.h"

#define SIZE(type) printf(#type " %zu\n", sizeof(type))
#define FIELD(type, field)                                                                     \
    printf(#type "." #field " %zu %zu\n", offsetof(type, field), sizeof(((type *)0)->field))

int main(void)
{
    SIZE(tarn_error);
    FIELD(tarn_error, status);
    FIELD(tarn_error, text);
    SIZE(tarn_attention_desc);
    FIELD(tarn_attention_desc, kind);
    FIELD(tarn_attention_desc, feature_map);
    FIELD(tarn_attention_desc, causal);
    FIELD(tarn_attention_desc, batch);
    FIELD(tarn_attention_desc, heads);
    FIELD(tarn_attention_desc, queries);
    FIELD(tarn_attention_desc, keys);
    FIELD(tarn_attention_desc, query_width);
    FIELD(tarn_attention_desc, value_width);
    FIELD(tarn_attention_desc, seed);
    FIELD(tarn_attention_desc, threads);
    FIELD(tarn_attention_desc, cpu);
    FIELD(tarn_attention_desc, allocator);
    SIZE(tarn_input);
    FIELD(tarn_input, data);
    FIELD(tarn_input, batch);
    FIELD(tarn_input, position);
    FIELD(tarn_input, head);
    SIZE(tarn_output);
    FIELD(tarn_output, data);
    FIELD(tarn_output, batch);
    FIELD(tarn_output, position);
    FIELD(tarn_output, head);
    SIZE(tarn_attention_arrays);
    FIELD(tarn_attention_arrays, q);
    FIELD(tarn_attention_arrays, k);
    FIELD(tarn_attention_arrays, v);
    FIELD(tarn_attention_arrays, y);
    FIELD(tarn_attention_arrays, dy);
    FIELD(tarn_attention_arrays, dq);
    FIELD(tarn_attention_arrays, dk);
    FIELD(tarn_attention_arrays, dv);
    FIELD(tarn_attention_arrays, key_lengths);
    SIZE(tarn_dot_product_sizes);
    FIELD(tarn_dot_product_sizes, batch);
    FIELD(tarn_dot_product_sizes, heads);
    FIELD(tarn_dot_product_sizes, length);
    FIELD(tarn_dot_product_sizes, query_width);
    FIELD(tarn_dot_product_sizes, value_width);
    FIELD(tarn_dot_product_sizes, threads);
    SIZE(tarn_option_info);
    FIELD(tarn_option_info, name);
    FIELD(tarn_option_info, help);
    FIELD(tarn_option_info, minimum);
    FIELD(tarn_option_info, maximum);
    FIELD(tarn_option_info, initial);
    FIELD(tarn_option_info, whole);
    FIELD(tarn_option_info, choices);
    SIZE(tarn_table_row);
    FIELD(tarn_table_row, name);
    FIELD(tarn_table_row, help);
    FIELD(tarn_table_row, options);
    SIZE(tarn_config);
    FIELD(tarn_config, task);
    FIELD(tarn_config, attention);
    FIELD(tarn_config, feature_map);
    FIELD(tarn_config, position);
    FIELD(tarn_config, context);
    FIELD(tarn_config, head);
    FIELD(tarn_config, norm);
    FIELD(tarn_config, activation);
    FIELD(tarn_config, body);
    FIELD(tarn_config, causal);
    FIELD(tarn_config, symbols);
    FIELD(tarn_config, frames);
    FIELD(tarn_config, stack);
    FIELD(tarn_config, layers);
    FIELD(tarn_config, heads);
    FIELD(tarn_config, width);
    FIELD(tarn_config, feed);
    FIELD(tarn_config, positions);
    FIELD(tarn_config, dropout);
    FIELD(tarn_config, seed);
    SIZE(tarn_tensor);
    FIELD(tarn_tensor, name);
    FIELD(tarn_tensor, rows);
    FIELD(tarn_tensor, columns);
    FIELD(tarn_tensor, values);
    SIZE(tarn_run_desc);
    FIELD(tarn_run_desc, batch);
    FIELD(tarn_run_desc, length);
    FIELD(tarn_run_desc, threads);
    FIELD(tarn_run_desc, cpu);
    FIELD(tarn_run_desc, allocator);
    SIZE(tarn_generator_desc);
    FIELD(tarn_generator_desc, batch);
    FIELD(tarn_generator_desc, longest);
    FIELD(tarn_generator_desc, method);
    FIELD(tarn_generator_desc, precision);
    FIELD(tarn_generator_desc, threads);
    FIELD(tarn_generator_desc, cpu);
    FIELD(tarn_generator_desc, allocator);
    SIZE(tarn_sampling);
    FIELD(tarn_sampling, temperature);
    FIELD(tarn_sampling, top_k);
    FIELD(tarn_sampling, top_p);
    FIELD(tarn_sampling, greedy);
    FIELD(tarn_sampling, seed);
    FIELD(tarn_sampling, stream);
    FIELD(tarn_sampling, cpu);
    SIZE(tarn_state_about);
    FIELD(tarn_state_about, model);
    FIELD(tarn_state_about, method);
    FIELD(tarn_state_about, batch);
    FIELD(tarn_state_about, position);
    FIELD(tarn_state_about, has_next);
    SIZE(tarn_import_desc);
    FIELD(tarn_import_desc, heads);
    FIELD(tarn_import_desc, attention);
    FIELD(tarn_import_desc, feature_map);
    FIELD(tarn_import_desc, norm);
    FIELD(tarn_import_desc, activation);
    FIELD(tarn_import_desc, head);
    FIELD(tarn_import_desc, position);
    FIELD(tarn_import_desc, task);
    FIELD(tarn_import_desc, tell);
    FIELD(tarn_import_desc, context);
    FIELD(tarn_import_desc, allocator);
    return 0;
}
