#include <cstdio>
#include <cstdint>
#include <cstring>
#include <algorithm>
#include <vector>
#include <cmath>
using std::min; using std::max;
#define __device__
#define __forceinline__ inline
struct dim { unsigned x; } threadIdx;
struct double2 { double x, y; };
static char *base; static const double *lo, *hi; static int bad;
static int tgi_clamp_count(int64_t n, int limit) { return (int)min(n, (int64_t)limit); }
template <class T, int Pitch, int Swizzle> static int tgi_tile_offset(int line, int elem)
{ const int quarter = 32 / (int)sizeof(T); return line * Pitch + (Swizzle ? elem ^ ((line & 3) * quarter) : elem); }
static uint32_t tgi_shared_address(const void *p) { return (uint32_t)((const char *)p - base); }
template <int B> static void tgi_copy_async(uint32_t s, const void *g, int bytes)
{
    if (s % B || (bytes && (uintptr_t)g % B)) { bad++; }
    if (bytes && ((const double *)g < lo || (const char *)g + bytes > (const char *)hi)) { bad++; return; }
    memcpy(base + s, g, bytes); memset(base + s + bytes, 0, B - bytes);
}
template <int B> static void tgi_copy_async_if(uint32_t s, const void *g, int on) { if (on) tgi_copy_async<B>(s, g, B); }
template <int Count, int Depth, int Along_k, int Threads> struct tgi_dmma_operand {
    static constexpr int lines = Along_k ? Count : Depth, elems = Along_k ? Depth : Count;
    static constexpr int pitch = Along_k ? Depth : Count + 4;
    /* A thread copies 16 bytes of access_count lines of a whole stage, line_step apart. */
    static constexpr int line_step = Threads / (elems / 2), access_count = lines / line_step;
    static_assert(line_step > 0 && lines % line_step == 0 && (!Along_k || line_step % 4 == 0),
                  "a thread's accesses are alike");

    alignas(16) double elem[lines * pitch];

    /* The line and the element at which this thread's accesses begin. */
    static __device__ __forceinline__ int first_line()
    {
        return static_cast<int>(threadIdx.x) / (elems / 2);
    }

    static __device__ __forceinline__ int first_elem()
    {
        return static_cast<int>(threadIdx.x) % (elems / 2) * 2;
    }

    /* What this thread copies of a stage: both elements of so many accesses at once, or the first
     * and the second alone. Places of rows and columns outside D keep what they had, because their
     * sums are not stored. */
    struct reach {
        int pair_count, first_count, second_count;

        /* `left` rows of A or columns of B are inside the matrix. */
        __device__ __forceinline__ reach(int64_t left, int vector_elems)
        {
            const int entries = tgi_clamp_count(left, Count);
            const int elems_left = Along_k ? 2 : entries - first_elem();
            const int inside = Along_k ? (entries - first_line() + line_step - 1) / line_step
                                       : access_count;
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
        const uint32_t place = tgi_shared_address(elem + first) + index * line_step * pitch * 8;
        tgi_copy_async_if<16>(place, global, index < inside.pair_count);
        tgi_copy_async_if<8>(place, global, index < inside.first_count);
        tgi_copy_async_if<8>(place + 8, global + elem_stride, index < inside.second_count);
    }

    /* Copies the access of a stage that has k_left of its k, and zeros for the others. */
    __device__ __forceinline__ void copy_last(int index, const double *global, int64_t elem_stride,
                                              const reach &inside, int k_left)
    {
        const int line = first_line() + index * line_step;
        const int first = tgi_tile_offset<double, pitch, Along_k>(first_line(), first_elem());
        const uint32_t place = tgi_shared_address(elem + first) + index * line_step * pitch * 8;
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

    /* Returns where entry g = 0..7 of half h of 16 lies in the wide operand. */
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


static long checked;
template <int Count, int Depth, int Along, int Threads> static void run()
{
    typedef tgi_dmma_operand<Count, Depth, Along, Threads> O;
    alignas(128) static O stage[1]; base = (char *)stage;
    for (int left : {1, 2, 3, 5, 7, 8, 9, Count / 2 + 1, Count - 1, Count, Count + 5})
    for (int klen : {1, 2, 3, Depth - 1, Depth, Depth + 1, 2 * Depth + 3, 3 * Depth})
    for (int pad : {0, 1, 2})
    for (int vec : {1, 2})
    for (int strided : {0, 1}) {
        int entries = min(left, Count);
        int64_t line_len = Along ? klen : left, lines = Along ? left : klen;
        int64_t es = strided ? 3 : 1, pitch = line_len * es + pad;
        if (vec == 2 && (strided || pitch % 2)) continue;
        static double store[1 << 18] __attribute__((aligned(16)));
        int64_t total = (lines - 1) * pitch + (line_len - 1) * es + 1;
        if (total > (1 << 18)) { puts("big"); continue; }
        for (int64_t i = 0; i < total; i++) store[i] = 1 + i;
        lo = store; hi = store + total;
        int whole = klen / Depth, rest = klen % Depth;
        int64_t ks = Along ? es : pitch, ls = Along ? pitch : es; /* strides of k and of entries */
        std::vector<typename O::reach> r; std::vector<const double *> at;
        for (int t = 0; t < Threads; t++) { threadIdx.x = t; r.push_back(typename O::reach(left, vec)); at.push_back(store + O::first_line() * pitch + O::first_elem() * es); }
        for (int st = 0; st < whole + (rest > 0); st++) {
            for (double &d : stage[0].elem) d = NAN;
            for (int t = 0; t < Threads; t++) {
                threadIdx.x = t;
                if (st < whole) {
                    for (int i = 0; i < O::access_count; i++) { stage[0].copy_access(i, at[t], es, r[t]); at[t] += O::line_step * pitch; }
                    at[t] += Depth * ks - O::lines * pitch;
                } else for (int i = 0; i < O::access_count; i++) stage[0].copy_last(i, at[t] + i * O::line_step * pitch, es, r[t], rest);
            }
            for (int e = 0; e < entries; e++) for (int k = 0; k < Depth; k++) {
                int64_t gk = (int64_t)st * Depth + k; double want = gk < klen ? store[gk * ks + e * ls] : 0.0;
                if (!(*stage[0].at(e, k) == want)) { if (bad++ < 5) printf("wrong %d %d along %d left %d k %d vec %d es %d: entry %d k %d: %g want %g\n", Count, Depth, Along, left, klen, vec, (int)es, e, k, *stage[0].at(e, k), want); }
                checked++;
            }
        }
    }
}
int main()
{
    run<128, 32, 1, 256>(); run<128, 32, 0, 256>(); run<128, 16, 1, 256>(); run<128, 16, 0, 256>(); run<64, 32, 1, 128>(); run<64, 32, 0, 128>();
    run<32, 32, 1, 128>(); run<32, 32, 0, 128>(); run<16, 16, 1, 128>(); run<16, 16, 0, 128>(); run<128, 16, 1, 128>(); run<128, 16, 0, 128>();
    printf("%ld elements checked, %d wrong\n", checked, bad); return bad != 0;
}
