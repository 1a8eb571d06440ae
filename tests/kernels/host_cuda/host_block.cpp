/* SPDX-License-Identifier: MIT */
#include <cuda_runtime.h>

#include <stdio.h>

extern "C" {
#include "sim/fiber.h"
}

enum { WARP_THREADS = 32, BLOCK_THREADS = 512, STACK_BYTES = 256 << 10, BANK_UNITS = 8 };

namespace
{

struct pending_copy {
    uint32_t shared;
    int bytes, group;
    char data[16];
};

struct host_thread {
    tgi_fiber fiber;
    int is_done, group;
    size_t copy_number; /* of the next copy of 16 bytes */
    std::vector<pending_copy> copies;
};

/* Threads that wait for each other: how many have come, and how often all have. */
struct host_meeting {
    int arrived_count, turn;
};

host_thread threads[BLOCK_THREADS];
host_meeting block_meeting, warp_meetings[BLOCK_THREADS / WARP_THREADS];
uint32_t exchanged[BLOCK_THREADS][8];
/* Units that the lanes of a warp write by their n-th copy; -1: none. */
std::vector<int> written_units[BLOCK_THREADS / WARP_THREADS];
std::vector<char> shared_memory, stacks;
tgi_fiber scheduler;
void (*block_body)(void);
int running, running_count;

void fail(const char *text)
{
    fprintf(stderr, "thread %d of block %u: %s\n", running, host_block_index.x, text);
    abort();
}

void let_others_run()
{
    tgi_fiber_switch(&threads[running].fiber, scheduler);
}

void meet(host_meeting &meeting, int thread_count)
{
    const int turn = meeting.turn;
    if (++meeting.arrived_count == thread_count) {
        meeting.arrived_count = 0;
        meeting.turn++;
    }
    while (meeting.turn == turn)
        let_others_run();
}

void run_thread()
{
    block_body();
    threads[running].is_done = 1;
    let_others_run();
}

/* Counts the units of eight lanes that meet in a bank; -1: none. */
void count_conflicts(const int *units)
{
    unsigned used = 0;
    for (int i = 0; i < 8; i++) {
        const unsigned bank = units[i] < 0 ? 0 : 1u << units[i] % BANK_UNITS;
        host_conflict_count += (used & bank) != 0;
        used |= bank;
    }
}

/* Returns element `index` of a word; FP32 as TF32. */
float decode(uint32_t word, int index, tg_type type)
{
    const uint32_t bits = word >> index * 8 * static_cast<int>(tgi_type_bytes(type));
    switch (type) {
    case TG_TYPE_BF16:
        return tgi_fp32_from_bf16(static_cast<uint16_t>(bits));
    case TG_TYPE_FP16:
        return tgi_fp32_from_fp16(static_cast<uint16_t>(bits));
    case TG_TYPE_FP8_E4M3:
        return tgi_fp32_from_e4m3(static_cast<uint8_t>(bits));
    case TG_TYPE_FP8_E5M2:
        return tgi_fp32_from_e5m2(static_cast<uint8_t>(bits));
    default:
        return __uint_as_float(bits & ~0x1fffu);
    }
}

} // namespace

host_index host_thread_index, host_block_index, host_grid_size;
long host_read_count, host_copy_count, host_conflict_count;

void host_run_block(void (*body)(void), int thread_count, int shared_bytes)
{
    stacks.resize(static_cast<size_t>(BLOCK_THREADS) * STACK_BYTES);
    shared_memory.assign(static_cast<size_t>(shared_bytes), '\xff');
    block_body = body;
    running_count = thread_count;
    block_meeting = {};
    for (int i = 0; i < thread_count; i++) {
        threads[i].is_done = threads[i].group = 0;
        threads[i].copy_number = 0;
        threads[i].copies.clear();
        warp_meetings[i / WARP_THREADS] = {};
        written_units[i / WARP_THREADS].clear();
        tgi_fiber_prepare(&threads[i].fiber, stacks.data() + static_cast<size_t>(i) * STACK_BYTES,
                          STACK_BYTES, run_thread);
    }
    for (int left = thread_count; left > 0;) {
        left = 0;
        for (running = 0; running < thread_count; running++) {
            if (threads[running].is_done)
                continue;
            left++;
            host_thread_index.x = static_cast<unsigned>(running);
            tgi_fiber_switch(&scheduler, threads[running].fiber);
        }
    }
    for (int i = 0; i < thread_count; i++)
        if (!threads[i].copies.empty())
            fail("copies that nobody waited for");
    for (int i = 0; i < thread_count / WARP_THREADS; i++)
        for (size_t first = 0; first < written_units[i].size(); first += 8)
            count_conflicts(written_units[i].data() + first);
}

void host_wait_for_block(void)
{
    meet(block_meeting, running_count);
}

void host_wait_for_warp(void)
{
    meet(warp_meetings[running / WARP_THREADS], WARP_THREADS);
}

