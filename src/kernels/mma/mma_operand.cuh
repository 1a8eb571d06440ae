/*
 * Copies stages of an operand of family mma from global to shared memory, and reads fragments of
 * matrix instructions from them.
 *
 * A stage holds Count entries, rows of A or columns of B, by Depth values of k. Its lines lie as in
 * global memory: along k, where a line is an entry, or across k, where a line is a value of k.
 * Lines are cut into units of 16 bytes, which are permuted by the number of the line. Neither reads
 * of fragments, which take the same unit of eight lines, nor copies of neighbouring units then have
 * bank conflicts.
 *
 * A fragment is what a warp holds of 16 entries by 32 bytes along k, in words of
 * neighbours along k. Across k
 *   - elements of 16 bits are transposed by ldmatrix;
 *   - those of 32 bits are whole words and are read one by one;
 *   - pairs of 8 bits are transposed as if they were 16 bits. Halves of two such words then make a
 *     word of one entry and four values of k, and the order of lines brings these to one lane. The
 *     entries of a pair are neighbours. The fragment therefore has the even entries in the place of
 *     the first eight, and the odd entries in that of the others.
 */
#ifndef TGI_MMA_OPERAND_CUH
#define TGI_MMA_OPERAND_CUH

#include "kernels/copy/tile_copy.cuh"
#include "kernels/mma/unit_lines.cuh"
#include "kernels/ptx/shared_memory.cuh"

/* A source is an operand as one block sees it. Element (line, elem) lies at data + line *
 * line_stride + elem * elem_stride. */
template <typename Elem> struct tgi_mma_source {
    const Elem *data;
    int64_t line_stride, elem_stride;
    int entry_count; /* rows of A or columns of B from the tile's first on, at most the tile's */
    int copy_bytes;  /* bytes of an access: 16, 8, 4, or those of an element */
    int is_padded;   /* 1: zeros follow each line to the end of its last access */

    /* Finds copy_bytes for an operand at `start`: the most bytes of which the addresses of all
     * lines are multiples, if the lines are contiguous. */
    __device__ __forceinline__ void find_copy_bytes(const void *start, int64_t batch_stride,
                                                    int64_t line_count)
    {
        const int elem_bytes = sizeof(Elem);
        const int64_t strides = (line_count > 1 ? line_stride : 0) | batch_stride;
        const int places = static_cast<int>(reinterpret_cast<uintptr_t>(start)) |
                           static_cast<int>(elem_bytes * strides) | 16;
        copy_bytes = elem_stride == 1 ? places & -places : elem_bytes;
    }
};

/* If IsA is 1, fragments are those of the wide operand of the matrix instruction. */
template <typename Elem, int Count, int Depth, int Along_k, int IsA, int Threads>
struct tgi_mma_operand {
    typedef tgi_mma_source<Elem> source;
    static constexpr int elem_bytes = sizeof(Elem);
    static constexpr int lines = Along_k ? Count : Depth, elems = Along_k ? Depth : Count;
    static constexpr int unit_elems = 16 / elem_bytes, fragment_elems = 32 / elem_bytes;
    static constexpr int units = elems / unit_elems, line_bytes = elems * elem_bytes;
    static constexpr int bytes = lines * line_bytes;
    static constexpr int is_mixed = !Along_k && elem_bytes == 1;
    /* Words across k are read from two units of four lines. */
    typedef tgi_unit_lines<units, !Along_k && elem_bytes == 4 ? 2 : 1> places;
    /* A thread copies `accesses` units of a stage, whose lines are lines_apart apart. */
    static constexpr int lines_apart = Threads / units;
    static constexpr int accesses = (lines + lines_apart - 1) / lines_apart;
    static constexpr int has_idle = lines < lines_apart;
    static_assert(!is_mixed || lines_apart % 16 == 0, "lines change places within 16");
    static_assert(Threads % units == 0 && (has_idle || lines % lines_apart == 0),
                  "a thread's accesses are alike");

    /* Returns the line at a place of a stage. Bits of its number are exchanged. */
    static __device__ __forceinline__ constexpr int find_line(int place)
    {
        return is_mixed ? (place & ~14) | (place & 8) >> 2 | (place & 6) << 1 : place;
    }

    static __device__ __forceinline__ int find_elem(int place, int index)
    {
        return places::find(place, index / unit_elems) + index % unit_elems * elem_bytes;
    }

