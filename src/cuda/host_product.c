/*
 * Multiplies operands in the processor's memory in panels. While some panels are multiplied, the
 * operands of later ones are copied in and earlier results are copied out. Each of these has a
 * stream, that of the products being the caller's, and events order them.
 *
 * An operand has slots on the device. A panel of it stays in its slot until the panels of the other
 * operand have passed it, as tg_panels says, and slots are refilled in turn. Two numbers run
 * through the panels: operands of all panels below `loaded` are on their way in, and products of
 * all panels below `launched` are in the stream. Loading runs ahead as far as slots allow.
 */
#include "cuda/host_product.h"

#include <string.h>

#include "core/alloc.h"
#include "core/checked.h"
#include "core/status.h"
#include "cuda/panel_copies.h"
#include "cuda/runtime/device_memory.h"
#include "plan/clock.h"
#include "plan/host_multiply.h"
#include "plan/panel_choice.h"

#define SLOT_ALIGNMENT 256
/* A panel_slot is a place on the device for one panel of an operand, with two events. */
typedef struct panel_slot {
    tgi_operand_lines lines; /* lines that the slot holds; zeros: none */
    char *memory;
    void *ready;    /* event: the copy, or for D the product, is complete */
    void *released; /* event: its last product has ended; for D: starts */
    int64_t last;   /* last panel that it is loaded for */
} panel_slot;

typedef struct operand_slots {
    panel_slot *slots;
    int64_t count, next; /* number of slots, and the slot that is filled next */
} operand_slots;

typedef struct host_product {
    tg_context *context;
    const tg_problem *problem;
    const tgi_machine *machine;
    const tgi_driver *driver;
    void *stream;
    int64_t loaded, launched;
    tg_status status; /* status of the library; `copies` has errors of the driver */
    tgi_cuda_panel_copies copies;
    void *memory; /* device memory of all slots */
    panel_slot *slots;
    int64_t slot_count;
    operand_slots operands[TGI_OPERAND_COUNT];
    tg_panel_run run;
} host_product;

static int note(host_product *product, int error)
{
    return tgi_cuda_note_error(&product->copies, error);
}

/* Returns 1 if nothing failed. */
static int is_well(const host_product *product)
{
    return !product->status && !product->copies.error;
}

/* Returns the slot that holds these lines of an operand, or NULL. */
static panel_slot *find_slot(const operand_slots *operand, const tgi_operand_lines *lines)
{
    for (int64_t i = 0; i < operand->count; i++) {
        if (memcmp(&operand->slots[i].lines, lines, sizeof *lines) == 0)
            return &operand->slots[i];
    }
    return NULL;
}

/* Starts to copy an operand of panel `loaded` in, unless a slot holds it. The slot that it takes is
 * free once the products that use it are in the stream. */
static void load_operand(host_product *product, const tg_problem *panel, int id)
{
    operand_slots *operand = &product->operands[id];
    const tgi_operand_lines lines = tgi_operand_lines_find(panel, id);
    panel_slot *slot = find_slot(operand, &lines);
    if (slot) {
        slot->last = product->loaded;
        return;
    }
    slot = &operand->slots[operand->next];
    operand->next = (operand->next + 1) % operand->count;
    while (slot->last >= product->launched && is_well(product))
        tgi_cuda_bring_on(&product->copies);
    if (!is_well(product))
        return;
    slot->lines = lines;
    slot->last = product->loaded;
    void *const stream = product->copies.in_stream;
    note(product, product->driver->make_stream_wait(stream, slot->released, 0));
    tgi_cuda_copy_panel_in(&product->copies, &lines, slot->memory);
    note(product, product->driver->record_event(slot->ready, stream));
}

/* Adds the time of the product whose D was in the slot and has been copied out, if there was
 * one. */
static void add_time(host_product *product, panel_slot *d)
{
    float elapsed_ms = 0;
    if (d->lines.data && !product->copies.error)
        note(product, product->driver->time_between(&elapsed_ms, d->released, d->ready));
    product->run.product_s += 1e-3 * (double)elapsed_ms;
}

/* Executes the panel between the events of D's slot. */
static tg_status execute(host_product *product, const tg_problem *on_device, const panel_slot *d)
{
    const tgi_driver *driver = product->driver;
    tg_plan *plan = NULL;
    tg_buffers buffers;
    tg_status status = tg_create_plan(product->context, on_device, NULL, &plan);
    if (!status)
        status = tg_init_buffers(&buffers, sizeof buffers, on_device);
    if (!status && note(product, driver->record_event(d->released, product->stream))) {
        buffers.stream = product->stream;
        status = tg_execute_plan(plan, &buffers);
    }
    note(product, driver->record_event(d->ready, product->stream));
    tg_destroy_plan(plan);
    return status;
}

