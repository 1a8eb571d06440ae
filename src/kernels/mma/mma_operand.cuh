/*
 * An operand of family mma in shared memory: how its stages are copied from global memory and how
 * fragments of matrix instructions are read from them.
 *
 * A stage holds Count entries, rows of A or columns of B, by Depth of k, in lines as they lie in
 * global memory: along k, a line an entry, or across, a line a k. Lines are cut into units of 16
 * bytes, whose places are permuted by the number of the line, so that neither ldmatrix, which reads
 * the same unit of eight lines, nor copies of neighbouring units meet a bank twice.
 *
 * A step is 16 of k. A fragment is what a warp holds of 16 entries by a step.
 */
#ifndef TGI_MMA_OPERAND_CUH
#define TGI_MMA_OPERAND_CUH

#include "kernels/copy/tile_copy.cuh"
#include "kernels/mma/unit_lines.cuh"
#include "kernels/ptx/shared_memory.cuh"

/* An operand as one block sees it. Element (line, elem) lies at data + line * line_stride + elem *
 * elem_stride. */
struct tgi_mma_source {
    const uint16_t *data;
    int64_t line_stride, elem_stride;
    int entry_count; /* rows of A or columns of B from the tile's first on, at most the tile's */
    int copy_bytes;  /* bytes of an access: 16, 8, 4 or 2 */

    /* Finds copy_bytes for an operand at `start`. Lines of contiguous elements allow accesses of as
     * many bytes as all of them are multiples of. */
    __device__ __forceinline__ void find_copy_bytes(const void *start, int64_t batch_stride,
                                                    int64_t line_count)
    {
        const int64_t steps = (line_count > 1 ? line_stride : 0) | batch_stride;
        const int places =
            static_cast<int>(reinterpret_cast<uintptr_t>(start)) | static_cast<int>(2 * steps) | 16;
        copy_bytes = elem_stride == 1 ? places & -places : 2;
    }
};

