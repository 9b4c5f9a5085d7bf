// What every file of micro-kernels shares: how its part of the table is called, and a few vector idioms.
#pragma once
#include "lanes.h"

// EPX_PART(tiles) is tiles_avx512, tiles_avx2 or tiles_portable.
#define EPX_JOIN_(part, set) part##_##set
#define EPX_JOIN(part, set) EPX_JOIN_(part, set)
#if defined(EPX_AVX512)
#define EPX_PART(part) EPX_JOIN(part, avx512)
#elif defined(EPX_AVX2)
#define EPX_PART(part) EPX_JOIN(part, avx2)
#else
#define EPX_PART(part) EPX_JOIN(part, portable)
#endif

namespace epicortex {

void EPX_PART(tiles)(Kernels&);
void EPX_PART(gradients)(Kernels&);
void EPX_PART(fulls)(Kernels&);
void EPX_PART(pointwises)(Kernels&);
void EPX_PART(pools)(Kernels&);
void EPX_PART(losses)(Kernels&);
void EPX_PART(gathers)(Kernels&);
void EPX_PART(optimisers)(Kernels&);
void EPX_PART(orthogonal)(Kernels&);

namespace {

// How many outputs a tile has at most: as many as leave room for some positions.
#if defined(EPX_AVX512)
constexpr int GROUP = 9;
#elif defined(EPX_AVX2)
constexpr int GROUP = 6;
#else
constexpr int GROUP = 4;
#endif
static_assert(GROUP <= MOST_MAPS, "the table has room for MOST_MAPS");

inline V rectified(V v, V slope) { return pick(v, v, mul(v, slope)); }

// out[i] = lane_sum(a + 16 i) for sixteen vectors at once.
#if defined(EPX_AVX512)
inline V halves(V a, V b) { return add(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xEE)); }
inline V quarters(V a, V b) { return add(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xDD)); }
inline V pairs(V a, V b) { return add(_mm512_shuffle_ps(a, b, 0x44), _mm512_shuffle_ps(a, b, 0xEE)); }
inline V singles(V a, V b) { return add(_mm512_shuffle_ps(a, b, 0x88), _mm512_shuffle_ps(a, b, 0xDD)); }
// The sums of N vectors in registers, N at most 16; the rest of the result is anything.
template <int N>
inline V lane_sums(const V* v) {
    const V none = zero();
    V y[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const V v0 = 4 * i < N ? v[4 * i < N ? 4 * i : 0] : none;
        const V v1 = 4 * i + 1 < N ? v[4 * i + 1 < N ? 4 * i + 1 : 0] : none;
        const V v2 = 4 * i + 2 < N ? v[4 * i + 2 < N ? 4 * i + 2 : 0] : none;
        const V v3 = 4 * i + 3 < N ? v[4 * i + 3 < N ? 4 * i + 3 : 0] : none;
        y[i] = 4 * i < N ? quarters(halves(v0, v1), 4 * i + 2 < N ? halves(v2, v3) : none) : none;
    }
    const V z0 = pairs(y[0], y[1]), z1 = N > 8 ? pairs(y[2], y[3]) : none;
    // quarter q holds v[q], v[4+q], v[8+q], v[12+q]
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return _mm512_permutexvar_ps(order, singles(z0, z1));
}
inline void lane_sums_16(const float* a, float* out) {
    V v[16];
    for (int i = 0; i < 16; i++) v[i] = load(a + 16 * i);
    store(out, lane_sums<16>(v));
}
#elif defined(EPX_AVX2)
inline void lane_sums_8(const float* a, float* out) {
    V t[8], u[4], z[2];
    for (int i = 0; i < 8; i++) t[i] = add(load(a + 16 * i), load(a + 16 * i + 8));
    for (int i = 0; i < 4; i++)
        u[i] = add(_mm256_permute2f128_ps(t[2 * i], t[2 * i + 1], 0x20),
                   _mm256_permute2f128_ps(t[2 * i], t[2 * i + 1], 0x31));
    for (int i = 0; i < 2; i++)
        z[i] = add(_mm256_shuffle_ps(u[2 * i], u[2 * i + 1], 0x44), _mm256_shuffle_ps(u[2 * i], u[2 * i + 1], 0xEE));
    const V s = add(_mm256_shuffle_ps(z[0], z[1], 0x88), _mm256_shuffle_ps(z[0], z[1], 0xDD));
    store(out, _mm256_permutevar8x32_ps(s, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)));
}
inline void lane_sums_16(const float* a, float* out) { lane_sums_8(a, out), lane_sums_8(a + 128, out + 8); }
#else
inline void lane_sums_16(const float* a, float* out) {
    for (int i = 0; i < 16; i++) out[i] = lane_sum(a + 16 * i);
}
#endif

}  // namespace
}  // namespace epicortex
