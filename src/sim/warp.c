/* Serves the instructions that the lanes of a warp execute together, and accesses to shared memory
 * by its address. */
#include <math.h>
#include <string.h>

#include "core/dtype.h"
#include "core/types.h"
#include "model/banks.h"
#include "sim/hooks.h"
#include "sim/run_state.h"

enum { UNIT_BYTES = 16 };    /* read by a lane in ldmatrix */
enum { UNWRITTEN = 0x7fff }; /* NaN in BF16 and FP16 */
#define CALLER __builtin_return_address(0)

/* Leaves words for the other lanes and waits for theirs. Returns the warp's lanes; what they have
 * brought is in exchanged[*buffer]. A warp executes instructions on shared memory in their order,
 * so that accesses of any lane before the meeting precede those of all lanes after it. */
static const sim_thread *meet_lanes(const uint32_t *words, int word_count, const void *caller,
                                    int *buffer)
{
    sim_run *run = tgi_sim_now;
    sim_thread *thread = run->thread;
    *buffer = thread->meeting_count++ % 2;
    for (int i = 0; i < word_count; i++)
        thread->exchanged[*buffer][i] = words[i];
    thread->wait_site = tgi_sim_resolve_site(run, caller);
    thread->state = THREAD_MEETS;
    tgi_fiber_switch(&thread->fiber, run->scheduler);
    thread->sync_count++;
    return &run->threads[thread->index / TGI_WARP_THREADS * TGI_WARP_THREADS];
}

/* ldmatrix reads whole units of 16 bytes, of which a kernel may use a part, or nothing if the stage
 * is never filled. A read of bytes that no thread of the block has written is therefore no finding
 * here. Such bytes read as NaN, which shows in D if they are used. */
void tgi_sim_read_matrices(uint32_t fragment[4], uint32_t shared, int is_transposed)
{
    sim_run *run = tgi_sim_now;
    const int lane = run->thread->index % TGI_WARP_THREADS, g = lane / 4, c = lane % 4;
    const uintptr_t place = run->shared.low + shared;
    const uint32_t words[] = {shared, (uint32_t)tgi_sim_is_written(run, place, UNIT_BYTES)};
    int buffer;
    run->thread->reads_ahead = 1;
    tgi_sim_access_shared(place, UNIT_BYTES, 0, CALLER);
    run->thread->reads_ahead = 0;
    const sim_thread *lanes = meet_lanes(words, 2, CALLER, &buffer);
    for (int i = 0; i < 4; i++) {
        uint16_t elems[2] = {UNWRITTEN, UNWRITTEN};
        for (int j = 0; j < 2; j++) {
            const int row = is_transposed ? 2 * c + j : g, col = is_transposed ? g : 2 * c + j;
            const uint32_t *brought = lanes[8 * i + row].exchanged[buffer];
            const char *start = (const char *)(run->shared.low + brought[0]);
            if (brought[1])
                memcpy(&elems[j], start + 2 * col, sizeof elems[j]);
        }
        fragment[i] = elems[0] | (uint32_t)elems[1] << 16;
    }
}

void tgi_sim_write_matrices(uint32_t shared, const uint32_t fragment[4])
{
    const int lane = tgi_sim_now->thread->index % TGI_WARP_THREADS;
    int buffer;
    const sim_thread *lanes = meet_lanes(&shared, 1, CALLER, &buffer);
    tgi_sim_access_shared(tgi_sim_now->shared.low + shared, UNIT_BYTES, 1, CALLER);
    for (int i = 0; i < 4; i++) {
        const uint32_t row = lanes[8 * i + lane / 4].exchanged[buffer][0];
        memcpy((char *)tgi_sim_now->shared.low + row + lane % 4 * 4, &fragment[i],
               sizeof fragment[i]);
    }
}

uint32_t tgi_sim_shuffle(uint32_t word, int lane)
{
    int buffer;
    return meet_lanes(&word, 1, CALLER, &buffer)[lane % TGI_WARP_THREADS].exchanged[buffer][0];
}

void tgi_sim_sync_warp(void)
{
    int buffer;
    meet_lanes(NULL, 0, CALLER, &buffer);
}

