/* Declares the copy of a block's queries by its threads. */
#ifndef TGI_ATTEND_QUERIES_CUH
#define TGI_ATTEND_QUERIES_CUH

#include "kernels/attend/attend_scores.cuh"

/* Copies the block's queries by `Threads` threads, as a group of copies of their own. */
template <class Products, int Threads>
static __device__ __forceinline__ void
tgi_attend_copy_queries(const tgi_attend_args &p, const tgi_attend_place &place, uint32_t q)
{
    const tg_attention &a = p.attention;
    tgi_attend_copy<Products::head, Products::rows, Threads>(
        q, a.q, static_cast<int>(a.head_size), p.has_units[0], [&](int row) {
            const tgi_attend_row_place at = tgi_attend_find_row(p, place, row);
            return at.is_there ? tgi_attend_offset(a.q, place.query_entry, at.head,
                                                   place.first_query + at.query)
                               : TGI_ATTEND_NO_ROW;
        });
    tgi_copy_async_commit();
}

/* Does the same by fewer instructions if all rows lie a row stride apart. */
template <class Products>
static __device__ __forceinline__ void
tgi_attend_fill_queries(const tgi_attend_args &p, const tgi_attend_place &place, uint32_t q)
{
    const tg_heads &heads = p.attention.q;
    if (p.shared_heads > 1 || !p.has_units[0]) {
        tgi_attend_copy_queries<Products, Products::copiers>(p, place, q);
        return;
    }
    tgi_attend_fill<Products::head, Products::rows, Products::copiers>(
        q, heads, static_cast<int>(p.attention.head_size),
        tgi_attend_offset(heads, place.query_entry, place.first_head,
                          place.first_query + place.first),
        place.row_count - place.first);
    tgi_copy_async_commit();
}

#endif
