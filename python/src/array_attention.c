/*
 * The function attention.
 */
#include "extension.h"

#include <stdlib.h>
#include <tilegemm_attention.h>

enum { DIM_COUNT = 4 }; /* batch, heads, rows, elements */

/* The objects of a call, borrowed. */
typedef struct attention_arguments {
    PyObject *q, *k, *v, *out, *causal, *scale, *soft_cap, *keys_before, *keys_after, *bias,
        *slopes, *key_lengths;
    int has_log_sum_exp, is_batch_invariant;
} attention_arguments;

typedef struct attention_call {
    tgpy_array q, k, v, d, bias, slopes, log_sum_exp;
    tg_attention attention;
    int32_t *key_lengths;              /* owned; NULL: not given */
    PyObject *result, *log_sum_exp_of; /* owned; the second is NULL unless it is asked for */
    tg_context *context;
    tgpy_stream stream;
} attention_call;

/* Returns the size of dimension `dim` of batch, heads, rows and elements. An array may lack the
 * first of them, which then have size 1. */
static int64_t get_size(const tgpy_array *array, int dim)
{
    const int own = dim - (DIM_COUNT - array->dim_count);
    return own < 0 ? 1 : array->shape[own];
}

/* Returns the stride of a dimension. One of size 1 serves all indices. */
static int64_t get_stride(const tgpy_array *array, int dim)
{
    return get_size(array, dim) == 1 ? 0 : array->strides[dim - (DIM_COUNT - array->dim_count)];
}

static tg_heads make_heads(const tgpy_array *array)
{
    return (tg_heads){array->data, get_stride(array, 0), get_stride(array, 1), get_stride(array, 2),
                      get_stride(array, 3)};
}

static int check_type(const tgpy_array *array, tg_type type, const char *reason)
{
    if (!array->object || array->type == type)
        return 0;
    return tgpy_raise(TGPY_OPERAND_ERROR, "%s has type %s; convert it to %s, %s", array->name,
                      tgpy_type_find(array->type)->name, tgpy_type_find(type)->name, reason);
}

static int borrow(attention_call *call, tgpy_array *array, PyObject *object, const char *name)
{
    return object == Py_None ? 0 : tgpy_array_borrow(array, object, name, &call->stream);
}

static int borrow_arrays(attention_call *call, const attention_arguments *given)
{
    if (tgpy_array_borrow(&call->q, given->q, "q", &call->stream) ||
        tgpy_array_borrow(&call->k, given->k, "k", &call->stream) ||
        tgpy_array_borrow(&call->v, given->v, "v", &call->stream) ||
        borrow(call, &call->d, given->out, "out") ||
        borrow(call, &call->bias, given->bias, "bias") ||
        borrow(call, &call->slopes, given->slopes, "slopes"))
        return -1;
    const tg_type type = call->q.type;
    const tg_type sum_type = type == TG_TYPE_FP64 ? TG_TYPE_FP64 : TG_TYPE_FP32;
    tgpy_array *const arrays[] = {&call->k, &call->v, &call->d, &call->bias, &call->slopes};
    for (int i = 0; i < 5; i++) {
        if (check_type(arrays[i], i < 3 ? type : sum_type,
                       i < 3 ? "the type of q" : "the type of the sums") ||
            tgpy_array_check_device(&call->q, arrays[i]))
            return -1;
    }
    if (call->d.object && call->d.is_read_only)
        return tgpy_raise(TGPY_ARGUMENT_ERROR, "out is read-only; pass a writable array");
    return 0;
}

/* Sets the sizes of the attention and Q, K and V. */
static int describe_operands(attention_call *call)
{
    const tgpy_array *q = &call->q, *k = &call->k, *v = &call->v, *const all[] = {q, k, v};
    int64_t batch_count = 1;
    for (int i = 0; i < 3; i++) {
        if (all[i]->dim_count < 2 || all[i]->dim_count > DIM_COUNT)
            return tgpy_raise(TGPY_ARGUMENT_ERROR,
                              "%s has %d dimensions; pass (rows, elements), with heads and batch "
                              "before them where there are several",
                              all[i]->name, all[i]->dim_count);
        const int64_t size = get_size(all[i], 0);
        if (size != 1 && batch_count != 1 && size != batch_count)
            return tgpy_array_refuse_shapes(q, all[i], "their batches do not broadcast");
        batch_count = size == 1 ? batch_count : size;
    }
    if (get_size(q, 3) != get_size(k, 3))
        return tgpy_array_refuse_shapes(q, k, "rows of q and k differ in their elements");
    if (get_size(k, 1) != get_size(v, 1) || get_size(k, 2) != get_size(v, 2))
        return tgpy_array_refuse_shapes(k, v, "their heads or rows differ");
    tg_attention *a = &call->attention;
    if (tgpy_raise_status(tg_init_attention(a, sizeof *a, q->type, batch_count, get_size(q, 1),
                                            get_size(k, 1), get_size(q, 2), get_size(k, 2),
                                            get_size(q, 3))))
        return -1;
    a->v_head_size = get_size(v, 3);
    a->q = make_heads(q);
    a->k = make_heads(k);
    a->v = make_heads(v);
    return 0;
}

