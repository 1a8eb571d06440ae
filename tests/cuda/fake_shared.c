/* Memory of the fake driver that other processes of the host open.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fake_streams.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A block, which is a file without a name. */
typedef struct shared_block {
    void *memory;
    size_t bytes;
    int file;
} shared_block;

static shared_block blocks[256];

/* This struct replaces CUipcMemHandle of cuda.h. */
typedef struct fake_share {
    char path[64];
} fake_share;

static shared_block *find_block(const void *memory)
{
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        if (blocks[i].memory == memory)
            return &blocks[i];
    return NULL;
}

/* Maps a file and notes it. */
static void *map_block(int file, size_t bytes)
{
    shared_block *block = find_block(NULL);
    void *memory = block && file >= 0
                       ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
                       : MAP_FAILED;
    if (memory == MAP_FAILED)
        return NULL;
    *block = (shared_block){memory, bytes, file};
    return memory;
}

void *fake_allocate(size_t bytes)
{
    void *memory = NULL;
    if (!getenv("FAKE_CUDA_SHARED"))
        return posix_memalign(&memory, 256, bytes) ? NULL : memory;
    const int file = memfd_create("fake", MFD_CLOEXEC);
    return file < 0 || ftruncate(file, (off_t)bytes) ? NULL : map_block(file, bytes);
}

void fake_release(void *memory)
{
    shared_block *block = memory ? find_block(memory) : NULL;
    if (!block) {
        free(memory);
        return;
    }
    munmap(memory, block->bytes);
    close(block->file);
    *block = (shared_block){NULL, 0, 0};
}

int cuIpcGetMemHandle(fake_share *share, uint64_t memory)
{
    RETURN_FAILURE();
    const shared_block *block = find_block((void *)(uintptr_t)memory);
    if (!block)
        return error_invalid_value;
    snprintf(share->path, sizeof share->path, "/proc/%d/fd/%d", (int)getpid(), block->file);
    return 0;
}

int cuIpcOpenMemHandle_v2(uint64_t *memory, fake_share share, unsigned flags)
{
    struct stat status;
    RETURN_FAILURE();
    (void)flags;
    const int file = open(share.path, O_RDWR | O_CLOEXEC);
    if (file < 0 || fstat(file, &status))
        return error_invalid_value;
    *memory = (uint64_t)(uintptr_t)map_block(file, (size_t)status.st_size);
    fake_get_driver()->shared_count++;
    return *memory ? 0 : error_out_of_memory;
}

int cuIpcCloseMemHandle(uint64_t memory)
{
    fake_finish_streams();
    fake_get_driver()->shared_count--;
    fake_release((void *)(uintptr_t)memory);
    return 0;
}
