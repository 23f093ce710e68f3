/* SPDX-License-Identifier: MIT */
/* pickle_torch.c - the globals that PyTorch's pickles name, and what is made of them. */
#include "file/pickle_machine.h"

enum { ORDERED_DICT, REBUILD_TENSOR, REBUILD_PARAMETER, STORAGES };

/* From STORAGES on `dtype` counts. */
static const struct {
    const char *module, *name;
    enum tn_dtype dtype;
} globals[] = {
    [ORDERED_DICT] = {"collections", "OrderedDict", TN_DTYPE_COUNT},
    [REBUILD_TENSOR] = {"torch._utils", "_rebuild_tensor_v2", TN_DTYPE_COUNT},
    [REBUILD_PARAMETER] = {"torch._utils", "_rebuild_parameter", TN_DTYPE_COUNT},
    [STORAGES] = {"torch", "FloatStorage", TN_DTYPE_F32},
    {"torch", "HalfStorage", TN_DTYPE_F16},
    {"torch", "BFloat16Storage", TN_DTYPE_BF16},
    {"torch", "DoubleStorage", TN_DTYPE_F64},
    {"torch", "LongStorage", TN_DTYPE_I64},
    {"torch", "IntStorage", TN_DTYPE_I32},
    {"torch", "ShortStorage", TN_DTYPE_I16},
    {"torch", "CharStorage", TN_DTYPE_I8},
    {"torch", "ByteStorage", TN_DTYPE_U8},
    {"torch", "BoolStorage", TN_DTYPE_BOOL},
};

enum { GLOBALS = sizeof globals / sizeof globals[0] };

void tn_machine_global(struct tn_machine *m, int unused)
{
    size_t module_length, name_length;
    const char *const module = tn_machine_read_line(m, &module_length);
    const char *const name = tn_machine_read_line(m, &name_length);

    (void)unused;
    for (int i = 0; i < GLOBALS; i++)
        if (tn_machine_equals(globals[i].module, module, module_length) &&
            tn_machine_equals(globals[i].name, name, name_length)) {
            tn_machine_push_new(
                m, (struct tn_pickle_node){.kind = TN_PICKLE_GLOBAL, .as.global = i});
            return;
        }
    tn_machine_refuse(m,
                      "refers to %.*s.%.*s, which is never executed; expected a dict of "
                      "tensors, numbers and text",
                      (int)tn_min(module_length, 40), module, (int)tn_min(name_length, 40),
                      name);
}

/* Item number `index` of a tuple; TN_PICKLE_END: there is none. */
static int item_of(const struct tn_machine *m, int tuple, int index)
{
    int item = tn_machine_node(m, tuple)->as.items.first;

    for (; index > 0 && item != TN_PICKLE_END; index--)
        item = m->made.items[item].next;
    return item == TN_PICKLE_END ? TN_PICKLE_END : m->made.items[item].node;
}

static bool read_size(const struct tn_machine *m, size_t *size, int node)
{
    if (!tn_machine_is(m, node, TN_PICKLE_INT) || tn_machine_node(m, node)->as.integer < 0)
        return false;
    *size = (size_t)tn_machine_node(m, node)->as.integer;
    return true;
}

/* ("storage", type, key, device, count), and None after it in files before 1.6. */
static bool read_storage(const struct tn_machine *m, struct tn_pickle_storage *storage, int id)
{
    if (!tn_machine_is(m, id, TN_PICKLE_TUPLE))
        return false;
    const int type = item_of(m, id, 1), view = item_of(m, id, 5);

    if (!tn_machine_is(m, type, TN_PICKLE_GLOBAL) ||
        tn_machine_node(m, type)->as.global < STORAGES)
        return false;
    storage->dtype = globals[tn_machine_node(m, type)->as.global].dtype;
    storage->key = item_of(m, id, 2);
    return tn_pickle_is_text(&m->made, item_of(m, id, 0), "storage") &&
           tn_machine_is(m, storage->key, TN_PICKLE_STRING) &&
           read_size(m, &storage->count, item_of(m, id, 4)) &&
           (view == TN_PICKLE_END || tn_machine_is(m, view, TN_PICKLE_NONE));
}

void tn_machine_storage(struct tn_machine *m, int unused)
{
    struct tn_pickle_node node = {.kind = TN_PICKLE_STORAGE};

    (void)unused;
    if (!read_storage(m, &node.as.storage, tn_machine_pop(m)))
        tn_machine_refuse(m, "refers to something that is not a storage");
    tn_machine_push_new(m, node);
}

static bool read_sizes(const struct tn_machine *m, size_t sizes[TN_SAFETENSOR_RANK],
                       size_t *rank, int tuple)
{
    if (!tn_machine_is(m, tuple, TN_PICKLE_TUPLE) ||
        tn_machine_node(m, tuple)->as.items.count > TN_SAFETENSOR_RANK)
        return false;
    *rank = (size_t)tn_machine_node(m, tuple)->as.items.count;
    for (size_t d = 0; d < *rank; d++)
        if (!read_size(m, &sizes[d], item_of(m, tuple, (int)d)))
            return false;
    return true;
}

/* (storage, offset, size, stride, ...): what comes after does not change the numbers. */
static void rebuild_tensor(struct tn_machine *m, int arguments)
{
    struct tn_pickle_tensor tensor = {.storage = item_of(m, arguments, 0)};
    struct tn_pickle *const made = &m->made;
    size_t strides = 0;

    if (!tn_machine_is(m, tensor.storage, TN_PICKLE_STORAGE) ||
        !read_size(m, &tensor.offset, item_of(m, arguments, 1)) ||
        !read_sizes(m, tensor.shape, &tensor.rank, item_of(m, arguments, 2)) ||
        !read_sizes(m, tensor.stride, &strides, item_of(m, arguments, 3)) ||
        strides != tensor.rank)
        tn_machine_refuse(m,
                          "builds a tensor from other than storage, offset, sizes and strides");
    made->tensors =
        tn_machine_grow(m, made->tensors, &m->tensor_room, made->tensor_count, sizeof tensor);
    if (m->status != TARN_OK)
        return;
    made->tensors[made->tensor_count] = tensor;
    tn_machine_push_new(m, (struct tn_pickle_node){.kind = TN_PICKLE_TENSOR,
                                                   .as.tensor = made->tensor_count++});
}

void tn_machine_reduce(struct tn_machine *m, int unused)
{
    const int arguments = tn_machine_pop(m), function = tn_machine_pop(m);

    (void)unused;
    if (!tn_machine_is(m, arguments, TN_PICKLE_TUPLE) ||
        !tn_machine_is(m, function, TN_PICKLE_GLOBAL)) {
        tn_machine_refuse(m, "calls something that is not a function");
        return;
    }
    const int first = item_of(m, arguments, 0);

    switch (tn_machine_node(m, function)->as.global) {
    case ORDERED_DICT:
        if (first != TN_PICKLE_END)
            tn_machine_refuse(m,
                              "creates an OrderedDict with arguments; expected an empty one");
        tn_machine_push_empty(m, TN_PICKLE_DICT);
        break;
    case REBUILD_TENSOR:
        rebuild_tensor(m, arguments);
        break;
    case REBUILD_PARAMETER:
        if (!tn_machine_is(m, first, TN_PICKLE_TENSOR))
            tn_machine_refuse(m, "makes a parameter of something that is not a tensor");
        tn_machine_push(m, first);
        break;
    default:
        tn_machine_refuse(m, "calls a storage type");
    }
}