/* Sets D and log_sum_exp, and makes those that the caller does not give. */
static int describe_results(attention_call *call, int has_log_sum_exp)
{
    tg_attention *a = &call->attention;
    int dim_count = call->q.dim_count;
    dim_count = call->k.dim_count > dim_count ? call->k.dim_count : dim_count;
    dim_count = call->v.dim_count > dim_count ? call->v.dim_count : dim_count;
    const int64_t sizes[DIM_COUNT] = {a->batch_count, a->head_count, a->m, a->v_head_size};
    const int64_t *shape = sizes + DIM_COUNT - dim_count;
    if (call->d.object) {
        if (tgpy_array_check_shape(&call->d, dim_count, shape))
            return -1;
        call->result = call->d.object;
        Py_INCREF(call->result);
    } else if (tgpy_array_make(&call->d, &call->q, a->type, dim_count, shape, &call->stream,
                               &call->result)) {
        return -1;
    }
    a->d = make_heads(&call->d);
    a->has_log_sum_exp = has_log_sum_exp;
    if (!has_log_sum_exp)
        return 0;
    const tg_type sum_type = a->type == TG_TYPE_FP64 ? TG_TYPE_FP64 : TG_TYPE_FP32;
    if (tgpy_array_make(&call->log_sum_exp, &call->q, sum_type, dim_count - 1, shape, &call->stream,
                        &call->log_sum_exp_of))
        return -1;
    const int64_t row_stride = 1, head_stride = a->m, batch_stride = a->head_count * a->m;
    a->log_sum_exp = (tg_heads){call->log_sum_exp.data, batch_stride, head_stride, row_stride, 1};
    return 0;
}

/* Sets bias and slopes. */
static int describe_additions(attention_call *call)
{
    tg_attention *a = &call->attention;
    const int64_t scores[DIM_COUNT] = {a->batch_count, a->head_count, a->m, a->n};
    if (call->bias.object) {
        if (tgpy_array_check_broadcast(&call->bias, DIM_COUNT, scores))
            return -1;
        a->has_bias = 1;
        a->bias = make_heads(&call->bias);
    }
    if (call->slopes.object) {
        const int64_t stride = call->slopes.dim_count == 1 ? call->slopes.strides[0] : 1;
        if (tgpy_array_check_shape(&call->slopes, 1, &a->head_count))
            return -1;
        if (stride != 1 && a->head_count > 1)
            return tgpy_raise(TGPY_ARGUMENT_ERROR,
                              "slopes has a stride of %lld elements; pass a copy without gaps",
                              (long long)stride);
        a->has_slopes = 1;
        a->slopes = call->slopes.data;
    }
    return 0;
}

static int read_number(PyObject *object, const char *name, double *number)
{
    const double value = object == Py_None ? *number : PyFloat_AsDouble(object);
    if (PyErr_Occurred())
        return tgpy_raise(TGPY_OPERAND_ERROR, "%s = %R is no number", name, object);
    *number = value;
    return 0;
}

static int read_count(PyObject *object, const char *name, long long least, long long *count)
{
    PyObject *index = PyNumber_Index(object);
    *count = index ? PyLong_AsLongLong(index) : 0;
    Py_XDECREF(index);
    if (PyErr_Occurred())
        return tgpy_raise(TGPY_OPERAND_ERROR, "%s = %R is no whole number of 64 bits", name,
                          object);
    if (*count < least)
        return tgpy_raise(TGPY_ARGUMENT_ERROR, "%s = %lld; pass %lld or more", name, *count, least);
    return 0;
}

/* Sets one side of the window; None sets no limit. */
static int read_window(PyObject *object, const char *name, int64_t *keys)
{
    long long count = -1;
    if (object != Py_None && read_count(object, name, 0, &count))
        return -1;
    *keys = count;
    return 0;
}

static int read_causal(PyObject *object, tg_causal *causal)
{
    if (PyUnicode_Check(object)) {
        if (PyUnicode_CompareWithASCIIString(object, "bottom_right") == 0)
            *causal = TG_CAUSAL_BOTTOM_RIGHT;
        else if (PyUnicode_CompareWithASCIIString(object, "top_left") == 0)
            *causal = TG_CAUSAL_TOP_LEFT;
        else
            return tgpy_raise(TGPY_ARGUMENT_ERROR,
                              "causal = %R; pass False, True, 'bottom_right' or 'top_left'",
                              object);
        return 0;
    }
    const int is_true = PyObject_IsTrue(object);
    *causal = is_true > 0 ? TG_CAUSAL_BOTTOM_RIGHT : TG_CAUSAL_NONE;
    return is_true < 0 ? -1 : 0;
}

