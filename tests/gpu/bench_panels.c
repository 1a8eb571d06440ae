/* Times products of ordinary memory on a GPU, whose memory is limited.
 * usage: bench_panels TYPE MEMORY_BYTES[,MEMORY_BYTES...] ROUNDS MxNxK...
 * Each shape is multiplied from pageable memory, then from the same memory pinned, and prints a
 * line of JSON for each limit: the shortest of the rounds in seconds, what the model predicts, the
 * bytes copied, the rates of the bus, the time of the same product in the GPU's memory where that
 * holds it, and the share of the bound. The bound is the longer of that time and of the copies that
 * the panels with the least traffic need, both ways at once. TYPE may carry options that change
 * neither layouts nor operands: bf16:d=fp32. Some parts of D are compared with FP64.
 *
 * SPDX-License-Identifier: MIT
 */
#include <dlfcn.h>
#include <jansson.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "check/check.h"
#include "tilegemm_lab.h"

enum {
    /* Operands repeat after so many elements. The number is a prime, so that rows differ. */
    period = 4000037,
    thread_count_max = 16,
    limit_max = 8,
    bus_rounds = 8,
    check_rows = 2, /* a part of D that is compared has so many rows */
    check_cols = 32,
    check_count = 24
};
static const int64_t bus_bytes = (int64_t)256 << 20;

/* The functions of the driver that the bench needs. */
typedef struct bus_driver {
    int (*retain_context)(void **context, int device);
    int (*set_current)(void *context);
    int (*pin)(void *memory, size_t bytes, unsigned flags);
    int (*unpin)(void *memory);
    int (*create_stream)(void **stream, unsigned flags);
    int (*destroy_stream)(void *stream);
    int (*wait_for_stream)(void *stream);
    int (*copy_in)(uint64_t device, const void *host, size_t bytes, void *stream);
    int (*copy_out)(void *host, uint64_t device, size_t bytes, void *stream);
} bus_driver;

/* Bytes a second of the bus with pinned memory: each way alone, and each way at once. */
typedef struct bus_rates {
    double in, out, both;
} bus_rates;

typedef struct bench {
    tg_context *context;
    bus_driver driver;
    const char *type_text;
    int64_t memory_bytes[limit_max];
    int limit_count, rounds;
    bus_rates bus;
} bench;

static void require(int is_good, const char *what)
{
    if (is_good)
        return;
    fprintf(stderr, "%s: %s\n", what, tg_get_error_detail());
    exit(1);
}

static double read_clock_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void open_driver(bus_driver *driver)
{
    static const struct {
        const char *symbol;
        size_t offset;
    } functions[] = {
        {"cuDevicePrimaryCtxRetain", offsetof(bus_driver, retain_context)},
        {"cuCtxSetCurrent", offsetof(bus_driver, set_current)},
        {"cuMemHostRegister_v2", offsetof(bus_driver, pin)},
        {"cuMemHostUnregister", offsetof(bus_driver, unpin)},
        {"cuStreamCreate", offsetof(bus_driver, create_stream)},
        {"cuStreamDestroy_v2", offsetof(bus_driver, destroy_stream)},
        {"cuStreamSynchronize", offsetof(bus_driver, wait_for_stream)},
        {"cuMemcpyHtoDAsync_v2", offsetof(bus_driver, copy_in)},
        {"cuMemcpyDtoHAsync_v2", offsetof(bus_driver, copy_out)},
    };
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *context = NULL;
    require(library != NULL, "no libcuda.so.1");
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void *found = dlsym(library, functions[i].symbol);
        require(found != NULL, functions[i].symbol);
        *(void **)((char *)driver + functions[i].offset) = found;
    }
    require(!driver->retain_context(&context, 0) && !driver->set_current(context), "the context");
}

