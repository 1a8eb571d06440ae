/*
 * Declares a stage's part of an operand of family dmma in shared memory: how threads copy it and
 * how lanes read their elements of the instruction.
 */
#ifndef TGI_DMMA_OPERAND_CUH
#define TGI_DMMA_OPERAND_CUH

#include "kernels/copy/tile_copy.cuh"

/* An operand's stage has Count rows of A or columns of B by Depth of k, as they lie in global
 * memory: swizzled lines of whole 128 bytes along k, or one line across for each k, 32 bytes apart
 * in the banks. */
template <int Count, int Depth, int Along_k, int Threads> struct tgi_dmma_operand {
    static constexpr int lines = Along_k ? Count : Depth, elems = Along_k ? Depth : Count;
    static constexpr int pitch = Along_k ? Depth : Count + 4;
    /* A thread copies 16 bytes of access_count lines of a whole stage, lines_apart apart. */
    static constexpr int lines_apart = Threads / (elems / 2), access_count = lines / lines_apart;
    static_assert(lines_apart > 0 && lines % lines_apart == 0 && (!Along_k || lines_apart % 4 == 0),
                  "a thread's accesses are alike");

    alignas(16) double elem[lines * pitch];

    /* Return the line and the element at which this thread's accesses begin. */
    static __device__ __forceinline__ int first_line()
    {
        return static_cast<int>(threadIdx.x) / (elems / 2);
    }

    static __device__ __forceinline__ int first_elem()
    {
        return static_cast<int>(threadIdx.x) % (elems / 2) * 2;
    }

    /* Holds the reach of this thread's copies of a stage: how many copy both elements at once, or
     * only the first, or only the second. Places of rows and columns outside D keep their old
     * content, because their sums are not stored. */
    struct reach {
        int pair_count, first_count, second_count;

        /* `left` rows of A or columns of B are inside the matrix. */
        __device__ __forceinline__ reach(int64_t left, int vector_elems)
        {
            const int entries = tgi_clamp_count(left, Count);
            const int elems_left = Along_k ? 2 : entries - first_elem();
            const int inside =
                Along_k ? (entries - first_line() + lines_apart - 1) / lines_apart : access_count;
            const bool is_pair = vector_elems == 2 && elems_left >= 2;
            pair_count = is_pair ? inside : 0;
            first_count = !is_pair && elems_left >= 1 ? inside : 0;
            second_count = !is_pair && elems_left >= 2 ? inside : 0;
        }

        __device__ __forceinline__ void end()
        {
            pair_count = first_count = second_count = 0;
        }
    };

    __device__ __forceinline__ void copy_access(int index, const double *global,
                                                int64_t elem_stride, const reach &inside)
    {
        const int first = tgi_tile_offset<double, pitch, Along_k>(first_line(), first_elem());
        const uint32_t place = tgi_shared_address(elem + first) + index * lines_apart * pitch * 8;
        tgi_copy_async_if<16>(place, global, index < inside.pair_count);
        tgi_copy_async_if<8>(place, global, index < inside.first_count);
        tgi_copy_async_if<8>(place + 8, global + elem_stride, index < inside.second_count);
    }

    /* Copies access `index` of a stage that has k_left of its k, with zeros for the others. */
    __device__ __forceinline__ void copy_last(int index, const double *global, int64_t elem_stride,
                                              const reach &inside, int k_left)
    {
        const int line = first_line() + index * lines_apart;
        const int first = tgi_tile_offset<double, pitch, Along_k>(first_line(), first_elem());
        const uint32_t place = tgi_shared_address(elem + first) + index * lines_apart * pitch * 8;
        const int count = Along_k ? min(max(k_left - first_elem(), 0), 2) : 2 * (line < k_left);
        if (index < inside.pair_count)
            tgi_copy_async<16>(place, global, count * 8);
        if (index < inside.first_count)
            tgi_copy_async<8>(place, global, count > 0 ? 8 : 0);
        if (index < inside.second_count)
            tgi_copy_async<8>(place + 8, global + elem_stride, count > 1 ? 8 : 0);
    }

    __device__ __forceinline__ const double *at(int entry, int k) const
    {
        return &elem[Along_k ? tgi_tile_offset<double, pitch, 1>(entry, k) : k * pitch + entry];
    }

    /* Returns the place of entry g = 0..7 of half h of 16 in the wide operand. */
    static __device__ __forceinline__ int wide_place(int g, int h)
    {
        return Along_k ? g + 8 * h : 2 * g + h;
    }

    /* Reads entry g of both halves h of the 16 from `first` on to value[h]. */
    __device__ __forceinline__ void read_wide(int first, int k, int g, double (&value)[2]) const
    {
        if (Along_k) {
            value[0] = *at(first + wide_place(g, 0), k);
            value[1] = *at(first + wide_place(g, 1), k);
        } else {
            const double2 pair = *reinterpret_cast<const double2 *>(at(first + 2 * g, k));
            value[0] = pair.x;
            value[1] = pair.y;
        }
    }
};

#endif
