// Full layers over [inputs][nodes]: forward, gradient of the inputs, gradient of the weights.
#include "parts.h"

namespace epicortex {
namespace {

#if defined(EPX_AVX512)
constexpr int WIDE = 24, NARROW = 12;  // nodes at a time; for gradients of weights
#elif defined(EPX_AVX2)
constexpr int WIDE = 12, NARROW = 6;
#else
constexpr int WIDE = 4, NARROW = 4;
#endif
constexpr int PAIR = 2;                // inputs at a time in gradients of weights

template <int G>
void forward(const Full& a, const float* w, const float* x, const float* bias, float* out) {
    for (int half = 0; half < LANES; half += WIDTH) {
        V acc[G];
#pragma GCC unroll 32
        for (int g = 0; g < G; g++) acc[g] = all(bias[g]);
        const float* q = w;
        for (int r = 0; r < a.run_count; r++) {
            const float* p = x + a.runs[r].at + half;
            for (int i = 0; i < a.runs[r].count; i++, p += LANES, q += a.nodes) {
                const V v = keep(load(p));
#pragma GCC unroll 32
                for (int g = 0; g < G; g++) acc[g] = fma(v, all(q[g]), acc[g]);
            }
        }
#pragma GCC unroll 32
        for (int g = 0; g < G; g++) store(out + g * LANES + half, acc[g]);
    }
}

// The inputs' gradients from G nodes; the sum over all nodes is made in their order, part after part.
template <int G>
void back(const Full& a, const float* w, const float* dy, float* dx, const Run* dx_runs, const float* act,
          const Run* act_runs, float slope, Finish finish) {
    const V slopes = all(slope);
    const bool more = finish == Finish::add || finish == Finish::add_back;
    const bool masked = finish == Finish::back || finish == Finish::add_back;
    for (int half = 0; half < LANES; half += WIDTH) {
        V d[G];
#pragma GCC unroll 32
        for (int g = 0; g < G; g++) d[g] = load(dy + g * LANES + half);
        const float* q = w;
        for (int r = 0; r < a.run_count; r++) {
            float* to = dx + dx_runs[r].at + half;
            const float* y = masked ? act + act_runs[r].at + half : to;
            for (int i = 0; i < a.runs[r].count; i++, q += a.nodes, to += LANES, y += LANES) {
                V v = more ? load(to) : zero();
#pragma GCC unroll 32
                for (int g = 0; g < G; g++) v = fma(d[g], all(q[g]), v);
                if (masked) v = pick(load(y), v, mul(v, slopes));
                store(to, v);
            }
        }
    }
}

// dw[r][g] of R inputs and G nodes over all blocks
template <int R, int G>
void gradient(const float* x, int64_t x_block, const float* dy, int64_t dy_block, int blocks, float* dw, int nodes) {
    constexpr int N = R * G, UP = (N + 15) / 16 * 16;
#if defined(EPX_AVX512)
    V s[N];
#pragma GCC unroll 32
    for (int i = 0; i < N; i++) s[i] = zero();
    const float *p = x, *q = dy;
    for (int b = 0; b < blocks; b++, p += x_block, q += dy_block) {
        V v[R];
#pragma GCC unroll 32
        for (int r = 0; r < R; r++) v[r] = load(p + r * LANES);
#pragma GCC unroll 32
        for (int g = 0; g < G; g++) {
            const V d = keep(load(q + g * LANES));
#pragma GCC unroll 32
            for (int r = 0; r < R; r++) s[r * G + g] = fma(v[r], d, s[r * G + g]);
        }
    }
    constexpr int REST = N > 16 ? N - 16 : 1;
    const V a = lane_sums<(N < 16 ? N : 16)>(s);
    const V b = N > 16 ? lane_sums<REST>(s + (N > 16 ? 16 : 0)) : a;
    if (G == nodes) {
        _mm512_mask_storeu_ps(dw, static_cast<__mmask16>(N >= 16 ? 0xFFFF : (1u << N) - 1), a);
        if (N > 16) _mm512_mask_storeu_ps(dw + 16, static_cast<__mmask16>((1u << REST) - 1), b);
        return;
    }
    alignas(64) float u[UP > 16 ? UP : 32];
    store(u, a), store(u + 16, b);
#else
    alignas(64) float t[UP * LANES] = {}, u[UP];
    for (int half = 0; half < LANES; half += WIDTH) {
        V s[R][G];
#pragma GCC unroll 32
        for (int r = 0; r < R; r++)
#pragma GCC unroll 32
            for (int g = 0; g < G; g++) s[r][g] = zero();
        const float *p = x + half, *q = dy + half;
        for (int b = 0; b < blocks; b++, p += x_block, q += dy_block) {
            V v[R];
#pragma GCC unroll 32
            for (int r = 0; r < R; r++) v[r] = load(p + r * LANES);
#pragma GCC unroll 32
            for (int g = 0; g < G; g++) {
                const V d = keep(load(q + g * LANES));
#pragma GCC unroll 32
                for (int r = 0; r < R; r++) s[r][g] = fma(v[r], d, s[r][g]);
            }
        }
#pragma GCC unroll 32
        for (int r = 0; r < R; r++)
#pragma GCC unroll 32
            for (int g = 0; g < G; g++) store(t + (r * G + g) * LANES + half, s[r][g]);
    }
    for (int i = 0; i < UP; i += 16) lane_sums_16(t + i * LANES, u + i);
#endif
    for (int r = 0; r < R; r++) std::memcpy(dw + static_cast<int64_t>(r) * nodes, u + r * G, G * sizeof(float));
}

using Forward = void (*)(const Full&, const float*, const float*, const float*, float*);
using Back = void (*)(const Full&, const float*, const float*, float*, const Run*, const float*, const Run*, float, Finish);
using Grad = void (*)(const float*, int64_t, const float*, int64_t, int, float*, int);

struct Functions {
    Forward forwards[WIDE + 1];
    Back backs[WIDE + 1];
    Grad gradients[PAIR + 1][NARROW + 1];
};

template <int G>
constexpr void put(Functions& f) {
    if constexpr (G <= WIDE) {
        f.forwards[G] = forward<G>;
        f.backs[G] = back<G>;
        if constexpr (G <= NARROW) {
            f.gradients[1][G] = gradient<1, G>;
            f.gradients[2][G] = gradient<2, G>;
        }
        put<G + 1>(f);
    }
}

constexpr Functions functions() {
    Functions f{};
    put<1>(f);
    return f;
}
constexpr Functions FUNCTIONS = functions();

// n in parts of nearly equal size, none above `most`
template <class F>
inline void parts(int n, int most, F f) {
    for (int done = 0; done < n;) {
        const int rest = n - done, count = (rest + most - 1) / most, part = (rest + count - 1) / count;
        f(done, part);
        done += part;
    }
}

void full_forward(const Full& a, const float* x, const float* bias, float* out) {
    parts(a.nodes, WIDE, [&](int o, int g) { FUNCTIONS.forwards[g](a, a.w + o, x, bias + o, out + o * LANES); });
}

void full_back(const Full& a, const float* dy, float* dx, const Run* dx_runs, const float* act, const Run* act_runs,
               float slope, Finish finish) {
    const bool masked = finish == Finish::back || finish == Finish::add_back;
    const bool more = finish == Finish::add || finish == Finish::add_back;
    parts(a.nodes, WIDE, [&](int o, int g) {
        const bool adds = more || o > 0, masks = masked && o + g == a.nodes;
        const Finish own = adds ? (masks ? Finish::add_back : Finish::add) : (masks ? Finish::back : Finish::plain);
        FUNCTIONS.backs[g](a, a.w + o, dy + o * LANES, dx, dx_runs, act, act_runs, slope, own);
    });
}

void full_gradient(const Full& a, const float* x, int64_t x_block, const float* dy, int64_t dy_block, int blocks,
                   float* dw, float* dbias) {
    int64_t done = 0;
    for (int r = 0; r < a.run_count; r++) {
        const float* p = x + a.runs[r].at;
        for (int i = 0; i < a.runs[r].count;) {
            const int n = lesser(PAIR, a.runs[r].count - i);
            parts(a.nodes, NARROW, [&](int o, int g) {
                FUNCTIONS.gradients[n][g](p + static_cast<int64_t>(i) * LANES, x_block, dy + o * LANES, dy_block, blocks,
                                          dw + (done + i) * a.nodes + o, a.nodes);
            });
            i += n;
        }
        done += a.runs[r].count;
    }
    if (dbias)
        for (int o = 0; o < a.nodes; o++) {
            float s = 0;
            for (int b = 0; b < blocks; b++) s += lane_sum(dy + b * dy_block + static_cast<int64_t>(o) * LANES);
            dbias[o] = s;
        }
}

}  // namespace

void EPX_PART(fulls)(Kernels& table) {
    table.full_forward = full_forward;
    table.full_back = full_back;
    table.full_gradient = full_gradient;
}

}  // namespace epicortex
