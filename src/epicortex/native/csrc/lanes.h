// One vector type for each instruction set: V holds WIDTH of the 16 samples of a block.
//
// Included by the micro-kernels only, which are compiled once for each instruction set with EPX_AVX512, EPX_AVX2 or
// neither defined. Every function here rounds in the same way in all three, so whatever is written with them gives
// the same bits: there is no fused multiply-add but `fma`, and nothing from libm.
#pragma once
#include <cstdint>
#include <cstring>

#include "kernels.h"

#if defined(EPX_AVX512) || defined(EPX_AVX2)
#include <immintrin.h>
#endif

namespace epicortex {
namespace {

#if defined(EPX_AVX512)

constexpr int WIDTH = 16, REGISTERS = 32;
using V = __m512;
inline V load(const float* p) { return _mm512_loadu_ps(p); }
inline void store(float* p, V v) { _mm512_storeu_ps(p, v); }
inline V all(float x) { return _mm512_set1_ps(x); }
inline V zero() { return _mm512_setzero_ps(); }
inline V fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
inline V add(V a, V b) { return _mm512_add_ps(a, b); }
inline V sub(V a, V b) { return _mm512_sub_ps(a, b); }
inline V mul(V a, V b) { return _mm512_mul_ps(a, b); }
inline V div(V a, V b) { return _mm512_div_ps(a, b); }
inline V root(V a) { return _mm512_sqrt_ps(a); }
inline V larger(V a, V b) { return _mm512_max_ps(a, b); }   // b if either is NaN
inline V smaller(V a, V b) { return _mm512_min_ps(a, b); }  // b if either is NaN
// a > 0 ? x : y
inline V pick(V a, V x, V y) { return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, zero(), _CMP_GT_OQ), y, x); }
inline V rounded(V a) { return _mm512_roundscale_ps(a, 8); }  // to the nearest whole number, ties to even
inline V power(V n) {                                          // 2^n of a whole n from -126 to 127
    return _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127)), 23));
}
inline V from_bytes(const uint8_t* p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}

#elif defined(EPX_AVX2)

constexpr int WIDTH = 8, REGISTERS = 16;
using V = __m256;
inline V load(const float* p) { return _mm256_loadu_ps(p); }
inline void store(float* p, V v) { _mm256_storeu_ps(p, v); }
inline V all(float x) { return _mm256_set1_ps(x); }
inline V zero() { return _mm256_setzero_ps(); }
inline V fma(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }
inline V add(V a, V b) { return _mm256_add_ps(a, b); }
inline V sub(V a, V b) { return _mm256_sub_ps(a, b); }
inline V mul(V a, V b) { return _mm256_mul_ps(a, b); }
inline V div(V a, V b) { return _mm256_div_ps(a, b); }
inline V root(V a) { return _mm256_sqrt_ps(a); }
inline V larger(V a, V b) { return _mm256_max_ps(a, b); }
inline V smaller(V a, V b) { return _mm256_min_ps(a, b); }
inline V pick(V a, V x, V y) { return _mm256_blendv_ps(y, x, _mm256_cmp_ps(a, zero(), _CMP_GT_OQ)); }
inline V rounded(V a) { return _mm256_round_ps(a, 8); }
inline V power(V n) {
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23));
}
inline V from_bytes(const uint8_t* p) {
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
}

#else

constexpr int WIDTH = 16, REGISTERS = 8;
struct V {
    float v[16];
};
#define EPX_EACH for (int i = 0; i < 16; i++)
inline V load(const float* p) {
    V r;
    std::memcpy(r.v, p, sizeof r.v);
    return r;
}
inline void store(float* p, const V& a) { std::memcpy(p, a.v, sizeof a.v); }
inline V all(float x) {
    V r;
    EPX_EACH r.v[i] = x;
    return r;
}
inline V zero() { return all(0.0f); }

