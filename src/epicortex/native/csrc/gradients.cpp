// Gradients of kernels: M taps of G maps, kept in registers while the positions go by.
//
// Each entry's sum runs over the positions of a block from row to row in each lane; then the 16 lanes are added, in one
// fixed order, and the block's sum is added to that of the blocks before.
#include "parts.h"

namespace epicortex {
namespace {

template <int M, int G>
void gradient(const Gradient& a) {
    constexpr int N = M * G;
#if !defined(EPX_AVX512)
    alignas(64) float lanes[(N + 15) / 16 * 16][LANES] = {};
#endif
    for (int half = 0; half < LANES; half += WIDTH) {
        V acc[N];
#pragma GCC unroll 32
        for (int i = 0; i < N; i++) acc[i] = zero();
        int64_t off[M], maps[G];
#pragma GCC unroll 32
        for (int m = 0; m < M; m++) off[m] = a.off[m];
#pragma GCC unroll 32
        for (int g = 0; g < G; g++) maps[g] = a.maps[g];
        const int64_t step = a.x_step;
        for (int r = 0; r < a.rows; r++) {
            const float* x = a.x + r * a.x_row + half;
            const float* dy = a.dy + r * a.dy_row + half;
            for (int p = 0; p < a.width; p++, x += step, dy += LANES) {
                if constexpr (M <= G) {
                    V xs[M];
#pragma GCC unroll 32
                    for (int m = 0; m < M; m++) xs[m] = keep(load(x + off[m]));
#pragma GCC unroll 32
                    for (int g = 0; g < G; g++) {
                        const V d = M > 1 ? keep(load(dy + maps[g])) : load(dy + maps[g]);
#pragma GCC unroll 32
                        for (int m = 0; m < M; m++) acc[m * G + g] = fma(d, xs[m], acc[m * G + g]);
                    }
                } else {
                    V d[G];
#pragma GCC unroll 32
                    for (int g = 0; g < G; g++) d[g] = keep(load(dy + maps[g]));
#pragma GCC unroll 32
                    for (int m = 0; m < M; m++) {
                        const V v = G > 1 ? keep(load(x + off[m])) : load(x + off[m]);
#pragma GCC unroll 32
                        for (int g = 0; g < G; g++) acc[m * G + g] = fma(d[g], v, acc[m * G + g]);
                    }
                }
            }
        }
#if defined(EPX_AVX512)
        alignas(64) float sums[32];
        store(sums, lane_sums<(N < 16 ? N : 16)>(acc));
        if constexpr (N > 16) store(sums + 16, lane_sums<N - 16>(acc + 16));
#else
#pragma GCC unroll 32
        for (int i = 0; i < N; i++) store(lanes[i] + half, acc[i]);
        if (half + WIDTH < LANES) continue;
        alignas(64) float sums[(N + 15) / 16 * 16];
        for (int i = 0; i < N; i += 16) lane_sums_16(lanes[i], sums + i);
#endif
        for (int m = 0; m < M; m++)
            for (int g = 0; g < G; g++) a.out[m * a.stride + g] += sums[m * G + g];
    }
}

// The sum of a map's gradients, in four strands: a bias learns from it.
float add_up(const float* dy, int64_t row, int rows, int width) {
    alignas(64) float sums[LANES];
    for (int half = 0; half < LANES; half += WIDTH) {
        V s0 = zero(), s1 = zero(), s2 = zero(), s3 = zero();
        for (int r = 0; r < rows; r++) {
            const float* d = dy + r * row + half;
            int p = 0;
            for (; p + 4 <= width; p += 4, d += 4 * LANES) {
                s0 = add(s0, load(d)), s1 = add(s1, load(d + LANES));
                s2 = add(s2, load(d + 2 * LANES)), s3 = add(s3, load(d + 3 * LANES));
            }
            for (; p < width; p++, d += LANES) s0 = add(s0, load(d));
        }
        store(sums + half, add(add(s0, s1), add(s2, s3)));
    }
    return lane_sum(sums);
}

constexpr int most_taps(int g) {
    int best = 1;
    for (int m = 1; m <= MOST_TAPS; m++)
        if (m * g + (g == 1 ? 1 : (m < g ? m : g)) + 1 <= REGISTERS) best = m;
    return best;
}

template <int G, int M>
void put(Kernels& table) {
    if constexpr (M <= most_taps(G)) {
        table.gradient[G][M] = gradient<M, G>;
        put<G, M + 1>(table);
    }
}

template <int G>
void put_all(Kernels& table) {
    if constexpr (G <= GROUP) {
        table.most_taps[G] = most_taps(G);
        put<G, 1>(table);
        put_all<G + 1>(table);
    }
}

}  // namespace

void EPX_PART(gradients)(Kernels& table) {
    put_all<1>(table);
    table.add_up = add_up;
}

}  // namespace epicortex