/* Returns the slot of D for panel `launched`. The slot's previous panel has been copied out. */
static panel_slot *take_d(host_product *product, const tg_problem *panel)
{
    const operand_slots *d = &product->operands[TGI_OPERAND_d];
    panel_slot *slot = &d->slots[product->launched % d->count];
    add_time(product, slot);
    slot->lines = tgi_operand_lines_find(panel, TGI_OPERAND_d);
    return slot;
}

/* Puts the product of panel `launched` into the stream, and the copy of D behind it. */
static void launch(host_product *product, const tg_problem *panel)
{
    const unsigned used = tgi_operands_find_used(panel);
    panel_slot *d = take_d(product, panel), *slots[TGI_OPERAND_COUNT] = {NULL};
    tg_problem on_device = *panel;
    tgi_operand_lines_use_copy(&on_device, TGI_OPERAND_d, d->memory);
    for (int id = 0; id < TGI_OPERAND_COUNT; id++) {
        if (id == TGI_OPERAND_d || !(used >> id & 1u))
            continue;
        const tgi_operand_lines lines = tgi_operand_lines_find(panel, id);
        slots[id] = find_slot(&product->operands[id], &lines);
        note(product, product->driver->make_stream_wait(product->stream, slots[id]->ready, 0));
        tgi_operand_lines_use_copy(&on_device, id, slots[id]->memory);
    }
    if (product->copies.error || (product->status = execute(product, &on_device, d)))
        return;
    for (int id = 0; id < TGI_OPERAND_COUNT; id++) {
        if (slots[id])
            note(product, product->driver->record_event(slots[id]->released, product->stream));
    }
    product->launched++;
    tgi_cuda_copy_panel_out(&product->copies, &d->lines, d->memory, d->ready);
}

/* Launches the next panel, if it is loaded and D has a slot for it. */
static int launch_next(void *state)
{
    host_product *product = state;
    tg_problem panel;
    if (product->launched == product->loaded || !is_well(product) ||
        tgi_cuda_count_out(&product->copies) == product->operands[TGI_OPERAND_d].count)
        return 0;
    product->status =
        tg_get_panel(product->problem, &product->run.panels, product->launched, &panel);
    if (!product->status)
        launch(product, &panel);
    return is_well(product);
}

/* Loads and launches all panels, and waits for D. */
static void run_panels(host_product *product)
{
    const int64_t panel_count = product->run.panels.panel_count;
    while (product->loaded < panel_count && is_well(product)) {
        tg_problem panel;
        product->status =
            tg_get_panel(product->problem, &product->run.panels, product->loaded, &panel);
        const unsigned used = tgi_operands_find_used(&panel);
        for (int id = 0; id < TGI_OPERAND_COUNT && is_well(product); id++) {
            if (id != TGI_OPERAND_d && (used >> id & 1u))
                load_operand(product, &panel, id);
        }
        product->loaded++;
        launch_next(product);
    }
    while ((product->launched < panel_count || tgi_cuda_count_out(&product->copies) > 0) &&
           is_well(product))
        tgi_cuda_bring_on(&product->copies);
    for (int64_t i = 0; i < product->operands[TGI_OPERAND_d].count && is_well(product); i++)
        add_time(product, &product->operands[TGI_OPERAND_d].slots[i]);
}

/* Sets how many slots each operand has. */
static void count_slots(host_product *product, unsigned used)
{
    const tg_panels *panels = &product->run.panels;
    for (int id = 0; id < TGI_OPERAND_COUNT; id++) {
        const int is_held =
            panels->batch_count == 1 && id == (panels->is_b_held ? TGI_OPERAND_b : TGI_OPERAND_a);
        const int is_streamed = id == TGI_OPERAND_a || id == TGI_OPERAND_b;
        int64_t count = is_held       ? panels->held_count
                        : is_streamed ? panels->stream_count
                                      : panels->d_count;
        if (count > panels->panel_count)
            count = panels->panel_count;
        product->operands[id].count = used >> id & 1u ? count : 0;
        product->slot_count += product->operands[id].count;
    }
}

/* Allocates the slots, by the sizes of the first panel, which is as large as any. */
static tg_status make_slots(host_product *product, const tg_problem *panel)
{
    int64_t bytes[TGI_OPERAND_COUNT], total_bytes = 0;
    count_slots(product, tgi_operands_find_used(panel));
    for (int id = 0; id < TGI_OPERAND_COUNT; id++) {
        const tgi_operand_lines lines = tgi_operand_lines_find(panel, id);
        bytes[id] = SLOT_ALIGNMENT *
                    tgi_divide_up(tgi_operand_lines_count_bytes(&lines) + 1, SLOT_ALIGNMENT);
        total_bytes += product->operands[id].count * bytes[id];
    }
    product->slots = tgi_alloc_object(product->slot_count * (int64_t)sizeof *product->slots);
    if (!product->slots)
        return TG_STATUS_OUT_OF_MEMORY;
    const tg_status status = tgi_cuda_allocate(product->machine, total_bytes, &product->memory);
    panel_slot *slot = product->slots;
    char *memory = product->memory;
    for (int id = 0; id < TGI_OPERAND_COUNT && !status; id++) {
        product->operands[id].slots = slot;
        for (int64_t i = 0; i < product->operands[id].count; i++, slot++, memory += bytes[id]) {
            slot->memory = memory;
            slot->last = -1;
            note(product, product->driver->create_event(&slot->ready, 0));
            note(product, product->driver->create_event(&slot->released, 0));
        }
    }
    return status;
}