void tgi_sim_load_shared(void *value, uint32_t shared, int size_bytes)
{
    sim_run *run = tgi_sim_now;
    const uintptr_t place = run->shared.low + shared;
    run->thread->reads_ahead = 1;
    tgi_sim_access_shared(place, size_bytes, 0, CALLER);
    run->thread->reads_ahead = 0;
    memcpy(value, (const void *)place, (size_t)size_bytes);
    for (int i = 0; i < size_bytes; i += 4) {
        const int left = size_bytes - i < 4 ? size_bytes - i : 4;
        const uint16_t unwritten[2] = {UNWRITTEN, UNWRITTEN};
        if (!tgi_sim_is_written(run, place + (uintptr_t)i, left))
            memcpy((char *)value + i, unwritten, (size_t)left);
    }
}

void tgi_sim_store_shared(uint32_t shared, const void *value, int size_bytes)
{
    const uintptr_t place = tgi_sim_now->shared.low + shared;
    tgi_sim_access_shared(place, size_bytes, 1, CALLER);
    memcpy((void *)place, value, (size_t)size_bytes);
}

/* Writes the numbers of `count` words, in the order of k, as the bits of FP32. */
static void decode(const uint32_t *words, int count, tg_type type, uint32_t *numbers)
{
    const int bytes = (int)tgi_type_bytes(type), per_word = 4 / bytes;
    for (int i = 0; i < count * per_word; i++) {
        const uint32_t bits = words[i / per_word] >> i % per_word * 8 * bytes;
        const float number = type == TG_TYPE_BF16       ? tgi_fp32_from_bf16((uint16_t)bits)
                             : type == TG_TYPE_FP16     ? tgi_fp32_from_fp16((uint16_t)bits)
                             : type == TG_TYPE_FP8_E4M3 ? tgi_fp32_from_e4m3((uint8_t)bits)
                             : type == TG_TYPE_FP8_E5M2 ? tgi_fp32_from_e5m2((uint8_t)bits)
                                                        : 0.0f;
        const uint32_t tf32 = bits & ~0x1fffu;
        memcpy(&numbers[i], type == TG_TYPE_FP32 ? (const void *)&tf32 : &number, 4);
    }
}

void tgi_sim_multiply_matrices(float sum[4], const uint32_t a[4], uint32_t b_0, uint32_t b_1,
                               tg_type a_type, tg_type b_type)
{
    const int lane = tgi_sim_now->thread->index % TGI_WARP_THREADS;
    const int per_word = 4 / (int)tgi_type_bytes(a_type);
    const uint32_t b[] = {b_0, b_1};
    uint32_t numbers[EXCHANGED_WORDS];
    int buffer;
    decode(a, 4, a_type, numbers);
    decode(b, 2, b_type, numbers + 4 * per_word);
    const sim_thread *lanes = meet_lanes(numbers, 6 * per_word, CALLER, &buffer);
    for (int i = 0; i < 4; i++) {
        const int row = lane / 4 + i / 2 * 8, col = lane % 4 * 2 + i % 2;
        for (int word = 0; word < 8; word++) {
            /* Lane 4 g + c has words c and c + 4 of k. */
            const uint32_t *of_a = lanes[row % 8 * 4 + word % 4].exchanged[buffer] +
                                   (row / 8 + word / 4 * 2) * per_word;
            const uint32_t *of_b =
                lanes[col * 4 + word % 4].exchanged[buffer] + (4 + word / 4) * per_word;
            for (int k = 0; k < per_word; k++) {
                float left, right;
                memcpy(&left, &of_a[k], sizeof left);
                memcpy(&right, &of_b[k], sizeof right);
                sum[i] += left * right;
            }
        }
    }
    tgi_sim_count_products(sum, 4, 8 * per_word, CALLER);
}

void tgi_sim_multiply_fp64(double sum[4], const double a[2], double b)
{
    const int lane = tgi_sim_now->thread->index % TGI_WARP_THREADS;
    const double own[3] = {a[0], a[1], b};
    uint32_t words[6];
    int buffer;
    memcpy(words, own, sizeof own);
    const sim_thread *lanes = meet_lanes(words, 6, CALLER, &buffer);
    for (int k = 0; k < 4; k++) {
        for (int i = 0; i < 4; i++) {
            double left, right;
            memcpy(&left, lanes[lane / 4 * 4 + k].exchanged[buffer] + i / 2 * 2, sizeof left);
            memcpy(&right, lanes[(lane % 4 * 2 + i % 2) * 4 + k].exchanged[buffer] + 4,
                   sizeof right);
            sum[i] = fma(left, right, sum[i]);
        }
    }
}
