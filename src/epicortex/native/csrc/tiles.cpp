// Tiles: G outputs at P neighbouring positions, kept in registers while the taps go by.
//
// Serves the forward pass (outputs are maps, taps are entries of their kernels) and the gradient of the input (outputs
// are channels, taps are entries of all kernels that reach them). Each output is summed over the taps in their order,
// beginning with its bias, so the result does not depend on the sizes of tiles.
#include "parts.h"

namespace epicortex {
namespace {

template <int P, int G>
void tile(const Tile& a) {
    for (int half = 0; half < LANES; half += WIDTH)
        for (int row = 0; row < a.rows; row++) {
            V acc[P][G];
#pragma GCC unroll 32
            for (int p = 0; p < P; p++)
#pragma GCC unroll 32
                for (int g = 0; g < G; g++) acc[p][g] = all(a.bias[g]);
            const float* base = a.x + row * a.x_row + half;
            const float* w = a.w;
            const int64_t step = a.step;
            for (int t = 0; t < a.taps; t++, w += G) {
                const float* x = base + a.off[t];
                if constexpr (G == 1) {
                    const V c = all(w[0]);
#pragma GCC unroll 32
                    for (int p = 0; p < P; p++) acc[p][0] = fma(c, load(x + p * step), acc[p][0]);
                } else if constexpr (P <= G) {
                    V xs[P];
#pragma GCC unroll 32
                    for (int p = 0; p < P; p++) xs[p] = keep(load(x + p * step));
#pragma GCC unroll 32
                    for (int g = 0; g < G; g++) {
                        const V c = keep(all(w[g]));
#pragma GCC unroll 32
                        for (int p = 0; p < P; p++) acc[p][g] = fma(c, xs[p], acc[p][g]);
                    }
                } else {
                    V c[G];
#pragma GCC unroll 32
                    for (int g = 0; g < G; g++) c[g] = keep(all(w[g]));
#pragma GCC unroll 32
                    for (int p = 0; p < P; p++) {
                        const V v = keep(load(x + p * step));
#pragma GCC unroll 32
                        for (int g = 0; g < G; g++) acc[p][g] = fma(c[g], v, acc[p][g]);
                    }
                }
            }
            float* out = a.out + row * a.out_row + half;
            const float* act = a.act + row * a.act_row + half;
            const V slope = all(a.slope);
            switch (a.finish) {
                case Finish::plain:
#pragma GCC unroll 32
                    for (int g = 0; g < G; g++)
#pragma GCC unroll 32
                        for (int p = 0; p < P; p++) store(out + a.maps[g] + p * a.out_step, acc[p][g]);
                    break;
                case Finish::leaky:
#pragma GCC unroll 32
                    for (int g = 0; g < G; g++)
#pragma GCC unroll 32
                        for (int p = 0; p < P; p++)
                            store(out + a.maps[g] + p * a.out_step, rectified(acc[p][g], slope));
                    break;
                case Finish::add:
#pragma GCC unroll 32
                    for (int g = 0; g < G; g++)
#pragma GCC unroll 32
                        for (int p = 0; p < P; p++) {
                            float* to = out + a.maps[g] + p * a.out_step;
                            store(to, add(load(to), acc[p][g]));
                        }
                    break;
                case Finish::back:
#pragma GCC unroll 32
                    for (int g = 0; g < G; g++)
#pragma GCC unroll 32
                        for (int p = 0; p < P; p++) {
                            const V v = acc[p][g];
                            const V y = load(act + a.act_maps[g] + p * a.act_step);
                            store(out + a.maps[g] + p * a.out_step, pick(y, v, mul(v, slope)));
                        }
                    break;
                case Finish::add_back:
#pragma GCC unroll 32
                    for (int g = 0; g < G; g++)
#pragma GCC unroll 32
                        for (int p = 0; p < P; p++) {
                            float* to = out + a.maps[g] + p * a.out_step;
                            const V v = add(load(to), acc[p][g]);
                            const V y = load(act + a.act_maps[g] + p * a.act_step);
                            store(to, pick(y, v, mul(v, slope)));
                        }
                    break;
            }
        }
}

constexpr int most_positions(int g) {  // accumulators, the fewer of both operands, and one register more
    int best = 1;
    for (int p = 1; p <= MOST_POSITIONS; p++)
        if (p * g + (g == 1 ? 1 : (p < g ? p : g)) + 1 <= REGISTERS) best = p;
    return best;
}

template <int G, int P>
void put(Kernels& table) {
    if constexpr (P <= most_positions(G)) {
        table.tile[G][P] = tile<P, G>;
        put<G, P + 1>(table);
    }
}

template <int G>
void put_all(Kernels& table) {
    if constexpr (G <= GROUP) {
        table.most_positions[G] = most_positions(G);
        put<G, 1>(table);
        put_all<G + 1>(table);
    }
}

}  // namespace

void EPX_PART(tiles)(Kernels& table) {
    table.most_maps = GROUP;
    put_all<1>(table);
}

}  // namespace epicortex