/* Returns the rate of copies on the bus, each way that is asked. */
static double time_bus(const bench *of, char *host, uint64_t device, int is_in, int is_out)
{
    const bus_driver *driver = &of->driver;
    void *in = NULL, *out = NULL;
    require(!driver->create_stream(&in, 1) && !driver->create_stream(&out, 1), "streams");
    double start_s = 0;
    for (int round = -1; round < bus_rounds; round++) {
        if (round == 0) {
            driver->wait_for_stream(in);
            driver->wait_for_stream(out);
            start_s = read_clock_s();
        }
        if (is_in)
            driver->copy_in(device, host, (size_t)bus_bytes, in);
        if (is_out)
            driver->copy_out(host + bus_bytes, device + (uint64_t)bus_bytes, (size_t)bus_bytes,
                             out);
    }
    require(!driver->wait_for_stream(in) && !driver->wait_for_stream(out), "copies");
    const double seconds = read_clock_s() - start_s;
    driver->destroy_stream(in);
    driver->destroy_stream(out);
    return bus_rounds * (double)bus_bytes / seconds;
}

/* Maps memory in large pages where the system has them, as numpy does. */
static char *map_memory(int64_t bytes)
{
    char *memory =
        mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(memory != MAP_FAILED, "mmap");
    madvise(memory, (size_t)bytes, MADV_HUGEPAGE);
    return memory;
}

static void time_buses(bench *of)
{
    char *host = map_memory(2 * bus_bytes);
    void *device = NULL;
    memset(host, 1, (size_t)(2 * bus_bytes));
    require(!of->driver.pin(host, (size_t)(2 * bus_bytes), 0), "pinning");
    require(!tg_allocate_memory(of->context, 2 * bus_bytes, &device), "the GPU's memory");
    const uint64_t at = (uint64_t)(uintptr_t)device;
    of->bus = (bus_rates){.in = time_bus(of, host, at, 1, 0),
                          .out = time_bus(of, host, at, 0, 1),
                          .both = time_bus(of, host, at, 1, 1)};
    tg_release_memory(of->context, device);
    of->driver.unpin(host);
    munmap(host, (size_t)(2 * bus_bytes));
}

/* Memory that one of some threads fills. */
typedef struct fill_part {
    char *to;
    const char *values;
    int64_t bytes, value_bytes; /* the memory and the period have so many */
    int64_t first, stride;      /* repeats that the thread fills */
} fill_part;

static void *fill_thread(void *state)
{
    const fill_part *part = state;
    for (int64_t i = part->first; i * part->value_bytes < part->bytes; i += part->stride) {
        const int64_t at = i * part->value_bytes, rest = part->bytes - at;
        memcpy(part->to + at, part->values,
               (size_t)(rest < part->value_bytes ? rest : part->value_bytes));
    }
    return NULL;
}

/* Fills the memory with random numbers of the type. */
static void fill(char *memory, int64_t bytes, tg_type type, uint64_t seed)
{
    const int64_t value_bytes = period * tg_get_type_bytes(type);
    char *values = malloc((size_t)value_bytes);
    pthread_t threads[thread_count_max];
    fill_part parts[thread_count_max];
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    const int count = online < thread_count_max ? (int)online : thread_count_max;
    require(values != NULL, "malloc");
    for (int64_t i = 0; i < period; i++)
        check_set_element(type, values, i, check_next_uniform(&seed));
    for (int i = 0; i < count; i++) {
        parts[i] = (fill_part){memory, values, bytes, value_bytes, i, count};
        require(!pthread_create(&threads[i], NULL, fill_thread, &parts[i]), "a thread");
    }
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    free(values);
}

static int64_t count_bytes(const tg_matrix *matrix)
{
    return matrix->row_count * matrix->col_count * tg_get_type_bytes(matrix->type);
}