    static __device__ __forceinline__ int own_place()
    {
        return static_cast<int>(threadIdx.x) / units;
    }

    static __device__ __forceinline__ int own_unit()
    {
        return static_cast<int>(threadIdx.x) % units;
    }

    /* Returns 1 if each unit of a stage of whole k lies inside the operand or outside it. */
    static __device__ __forceinline__ int has_whole_units(const source &from)
    {
        return from.copy_bytes == 16 &&
               (Along_k || from.is_padded || from.entry_count % unit_elems == 0);
    }

    /* The copies of one thread for stages of whole k and whole units. Units outside the operand are
     * left as they are, because they count only in sums outside D. */
    struct copies {
        const Elem *data; /* the first access of the next stage */
        int64_t line_stride;
        int left;   /* entries from the thread's first on; 0 if nothing is copied */
        int target; /* place of the first access in a stage */

        __device__ __forceinline__ copies(const source &from)
        {
            data = from.data + find_line(own_place()) * from.line_stride + own_unit() * unit_elems;
            line_stride = from.line_stride;
            left = from.entry_count - (Along_k ? own_place() : own_unit() * unit_elems);
            if (has_idle && own_place() >= lines)
                left = 0;
            target = places::find(own_place(), own_unit());
        }

        __device__ __forceinline__ int is_inside(int i) const
        {
            return left > (Along_k ? i * lines_apart : 0);
        }

        /* Returns the place of access i in the stage at `stage`. Lines that are so far apart have
         * their units in different orders, unless eight lines or all lie between. */
        __device__ __forceinline__ uint32_t find_target(uint32_t stage, int i) const
        {
            return stage + (target ^ places::find_order(i * lines_apart) << 4) +
                   i * lines_apart * line_bytes;
        }

        /* Issues accesses first .. end - 1 of the stage at `stage`. */
        __device__ __forceinline__ void issue(uint32_t stage, int first, int end) const
        {
#pragma unroll
            for (int i = first; i < end; i++)
                tgi_copy_async_if<16>(find_target(stage, i), data + i * lines_apart * line_stride,
                                      is_inside(i));
        }

        /* Advances to the next stage. */
        __device__ __forceinline__ void advance(void)
        {
            data += Along_k ? Depth : Depth * line_stride;
        }
    };

    /* Copies a stage that has k_left of k element by element, with zeros behind. */
    static __device__ __forceinline__ void copy_elements(uint32_t stage, const source &from,
                                                         int line_count, int elem_count)
    {
#pragma unroll 8
        for (int i = threadIdx.x; i < lines * elems; i += Threads) {
            const int place = i / elems, line = find_line(place), index = i % elems;
            Elem value = 0;
            if (line < line_count && index < elem_count)
                value = from.data[line * from.line_stride + index * from.elem_stride];
            const uint32_t target = stage + find_elem(place, index);
            if constexpr (elem_bytes == 1)
                tgi_write_shared_1(target, value);
            else if constexpr (elem_bytes == 2)
                tgi_write_shared_2(target, value);
            else
                tgi_write_shared_4(target, __uint_as_float(value));
        }
    }

    /* Writes zeros in whole words. */
    static __device__ __forceinline__ void clear(uint32_t target, int byte_count)
    {
#pragma unroll 1
        for (int i = 0; i < byte_count; i += 4)
            tgi_write_shared_4(target + i, 0.0f);
    }

    /* Copies the elements behind the last whole access of each line, and zeros behind them to the
     * end of that access. A thread's loads of a line are all under way at once. */
    static __device__ __forceinline__ void copy_ends(uint32_t stage, const source &from,
                                                     int line_count, int elem_count, int width)
    {
        const int first = elem_count / width * width, count = elem_count - first;
        const int per_word = 4 / elem_bytes;
        if (count == 0 || first >= elems)
            return;
#pragma unroll 1
        for (int place = threadIdx.x; place < lines; place += Threads) {
            const int line = find_line(place);
            if (line >= line_count)
                continue;
            const Elem *global = from.data + line * from.line_stride + first;
            uint32_t word[4] = {};
#pragma unroll
            for (int i = 0; i < unit_elems; i++)
                word[i / per_word] |= (i < count ? static_cast<uint32_t>(global[i]) : 0)
                                      << i % per_word * 8 * elem_bytes;
#pragma unroll
            for (int i = 0; i < 4; i++)
                if (i * per_word < width)
                    tgi_write_shared_4(stage + find_elem(place, first) + 4 * i,
                                       __uint_as_float(word[i]));
        }
    }