/* Copies the lengths from any sequence of whole numbers. The CPU checks their range at the call. */
static int read_lengths(attention_call *call, PyObject *object)
{
    tg_attention *a = &call->attention;
    if (object == Py_None)
        return 0;
    const Py_ssize_t count = PySequence_Size(object);
    if (count < 0)
        return tgpy_raise(TGPY_OPERAND_ERROR, "key_lengths = %R is no sequence", object);
    if (count != a->batch_count)
        return tgpy_raise(TGPY_ARGUMENT_ERROR,
                          "key_lengths has %zd values; pass one for each of %lld batch entries",
                          count, (long long)a->batch_count);
    call->key_lengths = malloc(sizeof *call->key_lengths * (size_t)(count + 1));
    if (!call->key_lengths)
        return tgpy_raise(TGPY_MEMORY_ERROR, "key_lengths: %zd values need memory", count);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PySequence_GetItem(object, i);
        long long length;
        const int failure = item ? read_count(item, "a value of key_lengths", 0, &length) : -1;
        Py_XDECREF(item);
        if (failure)
            return -1;
        if (call->q.is_on_gpu && length > a->n)
            return tgpy_raise(TGPY_ARGUMENT_ERROR, "key_lengths[%zd] = %lld; pass 0 .. %lld", i,
                              length, (long long)a->n);
        call->key_lengths[i] = length > INT32_MAX ? INT32_MAX : (int32_t)length;
    }
    a->has_key_lengths = 1;
    a->key_lengths = call->key_lengths;
    return 0;
}

static int read_scalars(attention_call *call, const attention_arguments *given)
{
    tg_attention *a = &call->attention;
    a->is_batch_invariant = given->is_batch_invariant;
    return read_causal(given->causal, &a->causal) ||
                   read_number(given->scale, "scale", &a->scale) ||
                   read_number(given->soft_cap, "soft_cap", &a->soft_cap) ||
                   read_window(given->keys_before, "keys_before", &a->keys_before) ||
                   read_window(given->keys_after, "keys_after", &a->keys_after) ||
                   read_lengths(call, given->key_lengths)
               ? -1
               : 0;
}

static int describe(attention_call *call, const attention_arguments *given)
{
    return borrow_arrays(call, given) || describe_operands(call) || read_scalars(call, given) ||
                   describe_results(call, given->has_log_sum_exp) || describe_additions(call) ||
                   tgpy_context_find(call->q.is_on_gpu, call->q.device_index, &call->context)
               ? -1
               : 0;
}

/* Copies key_lengths to the GPU of the arrays, into *memory. */
static tg_status place_lengths(attention_call *call, void **memory)
{
    tg_attention *a = &call->attention;
    const int64_t size_bytes = a->batch_count * (int64_t)sizeof *call->key_lengths;
    *memory = NULL;
    if (!a->has_key_lengths || !call->q.is_on_gpu || size_bytes == 0)
        return TG_STATUS_OK;
    tg_status status = tg_allocate_memory(call->context, size_bytes, memory);
    if (status == TG_STATUS_OK)
        status = tg_copy_to_device(call->context, *memory, call->key_lengths, size_bytes);
    a->key_lengths = *memory;
    return status;
}

static tg_status attend(attention_call *call)
{
    tg_attention_plan *plan = NULL;
    void *lengths;
    tg_status status = tg_create_attention_plan(call->context, &call->attention, &plan);
    if (status != TG_STATUS_OK)
        return status;
    status = place_lengths(call, &lengths);
    if (status == TG_STATUS_OK)
        status = tg_execute_attention(plan, &call->attention, NULL, 0, call->stream.handle);
    if (lengths) {
        const tg_status waited = tg_synchronize(call->context, call->stream.handle);
        status = status == TG_STATUS_OK ? waited : status;
        tg_release_memory(call->context, lengths);
    }
    tg_destroy_attention_plan(plan);
    return status;
}

static int compute(attention_call *call)
{
    void *const stream = call->stream.handle;
    PyThreadState *state = PyEval_SaveThread();
    const tg_status status = attend(call);
    PyEval_RestoreThread(state);
    if (tgpy_raise_status(status) ||
        tgpy_array_finish(&call->d, &call->q, call->context, stream, &call->result))
        return -1;
    return call->log_sum_exp_of ? tgpy_array_finish(&call->log_sum_exp, &call->q, call->context,
                                                    stream, &call->log_sum_exp_of)
                                : 0;
}