/* Returns the seconds of the product in the GPU's memory, or 0 if that cannot hold it. */
static double time_on_device(const bench *of, const tg_problem *problem)
{
    tg_problem on_device = *problem;
    tg_matrix *matrices[] = {&on_device.a, &on_device.b, &on_device.d};
    double seconds = 0;
    int held = 0;
    for (; held < 3; held++) {
        void *memory = NULL;
        if (tg_allocate_memory(of->context, count_bytes(matrices[held]), &memory))
            break;
        if (held < 2)
            require(!tg_copy_to_device(of->context, memory, matrices[held]->data,
                                       count_bytes(matrices[held])),
                    "a copy");
        matrices[held]->data = memory;
    }
    /* The first one loads the kernel, which takes milliseconds. */
    for (int round = 0; round < (seconds > 1 ? 1 : 2) && held == 3; round++) {
        const double start_s = read_clock_s();
        require(!tg_multiply(of->context, &on_device) && !tg_synchronize(of->context, NULL),
                "the product on the GPU");
        const double elapsed_s = read_clock_s() - start_s;
        seconds = round == 0 ? elapsed_s : fmin(seconds, elapsed_s);
    }
    while (held-- > 0)
        tg_release_memory(of->context, (void *)(uintptr_t)matrices[held]->data);
    return seconds;
}

/* Returns the part of a matrix that starts at a row and a column. */
static tg_matrix cut(tg_matrix matrix, int64_t row, int64_t rows, int64_t col, int64_t cols)
{
    matrix.data =
        (char *)(uintptr_t)matrix.data +
        (row * matrix.row_stride + col * matrix.col_stride) * tg_get_type_bytes(matrix.type);
    matrix.row_count = rows;
    matrix.col_count = cols;
    return matrix;
}

/* Returns the largest share of the bound that an element of random parts of D takes, the last one
 * at its end. */
static double check_parts(const tg_problem *problem)
{
    const int64_t m = problem->d.row_count, n = problem->d.col_count, k = problem->a.col_count;
    const int64_t rows = m < check_rows ? m : check_rows, cols = n < check_cols ? n : check_cols;
    uint64_t seed = 11;
    double share = 0;
    for (int i = 0; i < check_count; i++) {
        const int is_last = i == check_count - 1;
        const int64_t row_rest = m - rows, col_rest = n - cols;
        const int64_t row =
            is_last ? row_rest : (int64_t)(check_next_random(&seed) >> 1) % (row_rest + 1);
        const int64_t col =
            is_last ? col_rest : (int64_t)(check_next_random(&seed) >> 1) % (col_rest + 1);
        tg_problem part = *problem;
        check_result result;
        part.a = cut(problem->a, row, rows, 0, k);
        part.b = cut(problem->b, 0, k, col, cols);
        part.d = cut(problem->d, row, rows, col, cols);
        require(check_compare(&part, INFINITY, &result) && result.is_ok, "D is wrong");
        share = fmax(share, result.max_bound_share);
    }
    return share;
}

/* Returns the time of the copies on the bus that panels within the limit need: those with the least
 * traffic by tg_choose_panels, or those that were chosen if they read less. */
static double find_copy_bound(const bench *of, const tg_problem *problem, int64_t memory_bytes,
                              const tg_panels *chosen)
{
    const tg_panel_limits limits = {.memory_bytes = memory_bytes, .buffer_count = 2};
    tg_panels panels;
    require(!tg_choose_panels(problem, &limits, &panels), "panels");
    const double in = fmin(panels.read_bytes, chosen->read_bytes), out = panels.written_bytes;
    const double both = fmin(in, out), alone = in > out ? of->bus.in : of->bus.out;
    return both / of->bus.both + (fmax(in, out) - both) / alone;
}

