/* A tile of family mma for the simulator, on a list of two problems. */
#include "kernels/mma/mma.cuh"
#include "simulated_list.h"

/* The shared memory of a block: the most that sm_90 gives, which suffices any row. */
__shared__ char shared[227 << 10];

/* Units of the second problem follow those of the first. */
template <int Rows, int Cols> struct list_schedule {
    const tgi_grid_schedule<Rows, Cols, TGI_UNITS_TILES> first, second;

    explicit __device__ list_schedule(const problem_list &given)
        : first(given.problems[0]), second(given.problems[1])
    {
    }

    __device__ unsigned begin() const
    {
        return first.begin();
    }

    __device__ unsigned end() const
    {
        return first.end() + second.end();
    }

    __device__ unsigned next(unsigned unit) const
    {
        return first.next(unit);
    }

    __device__ tgi_block_tile tile(unsigned unit) const
    {
        return unit < first.end() ? first.tile(unit) : second.tile(unit - first.end());
    }

    static __device__ const tgi_gemm_args &problem(const problem_list &given, unsigned unit)
    {
        const tgi_grid_schedule<Rows, Cols, TGI_UNITS_TILES> ahead(given.problems[0]);
        return given.problems[unit >= ahead.end()];
    }
};

extern "C" void simulated_list(const problem_list *list)
{
    typedef tgi_mma<tgi_mma_16_bits<TG_TYPE_BF16>, 64, 64, 64, 32, 32, 3, 128, 1, 0> body;
    tgi_form_tiles_ahead<body>(list_schedule<64, 64>(*list), *list, tgi_shared_address(shared));
}
