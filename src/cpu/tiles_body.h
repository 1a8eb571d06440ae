/* Makes the tile shapes of one type: one for the direct and one for the packed family, or one for
 * both. */
#define TILE_ROWS PACKED_ROWS
#define TILE_VECTORS PACKED_VECTORS
#include "cpu/tile_body.h"
#undef TILE_ROWS
#undef TILE_VECTORS

#if DIRECT_ROWS != PACKED_ROWS
#define TILE_ROWS DIRECT_ROWS
#define TILE_VECTORS DIRECT_VECTORS
#include "cpu/tile_body.h"
#undef TILE_ROWS
#undef TILE_VECTORS
#endif