/* Returns D, or D and log_sum_exp. */
static PyObject *take_results(attention_call *call)
{
    if (call->log_sum_exp_of)
        return PyTuple_Pack(2, call->result, call->log_sum_exp_of);
    Py_INCREF(call->result);
    return call->result;
}

PyObject *tgpy_attend(PyObject *module, PyObject *values, PyObject *keywords)
{
    (void)module;
    static char *names[] = {"q",     "k",        "v",           "out",         "causal",
                            "scale", "soft_cap", "keys_before", "keys_after",  "batch_invariant",
                            "bias",  "slopes",   "key_lengths", "log_sum_exp", NULL};
    PyObject *none = Py_None;
    attention_arguments g = {.out = none,
                             .causal = none,
                             .scale = none,
                             .soft_cap = none,
                             .keys_before = none,
                             .keys_after = none,
                             .bias = none,
                             .slopes = none,
                             .key_lengths = none};
    if (!PyArg_ParseTupleAndKeywords(values, keywords, "OOO|O$OOOOOpOOOp:attention", names, &g.q,
                                     &g.k, &g.v, &g.out, &g.causal, &g.scale, &g.soft_cap,
                                     &g.keys_before, &g.keys_after, &g.is_batch_invariant, &g.bias,
                                     &g.slopes, &g.key_lengths, &g.has_log_sum_exp))
        return NULL;
    attention_call call = {.key_lengths = NULL};
    tgpy_array *const arrays[] = {&call.q,    &call.k,      &call.v,          &call.d,
                                  &call.bias, &call.slopes, &call.log_sum_exp};
    PyObject *results = describe(&call, &g) || compute(&call) ? NULL : take_results(&call);
    for (int i = 0; i < 7; i++)
        tgpy_array_release(arrays[i]);
    free(call.key_lengths);
    Py_XDECREF(call.result);
    Py_XDECREF(call.log_sum_exp_of);
    return results;
}

const char tgpy_attend_doc[] =
    "attention($module, q, k, v, out=None, *, causal=False, scale=None, soft_cap=None,"
    " keys_before=None, keys_after=None, bias=None, slopes=None, key_lengths=None,"
    " log_sum_exp=False, batch_invariant=False)\n"
    "--\n\n"
    "Return softmax(scale * q @ k.T + bias) @ v of each head.\n\n"
    "q is (batch, heads, m, d), k is (batch, kv_heads, n, d), v is (batch, kv_heads, n, dv) and\n"
    "the result is (batch, heads, m, dv). The heads, or batch and heads, may be missing. A batch\n"
    "of 1 serves all entries, and kv_heads divides heads: neighbouring heads of q share one of k\n"
    "and v. Views, transposes, negative strides and broadcast arrays are read where they are.\n\n"
    "q, k, v   arrays of float32, float64, float16 or bfloat16, as matmul takes them\n"
    "out       array that receives the result and is returned; it overlaps no operand\n"
    "causal    True or 'bottom_right': query i sees the keys up to i + n - m; 'top_left': up to\n"
    "          i. n is the entry's own where key_lengths is given.\n"
    "scale     default: 1 / sqrt(d)\n"
    "soft_cap  scores s become soft_cap * tanh(s / soft_cap)\n"
    "keys_before, keys_after  a window: how many keys before and after its place a query sees\n"
    "bias      array that broadcasts to (batch, heads, m, n), added to the scores: float32, or\n"
    "          float64 with float64 operands; -inf hides a key\n"
    "slopes    ALiBi: array of heads values of the bias's type\n"
    "key_lengths  a sequence: the keys that count in each batch entry\n"
    "log_sum_exp  True: return also the logarithm of each row's sum of exponentials, an array\n"
    "          (batch, heads, m) of the bias's type\n"
    "batch_invariant  True: on a GPU, too, the bits of a row depend on no other batch entry\n\n"
    "A row that sees no key is zero. tilegemm_attention.h states the error bound. On the\n"
    "CPU the bits of a row depend on its query and keys alone. The GIL is released. Exceptions\n"
    "are those of matmul. On a GPU d and dv are at most 256.\n\n"
    ">>> import numpy, tilegemm\n"
    ">>> q = numpy.array([[0, 0], [100, 0]], dtype=numpy.float32)\n"
    ">>> k = numpy.array([[1, 0], [0, 1]], dtype=numpy.float32)\n"
    ">>> v = numpy.array([[2], [4]], dtype=numpy.float32)\n"
    ">>> tilegemm.attention(q, k, v)\n"
    "array([[3.],\n"
    "       [2.]], dtype=float32)\n";
