// The table of one instruction set.
#include "parts.h"

#if defined(EPX_AVX512)
#define EPX_TABLE avx512_kernels
#define EPX_NAME "avx512"
#elif defined(EPX_AVX2)
#define EPX_TABLE avx2_kernels
#define EPX_NAME "avx2"
#else
#define EPX_TABLE portable_kernels
#define EPX_NAME "portable"
#endif

namespace epicortex {

static Kernels filled() {
    Kernels table{};
    table.name = EPX_NAME;
    EPX_PART(tiles)(table);
    EPX_PART(gradients)(table);
    EPX_PART(fulls)(table);
    EPX_PART(pointwises)(table);
    EPX_PART(pools)(table);
    EPX_PART(losses)(table);
    EPX_PART(gathers)(table);
    EPX_PART(optimisers)(table);
    EPX_PART(orthogonal)(table);
    return table;
}

const Kernels* EPX_TABLE() {
    static const Kernels table = filled();
    return &table;
}

}  // namespace epicortex