#if defined(__FMA__) || defined(__aarch64__) || defined(__riscv)
inline float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
#else
// a·b + c, rounded once. The product is exact in double; the sum is rounded to odd (Boldo and Melquiond), after which
// rounding to float gives what one rounding of the exact value would.
inline float fused(float a, float b, float c) {
    const double product = static_cast<double>(a) * b, addend = c;
    const double sum = product + addend;
    const double part = sum - product;
    const double error = (product - (sum - part)) + (addend - part);
    int64_t bits;
    std::memcpy(&bits, &sum, sizeof bits);
    // NaN is neither above nor below 0: an infinite or undefined sum stays as it is
    const int64_t inexact = (error > 0) | (error < 0);
    const int64_t away = (error > 0) == (sum > 0) ? 1 : -1;  // is the exact value farther from 0?
    bits += inexact & ~bits & 1 ? (away == 1 ? 1 : -1) : 0;
    double odd;
    std::memcpy(&odd, &bits, sizeof odd);
    return static_cast<float>(odd);
}
#endif
inline V fma(const V& a, const V& b, const V& c) {
    V r;
    EPX_EACH r.v[i] = fused(a.v[i], b.v[i], c.v[i]);
    return r;
}
inline V add(const V& a, const V& b) {
    V r;
    EPX_EACH r.v[i] = a.v[i] + b.v[i];
    return r;
}
inline V sub(const V& a, const V& b) {
    V r;
    EPX_EACH r.v[i] = a.v[i] - b.v[i];
    return r;
}
inline V mul(const V& a, const V& b) {
    V r;
    EPX_EACH r.v[i] = a.v[i] * b.v[i];
    return r;
}
inline V div(const V& a, const V& b) {
    V r;
    EPX_EACH r.v[i] = a.v[i] / b.v[i];
    return r;
}
inline V root(const V& a) {
    V r;
    EPX_EACH r.v[i] = __builtin_sqrtf(a.v[i]);
    return r;
}
inline V larger(const V& a, const V& b) {
    V r;
    EPX_EACH r.v[i] = a.v[i] > b.v[i] ? a.v[i] : b.v[i];
    return r;
}
inline V smaller(const V& a, const V& b) {
    V r;
    EPX_EACH r.v[i] = a.v[i] < b.v[i] ? a.v[i] : b.v[i];
    return r;
}
inline V pick(const V& a, const V& x, const V& y) {
    V r;
    EPX_EACH r.v[i] = a.v[i] > 0 ? x.v[i] : y.v[i];
    return r;
}
// Adding and taking away 1.5·2^23 leaves no binary places; used below 2^22 only.
inline V rounded(const V& a) {
    V r;
    EPX_EACH r.v[i] = (a.v[i] + 12582912.0f) - 12582912.0f;
    return r;
}
inline V power(const V& n) {
    V r;
    EPX_EACH {
        // NaN has no whole number: the exponent is then anything, and the product it goes into is NaN
        const int32_t whole = n.v[i] >= -126.0f && n.v[i] <= 127.0f ? static_cast<int32_t>(n.v[i]) : 0;
        const uint32_t bits = static_cast<uint32_t>(whole + 127) << 23;
        std::memcpy(&r.v[i], &bits, sizeof bits);
    }
    return r;
}
inline V from_bytes(const uint8_t* p) {
    V r;
    EPX_EACH r.v[i] = p[i];
    return r;
}
#undef EPX_EACH

#endif

// Has a value loaded once into a register: gcc would rather load it again for each of its uses.
#if defined(EPX_AVX512) || defined(EPX_AVX2)
inline V keep(V v) {
    asm("" : "+v"(v));
    return v;
}
#else
inline const V& keep(const V& v) { return v; }
#endif

// The sum of 16 lanes, always in this order.
inline float lane_sum(const float* a) {
    float s[8], t[4];
    for (int i = 0; i < 8; i++) s[i] = a[i] + a[i + 8];
    for (int i = 0; i < 4; i++) t[i] = s[i] + s[i + 4];
    return (t[0] + t[2]) + (t[1] + t[3]);
}

// Where it is positive for the first `count` of the lanes beginning at `half`.
inline V first_lanes(int count, int half) {
    alignas(64) float mask[LANES];
    for (int i = 0; i < LANES; i++) mask[i] = i < count ? 1.0f : 0.0f;
    return load(mask + half);
}

inline int lesser(int a, int b) { return a < b ? a : b; }

}  // namespace
}  // namespace epicortex