    /* Copies a stage that has k_left of k by accesses of from.copy_bytes, with zeros behind. No
     * access reads outside the operand. The function is out of line, so that the loop that calls it
     * keeps its registers. */
    static __device__ __noinline__ void copy(uint32_t stage, const source from, int k_left)
    {
        const int line_count = Along_k ? from.entry_count : k_left;
        int elem_count = Along_k ? k_left : from.entry_count;
        if (from.elem_stride != 1 || from.copy_bytes < 4) {
            copy_elements(stage, from, line_count, elem_count);
            return;
        }
        const int width = from.copy_bytes / elem_bytes, shift = 31 - __clz(width);
        if (from.is_padded)
            elem_count = (elem_count + width - 1) / width * width;
        copy_ends(stage, from, line_count, elem_count, width);
#pragma unroll 1
        for (int i = threadIdx.x << shift; i < lines * elems; i += Threads << shift) {
            const int place = i / elems, line = find_line(place), index = i % elems;
            const int count = line < line_count ? elem_count - index : 0;
            const Elem *global = from.data + line * from.line_stride + index;
            const uint32_t target = stage + find_elem(place, index);
            if (count <= 0)
                clear(target, from.copy_bytes);
            if (from.copy_bytes == 16)
                tgi_copy_async_if<16>(target, global, count >= width);
            else if (from.copy_bytes == 8)
                tgi_copy_async_if<8>(target, global, count >= width);
            else
                tgi_copy_async_if<4>(target, global, count >= width);
        }
    }

    /* Returns the offset in a stage at which this lane reads the fragment of entries from `first`
     * on at k = 0. `first` is a multiple of 16 Fragments, where the warp has Fragments times 16
     * entries. The words of a fragment are entries 0..7 and 8..15 at the first half of its k,
     * then both at the second half. Those of B are both halves of entries 0..7 first, because the
     * instruction takes them from neighbouring registers. */
    static __device__ __forceinline__ int find_fragment(int first)
    {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        const int low = lane / 8 % 2, high = lane / 16;
        const int entry = first + lane % 8 + (IsA ? low : high) * 8, half = IsA ? high : low;
        if (Along_k)
            return places::find(entry, half);
        if (elem_bytes == 4)
            return find_elem(lane % 4, first + lane / 4);
        if (elem_bytes == 1)
            return places::find(lane, first / unit_elems);
        return places::find(lane % 8 + half * 8, entry / unit_elems);
    }

    /* Reads the fragment of entries 16 i .. 16 i + 15 of the warp, number k_fragment along k of the
     * stage. */
    static __device__ __forceinline__ void read(uint32_t (&words)[4], uint32_t fragment, int i,
                                                int k_fragment)
    {
        const uint32_t across = (fragment ^ static_cast<uint32_t>(i * elem_bytes << 4)) +
                                k_fragment * fragment_elems * line_bytes;
        if (Along_k)
            tgi_read_matrices(words, (fragment ^ k_fragment << 5) + i * 16 * line_bytes);
        else if (elem_bytes == 2)
            tgi_read_matrices_transposed(words, across);
        else if (elem_bytes == 4)
            read_words(words, across);
        else
            read_pairs(words, across);
    }

    static __device__ __forceinline__ void read_words(uint32_t (&words)[4], uint32_t place)
    {
#pragma unroll
        for (int n = 0; n < 4; n++) {
            const int eighth = IsA ? n % 2 : n / 2, half = IsA ? n / 2 : n % 2;
            words[n] = tgi_read_shared_word((place ^ eighth << 5) + half * 4 * line_bytes);
        }
    }

    static __device__ __forceinline__ void read_pairs(uint32_t (&words)[4], uint32_t place)
    {
        uint32_t pair[4];
        tgi_read_matrices_transposed(pair, place);
#pragma unroll
        for (int n = 0; n < 4; n++) {
            const int eighth = n / 2, half = n % 2;
            words[n] = __byte_perm(pair[2 * half], pair[2 * half + 1], eighth ? 0x7531 : 0x6420);
        }
    }
};

#endif