/* Is_a: fragments are those of the wide operand of the matrix instruction. */
template <int Count, int Depth, int Along_k, int Is_a, int Threads> struct tgi_mma_operand {
    static constexpr int lines = Along_k ? Count : Depth, elems = Along_k ? Depth : Count;
    static constexpr int unit_elems = 8;
    static constexpr int units = elems / unit_elems, line_bytes = elems * 2;
    static constexpr int bytes = lines * line_bytes;
    typedef tgi_unit_lines<units> places;
    /* A thread copies `accesses` units of a stage, of lines line_step apart. */
    static constexpr int line_step = Threads / units;
    static constexpr int accesses = (lines + line_step - 1) / line_step;
    static constexpr int has_idle = lines < line_step;
    static_assert(Threads % units == 0 && (has_idle || lines % line_step == 0),
                  "a thread's accesses are alike");

    static __device__ __forceinline__ int find_elem(int line, int index)
    {
        return places::find(line, index / unit_elems) + index % unit_elems * 2;
    }

    static __device__ __forceinline__ int own_line()
    {
        return static_cast<int>(threadIdx.x) / units;
    }

    static __device__ __forceinline__ int own_unit()
    {
        return static_cast<int>(threadIdx.x) % units;
    }

    /* Returns 1 if each unit of a stage of whole k is all inside the operand or all outside. */
    static __device__ __forceinline__ int has_whole_units(const tgi_mma_source &from)
    {
        return from.copy_bytes == 16 && (Along_k || from.entry_count % unit_elems == 0);
    }

    /* The copies of one thread of stages of whole k and whole units. Units outside the operand are
     * left as they are: they count only in sums outside D. */
    struct copies {
        const uint16_t *data;
        int64_t access_bytes; /* from access to access */
        int left;             /* entries from the thread's first on */
        int target;           /* place of the first access in a stage */

        __device__ __forceinline__ copies(const tgi_mma_source &from)
        {
            data = from.data + own_line() * from.line_stride + own_unit() * unit_elems;
            access_bytes = 2 * line_step * from.line_stride;
            left = from.entry_count - (Along_k ? own_line() : own_unit() * unit_elems);
            if (has_idle && own_line() >= lines)
                left = 0;
            target = places::find(own_line(), own_unit());
        }

        __device__ __forceinline__ int is_inside(int i) const
        {
            return left > (Along_k ? i * line_step : 0);
        }

        /* Returns the place of access i in the stage at `stage`. Lines a step apart differ in the
         * order of their units unless eight or all of them lie between. */
        __device__ __forceinline__ uint32_t find_target(uint32_t stage, int i) const
        {
            return stage + (target ^ places::find_order(i * line_step) << 4) +
                   i * line_step * line_bytes;
        }

        /* Issues accesses first .. end - 1 of the stage at `stage`, in order; the last one moves on
         * to the next stage, `advance` elements away. */
        __device__ __forceinline__ void issue(uint32_t stage, int first, int end, int64_t advance)
        {
#pragma unroll
            for (int i = first; i < end; i++) {
                tgi_copy_async_if<16>(find_target(stage, i), data, is_inside(i));
                data = reinterpret_cast<const uint16_t *>(reinterpret_cast<const char *>(data) +
                                                          access_bytes);
                if (i == accesses - 1)
                    data += advance - accesses * (access_bytes / 2);
            }
        }
    };

    /* Copies a stage that has k_left of k, with zeros behind, element by element. */
    static __device__ __forceinline__ void copy_elements(uint32_t stage, const tgi_mma_source &from,
                                                         int line_count, int elem_count)
    {
#pragma unroll 8
        for (int i = threadIdx.x; i < lines * elems; i += Threads) {
            const int line = i / elems, index = i % elems;
            uint16_t value = 0;
            if (line < line_count && index < elem_count)
                value = from.data[line * from.line_stride + index * from.elem_stride];
            tgi_write_shared_2(stage + find_elem(line, index), value);
        }
    }

    /* Writes `width` zeros, an even number. */
    static __device__ __forceinline__ void clear(uint32_t target, int width)
    {
#pragma unroll 1
        for (int i = 0; i < width; i += 2)
            tgi_write_shared_4(target + 2 * i, 0.0f);
    }

    /* Copies the elements behind the last whole access of each line, and zeros behind them to the
     * end of that access. A thread's loads of a line are all under way at once. */
    static __device__ __forceinline__ void copy_ends(uint32_t stage, const tgi_mma_source &from,
                                                     int line_count, int elem_count, int width)
    {
        const int first = elem_count / width * width, count = elem_count - first;
        if (count == 0 || first >= elems)
            return;
#pragma unroll 1
        for (int line = threadIdx.x; line < min(line_count, lines); line += Threads) {
            const uint16_t *global = from.data + line * from.line_stride + first;
            uint32_t elem[unit_elems];
#pragma unroll
            for (int i = 0; i < unit_elems; i++)
                elem[i] = i < count ? global[i] : 0;
#pragma unroll
            for (int i = 0; i < unit_elems; i += 2)
                if (i < width)
                    tgi_write_shared_4(stage + find_elem(line, first) + 2 * i,
                                       __uint_as_float(elem[i] | elem[i + 1] << 16));
        }
    }

    /* Copies a stage that has k_left of k, with zeros behind, by accesses of from.copy_bytes, none
     * of which reads outside the operand. It is out of line, to take no registers of the loop that
     * calls it. */
    static __device__ __noinline__ void copy(uint32_t stage, const tgi_mma_source from, int k_left)
    {
        const int line_count = Along_k ? from.entry_count : k_left;
        const int elem_count = Along_k ? k_left : from.entry_count;
        if (from.copy_bytes == 2) {
            copy_elements(stage, from, line_count, elem_count);
            return;
        }
        const int width = from.copy_bytes / 2, shift = 31 - __clz(width);
        copy_ends(stage, from, line_count, elem_count, width);
#pragma unroll 1
        for (int i = threadIdx.x << shift; i < lines * elems; i += Threads << shift) {
            const int line = i / elems, index = i % elems;
            const int count = line < line_count ? elem_count - index : 0;
            const uint16_t *global = from.data + line * from.line_stride + index;
            const uint32_t target = stage + find_elem(line, index);
            if (count <= 0)
                clear(target, width);
            if (from.copy_bytes == 16)
                tgi_copy_async_if<16>(target, global, count >= width);
            else if (from.copy_bytes == 8)
                tgi_copy_async_if<8>(target, global, count >= width);
            else
                tgi_copy_async_if<4>(target, global, count >= width);
        }
    }

    /* Returns what this lane passes to ldmatrix for entries from `first` on at k = 0: an offset in
     * a stage. `first` is a multiple of 16 Parts, where the warp has Parts times 16 entries. The
     * registers of a fragment are entries 0..7 and 8..15 at the first half of the step, then both
     * at the second half. Those of B are both halves of entries 0..7 first, because the instruction
     * takes them from neighbouring registers. */
    static __device__ __forceinline__ int find_fragment(int first)
    {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        const int low = lane / 8 % 2, high = lane / 16;
        const int entry = first + lane % 8 + (Is_a ? low : high) * 8, half = Is_a ? high : low;
        return Along_k ? places::find(entry, half)
                       : places::find(lane % 8 + half * 8, entry / unit_elems);
    }

    /* Reads the fragment of entries 16 i .. 16 i + 15 of the warp at a step of the stage. */
    static __device__ __forceinline__ void read(uint32_t (&part)[4], uint32_t fragment, int i,
                                                int step)
    {
        if (Along_k)
            tgi_read_matrices(part, (fragment ^ step << 5) + i * 16 * line_bytes);
        else
            tgi_read_matrices_transposed(part, (fragment ^ i << 5) + step * 16 * line_bytes);
    }
};

#endif