/* Returns the limit in bytes of tg_multiply's panels: what the context allows or, if it names no
 * limit, a part of the free memory, because workspaces need memory too. */
static int64_t find_limit(host_product *product)
{
    const int64_t allowed = product->machine->workspace_limit_bytes;
    size_t free_bytes = 0, total_bytes = 0;
    note(product, product->driver->get_free_bytes(&free_bytes, &total_bytes));
    const int64_t limit = (int64_t)(free_bytes / 4 * 3) + 1;
    return allowed > 0 && allowed < limit ? allowed : limit;
}

/* Chooses the panels. The order of sums of a batch-invariant product may depend on its columns, so
 * D keeps them all. */
static tg_status choose_panels(host_product *product, int64_t memory_bytes)
{
    const tg_problem *problem = product->problem;
    tg_panels *panels = &product->run.panels;
    const tgi_panel_rates rates = tgi_host_find_rates(product->context, problem);
    const tg_status status = tgi_panels_choose_by_time(
        &tgi_backend_cuda, product->machine, problem,
        memory_bytes ? memory_bytes : find_limit(product), &rates, panels, NULL);
    if (status || !problem->is_batch_invariant || panels->col_panel_count == 1)
        return status;
    return tgi_status_fail(TG_STATUS_UNSUPPORTED,
                           "is_batch_invariant = 1, but D of ordinary memory is formed in panels "
                           "of %lld of its %lld columns, on which the order of sums may depend; "
                           "pass operands in the memory of the GPU",
                           (long long)panels->col_count, (long long)problem->d.col_count);
}

/* Opens what the panels need, and multiplies them. */
static tg_status multiply(host_product *product, int64_t memory_bytes)
{
    tg_problem panel;
    tg_status status =
        tgi_cuda_open_copies(product->machine, launch_next, product, &product->copies);
    if (!status)
        status = choose_panels(product, memory_bytes);
    if (!status)
        status = tg_get_panel(product->problem, &product->run.panels, 0, &panel);
    if (!status)
        status = make_slots(product, &panel);
    if (status)
        return status;
    /* The stream's earlier work may write operands, which the processor and other streams read. */
    note(product, product->driver->wait_for_stream(product->stream));
    run_panels(product);
    return !product->status && product->copies.error
               ? tgi_driver_fail(product->driver, product->copies.error,
                                 "a copy failed, or a product before it")
               : product->status;
}

/* Frees what `multiply` opened. After a failure it first waits for work that is under way. */
static void close_product(host_product *product, int is_idle)
{
    const tgi_driver *driver = product->driver;
    if (!is_idle)
        driver->wait_for_stream(product->stream);
    tgi_cuda_close_copies(&product->copies, is_idle);
    for (int64_t i = 0; product->slots && i < product->slot_count; i++) {
        if (product->slots[i].ready)
            driver->destroy_event(product->slots[i].ready);
        if (product->slots[i].released)
            driver->destroy_event(product->slots[i].released);
    }
    tgi_cuda_release(product->machine, product->memory);
    tgi_alloc_free(product->slots);
}

tg_status tgi_cuda_multiply_host(tg_context *context, const tgi_machine *machine,
                                 const tg_problem *problem, int64_t memory_bytes, void *stream,
                                 tg_panel_run *run)
{
    const double start_s = tgi_clock_read_s();
    const tgi_cuda_device *device = machine->device;
    host_product product = {.context = context,
                            .problem = problem,
                            .machine = machine,
                            .driver = device->driver,
                            .stream = stream};
    void *before;
    if (tgi_cuda_find_owner(machine, stream).capture)
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                               "stream = %p is being captured, and a product of the processor's "
                               "memory is no part of a graph; pass device pointers",
                               stream);
    tg_status status = tgi_cuda_enter(device, &before);
    if (status)
        return status;
    status = multiply(&product, memory_bytes);
    close_product(&product, status == TG_STATUS_OK);
    tgi_cuda_leave(device, before);
    product.run.elapsed_s = tgi_clock_read_s() - start_s;
    if (run)
        *run = product.run;
    return status;
}
