/*
 * The math of family mma on FP32 operands that were sliced (kernels/copy/slice_args.h). A stage is
 * a chunk of all slices of a tile's lines. The products of 16 steps of k, least first, are summed
 * by the matrix instruction and then added in FP32 to those before.
 */
#ifndef TGI_MMA_SLICES_CUH
#define TGI_MMA_SLICES_CUH

#include "kernels/epilogue/slice_sums.cuh"
#include "kernels/mma/mma.cuh"
#include "kernels/mma/mma_slices_args.h"

/* Products: those of most weight, 6 of 3 slices or 3 of 2. */
template <tg_type Type, int Slices, int Products> struct tgi_mma_slices : tgi_mma_16_bits<Type> {
    typedef tgi_mma_slices_args given;
    typedef tgi_mma_source<uint16_t> source;
    static constexpr int slices = Slices, products = Products, is_promoted = 1;

    static __device__ constexpr tgi_slice_pair find_pair(int product)
    {
        return tgi_find_pair(TGI_SLICE_PRODUCTS - Products + product);
    }

    static __device__ __forceinline__ const tgi_gemm_args &find_gemm(const given &args)
    {
        return args.gemm;
    }

    /* Returns the lines of an operand from line `first` of a batch entry on. */
    static __device__ __forceinline__ source find_lines(const tgi_sliced_operand &operand,
                                                        int64_t batch, int64_t first, int64_t k)
    {
        const int64_t chunks = (k + TGI_CHUNK_ELEMS - 1) / TGI_CHUNK_ELEMS;
        const int64_t entry = operand.has_batch ? batch * chunks * Slices : 0;
        source found;
        found.group_count = (operand.line_count + TGI_GROUP_LINES - 1) / TGI_GROUP_LINES;
        found.data = operand.slices + entry * found.group_count * (TGI_GROUP_BYTES / 2) +
                     first * TGI_CHUNK_ELEMS;
        found.line_stride = TGI_CHUNK_ELEMS;
        found.elem_stride = 1;
        found.entry_count = tgi_clamp_count(operand.line_count - first, 1024);
        found.copy_bytes = 16;
        found.is_padded = 1;
        return found;
    }

    static __device__ __forceinline__ source find_a(const given &args, const tgi_block_tile &tile)
    {
        return find_lines(args.a, tile.batch, tile.row, args.gemm.problem.k);
    }

    static __device__ __forceinline__ source find_b(const given &args, const tgi_block_tile &tile)
    {
        return find_lines(args.b, tile.batch, tile.col, args.gemm.problem.k);
    }

    /* Stores the sums of a warp as tgi_mma_store does. */
    template <int Parts, int Count>
    static __device__ __forceinline__ void store(const given &args, const tgi_block_tile &tile,
                                                 int row, int col,
                                                 const float (&sums)[Parts][Count], uint32_t shared)
    {
        const uint32_t box = shared + tgi_thread() / 128 * (2 * TGI_BOX_BYTES);
#pragma unroll 1
        for (int i = 0; i < Parts; i++) {
            const tgi_cluster_tile place = tgi_mma_find_place(tile, row + 16 * i, col);
            if (tile.row + row + 16 * i >= args.gemm.problem.m || place.col >= args.gemm.problem.n)
                break;
#pragma unroll
            for (int j = 0; j < Parts; j++) /* registers have no index that is computed */
                if (i == j) {
                    float sum[Count];
#pragma unroll
                    for (int t = 0; t < Count; t++)
                        sum[t] = sums[j][t];
                    tgi_scale_sums(args, place, sum);
                    tgi_mma_put_fp32<0>(box, sum);
                }
            tgi_repair_part(args, tgi_find_row_range(args, place), place.row, place.col,
                            place.batch, box);
            tgi_mma_finish<Count>(args.gemm, place, 0, box);
        }
    }
};

#endif