char *host_find_shared(uint32_t address, int bytes)
{
    if (address % static_cast<unsigned>(bytes) || address + bytes > shared_memory.size())
        fail("an access to shared memory that is unaligned or outside");
    return shared_memory.data() + address;
}

const uint32_t *host_exchange(const uint32_t (&words)[8])
{
    memcpy(exchanged[running], words, sizeof words);
    host_wait_for_warp();
    return exchanged[running / WARP_THREADS * WARP_THREADS];
}

void host_skip_copy(void)
{
    threads[running].copy_number++;
}

void host_copy(uint32_t shared, const void *global, int bytes, int byte_count)
{
    host_thread &thread = threads[running];
    if (byte_count < 0 || byte_count > bytes ||
        (byte_count && reinterpret_cast<uintptr_t>(global) % static_cast<unsigned>(bytes)))
        fail("a copy from an unaligned address, or of a wrong size");
    host_find_shared(shared, bytes);
    pending_copy copy = {shared, bytes, thread.group, {}};
    if (byte_count) {
        host_check_global(global, bytes); /* a tool for initialized memory counts them all */
        memcpy(copy.data, global, static_cast<size_t>(byte_count));
    }
    thread.copies.push_back(copy);
    if (bytes < 16)
        return;
    std::vector<int> &units = written_units[running / WARP_THREADS];
    if (units.size() < (thread.copy_number + 1) * WARP_THREADS)
        units.resize((thread.copy_number + 1) * WARP_THREADS, -1);
    units[thread.copy_number++ * WARP_THREADS + running % WARP_THREADS] =
        static_cast<int>(shared / 16);
    host_copy_count++;
}

void host_commit_copies(void)
{
    threads[running].group++;
}

void host_wait_for_copies(int pending_count)
{
    host_thread &thread = threads[running];
    std::vector<pending_copy> kept;
    for (const pending_copy &copy : thread.copies) {
        if (copy.group < thread.group - pending_count)
            memcpy(shared_memory.data() + copy.shared, copy.data, static_cast<size_t>(copy.bytes));
        else
            kept.push_back(copy);
    }
    thread.copies.swap(kept);
}

void host_read_matrices(uint32_t (&part)[4], uint32_t shared, int is_transposed)
{
    const int lane = running % WARP_THREADS, g = lane / 4, c = lane % 4;
    host_find_shared(shared, 16);
    const uint32_t *addresses = host_exchange({shared});
    for (int i = 0; i < 4; i++) {
        uint16_t elem[2];
        int units[8];
        for (int row = 0; row < 8; row++)
            units[row] = static_cast<int>(addresses[(8 * i + row) * 8] / 16);
        if (lane == 0) {
            count_conflicts(units);
            host_read_count += 8;
        }
        for (int j = 0; j < 2; j++) {
            const int row = is_transposed ? 2 * c + j : g, col = is_transposed ? g : 2 * c + j;
            memcpy(&elem[j], shared_memory.data() + 16 * units[row] + 2 * col, 2);
        }
        part[i] = elem[0] | static_cast<uint32_t>(elem[1]) << 16;
    }
    host_wait_for_warp();
}

void host_multiply(float (&sum)[4], const uint32_t (&a)[4], uint32_t b_0, uint32_t b_1,
                   tg_type a_type, tg_type b_type)
{
    const int lane = running % WARP_THREADS,
              per_word = 4 / static_cast<int>(tgi_type_bytes(a_type));
    const uint32_t *words = host_exchange({a[0], a[1], a[2], a[3], b_0, b_1});
    for (int i = 0; i < 4; i++) {
        const int row = lane / 4 + i / 2 * 8, col = lane % 4 * 2 + i % 2;
        for (int k = 0; k < 8 * per_word; k++) {
            /* Lane 4 g + c has words c and c + 4 of k; see ptx/warp_mma.cuh. */
            const int word = k / per_word;
            const uint32_t *own_a = words + (row % 8 * 4 + word % 4) * 8;
            const uint32_t *own_b = words + (col * 4 + word % 4) * 8;
            sum[i] += decode(own_a[row / 8 + word / 4 * 2], k % per_word, a_type) *
                      decode(own_b[4 + word / 4], k % per_word, b_type);
        }
    }
    host_wait_for_warp();
}

uint32_t host_read_word(uint32_t shared)
{
    const int lane = running % WARP_THREADS;
    uint32_t word, used[32] = {};
    memcpy(&word, host_find_shared(shared, 4), 4);
    const uint32_t *addresses = host_exchange({shared});
    for (int i = 0; lane == 0 && i < WARP_THREADS; i++) {
        const uint32_t own = addresses[i * 8] / 4, bank = own % 32;
        host_conflict_count += used[bank] && used[bank] != own + 1;
        used[bank] = own + 1;
    }
    host_read_count += lane % 4 == 0;
    host_wait_for_warp();
    return word;
}