/* Multiplies and prints a line. */
static void run(const bench *of, const tg_problem *problem, const char *shape, const char *memory,
                int64_t memory_bytes, double device_s)
{
    double seconds = INFINITY, product_s = 0;
    tg_panel_run made = {.elapsed_s = 0};
    tg_panels panels;
    tg_panel_times times;
    json_t *all = json_array();
    require(all != NULL, "memory");
    for (int i = 0; i < of->rounds; i++) {
        require(!tg_multiply_in_panels(of->context, problem, memory_bytes, &made), shape);
        json_t *elapsed = json_real(made.elapsed_s);
        json_array_append(all, elapsed);
        json_decref(elapsed);
        if (made.elapsed_s < seconds)
            product_s = made.product_s;
        seconds = fmin(seconds, made.elapsed_s);
    }
    require(!tg_choose_gpu_panels(of->context, NULL, problem, memory_bytes, &panels, &times),
            shape);
    const double copy_s = find_copy_bound(of, problem, memory_bytes, &made.panels);
    const double bound_s = fmax(copy_s, device_s > 0 ? device_s : product_s);
    json_t *line = json_pack(
        "{s:s, s:s, s:I, s:f, s:o, s:f, s:f, s:f, s:f, s:s, s:f, s:f, s:f, s:f, s:f, s:[f,f,f], "
        "s:[I,I,I,I], s:s, s:f}",
        "shape", shape, "memory", memory, "limit_bytes", (json_int_t)memory_bytes, "seconds",
        seconds, "all_seconds", all, "product_s", product_s, "on_device_s", device_s,
        "least_copy_s", copy_s, "bound_s", bound_s, "bound",
        bound_s > copy_s ? "products" : "copies", "share", bound_s / seconds, "predicted_product_s",
        times.product_s, "predicted_s", times.total_s, "read_bytes", made.panels.read_bytes,
        "written_bytes", made.panels.written_bytes, "bus_bytes_per_s", of->bus.in, of->bus.out,
        of->bus.both, "panels", (json_int_t)made.panels.panel_count,
        (json_int_t)made.panels.row_count, (json_int_t)made.panels.col_count,
        (json_int_t)made.panels.held_count, "held", made.panels.is_b_held ? "b" : "a",
        "max_bound_share", check_parts(problem));
    require(line != NULL, "a line");
    char *text = json_dumps(line, JSON_REAL_PRECISION(5));
    puts(text);
    fflush(stdout);
    free(text);
    json_decref(line);
}

static void run_shape(const bench *of, const char *dimensions)
{
    char shape[128];
    tg_problem problem;
    snprintf(shape, sizeof shape, "%s:%s", dimensions, of->type_text);
    require(!tg_parse_problem(shape, &problem, sizeof problem), shape);
    tg_matrix *matrices[] = {&problem.a, &problem.b, &problem.d};
    const double start_s = read_clock_s();
    for (int i = 0; i < 3; i++) {
        char *memory = map_memory(count_bytes(matrices[i]));
        fill(memory, count_bytes(matrices[i]), matrices[i]->type, (uint64_t)i + 1);
        matrices[i]->data = memory;
    }
    const double filled_s = read_clock_s();
    const double device_s = time_on_device(of, &problem);
    for (int i = 0; i < of->limit_count; i++)
        run(of, &problem, shape, "pageable", of->memory_bytes[i], device_s);
    const double pin_s = read_clock_s();
    for (int i = 0; i < 3; i++)
        require(!of->driver.pin((void *)(uintptr_t)matrices[i]->data,
                                (size_t)count_bytes(matrices[i]), 0),
                "pinning");
    fprintf(stderr, "%s: filled in %.2f s, pinned in %.2f s\n", shape, filled_s - start_s,
            read_clock_s() - pin_s);
    for (int i = 0; i < of->limit_count; i++)
        run(of, &problem, shape, "pinned", of->memory_bytes[i], device_s);
    for (int i = 0; i < 3; i++) {
        of->driver.unpin((void *)(uintptr_t)matrices[i]->data);
        munmap((void *)(uintptr_t)matrices[i]->data, (size_t)count_bytes(matrices[i]));
    }
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        fprintf(stderr,
                "usage: bench_panels TYPE MEMORY_BYTES[,MEMORY_BYTES...] ROUNDS MxNxK...\n");
        return 2;
    }
    bench of = {.type_text = argv[1], .rounds = atoi(argv[3])};
    for (char *at = argv[2]; *at && of.limit_count < limit_max; at += *at == ',')
        of.memory_bytes[of.limit_count++] = strtoll(at, &at, 10);
    const tg_context_options options = {.struct_bytes = sizeof options, .device = "cuda"};
    require(!tg_create_context(&options, &of.context), "the GPU");
    open_driver(&of.driver);
    time_buses(&of);
    for (int i = 4; i < argc; i++)
        run_shape(&of, argv[i]);
    tg_destroy_context(of.context);
    return 0;
}
