// Normalisation, residual addition and activation in one pass over a block, forward and back; statistics.
#include "mathematics.h"
#include "parts.h"

namespace epicortex {
namespace {

inline V activated(Activation kind, V v, V slope) {
    switch (kind) {
        case Activation::leaky: return rectified(v, slope);
        case Activation::elu: return pick(v, v, exponential_less_1(smaller(zero(), v)));
        case Activation::gelu:
            return mul(mul(all(0.5f), v), add(all(1.0f), error_function(mul(v, all(0.70710678f)))));
        case Activation::silu: return mul(v, logistic(v));
        case Activation::tanh: return tangent(v);
        case Activation::smooth: return sub(mul(all(0.5f), add(root(fma(v, v, all(4.0f))), v)), all(1.0f));
        default: return v;
    }
}

// Its derivative, from what went in (v) or what came out (y), whichever is told.
inline V derivative(Activation kind, V v, V y, V slope) {
    switch (kind) {
        case Activation::leaky: return pick(y, all(1.0f), slope);
        case Activation::elu: return pick(y, all(1.0f), add(y, all(1.0f)));
        case Activation::gelu: {
            const V half = mul(all(0.5f), add(all(1.0f), error_function(mul(v, all(0.70710678f)))));
            const V density = mul(all(0.39894228f), exponential(mul(mul(v, v), all(-0.5f))));
            return fma(v, density, half);
        }
        case Activation::silu: {
            const V s = logistic(v);
            return mul(s, fma(v, sub(all(1.0f), s), all(1.0f)));
        }
        case Activation::tanh: return sub(all(1.0f), mul(y, y));
        case Activation::smooth: {
            const V t = add(y, all(1.0f)), s = mul(t, t);  // √(v²+4) + v is 2 t
            return div(s, add(s, all(1.0f)));
        }
        default: return all(1.0f);
    }
}

inline bool needs_input(Activation kind) { return kind == Activation::gelu || kind == Activation::silu; }

template <Activation KIND, bool NORM, bool RESIDUAL>
void forward(const Pointwise& a) {
    const V slope = all(a.slope);
    for (int c = 0; c < a.channels; c++) {
        const V scale = NORM ? all(a.a[c]) : zero(), shift = NORM ? all(a.b[c]) : zero();
        for (int h = 0; h < a.height; h++) {
            const float* z = a.z.p + c * a.z.channel + h * a.z.row;
            const float* r = RESIDUAL ? a.residual.p + c * a.residual.channel + h * a.residual.row : z;
            float* y = a.y.p + c * a.y.channel + h * a.y.row;
            for (int i = 0; i < a.width * LANES; i += WIDTH) {
                V v = load(z + i);
                if (NORM) v = fma(scale, v, shift);
                if (RESIDUAL) v = add(v, load(r + i));
                store(y + i, activated(KIND, v, slope));
            }
        }
    }
}

template <Activation KIND, bool NORM>
void backward(const PointwiseBack& b) {
    const Pointwise& a = b.forward;
    const V slope = all(a.slope);
    const bool residual = a.residual.p != nullptr, passes = b.dresidual.p != nullptr;
    for (int c = 0; c < a.channels; c++) {
        const V scale = NORM ? all(a.a[c]) : zero(), shift = NORM ? all(a.b[c]) : zero();
        const V mean = NORM ? all(b.mean[c]) : zero(), inverse = NORM ? all(b.inverse[c]) : zero();
        alignas(64) float sums[2][LANES] = {};
        for (int h = 0; h < a.height; h++) {
            const float* z = a.z.p + c * a.z.channel + h * a.z.row;
            const float* y = a.y.p + c * a.y.channel + h * a.y.row;
            const float* r = residual ? a.residual.p + c * a.residual.channel + h * a.residual.row : z;
            float* dy = b.dy.p + c * b.dy.channel + h * b.dy.row;
            float* dz = NORM ? dy : b.dz.p + c * b.dz.channel + h * b.dz.row;
            float* dr = passes ? b.dresidual.p + c * b.dresidual.channel + h * b.dresidual.row : dz;
            for (int half = 0; half < LANES; half += WIDTH) {
                V plain = zero(), product = zero();
                for (int i = half; i < a.width * LANES; i += LANES) {
                    V d = load(dy + i);
                    if (KIND == Activation::leaky) {
                        d = pick(load(y + i), d, mul(d, slope));
                    } else if (KIND != Activation::none) {
                        V v = zero();
                        if (needs_input(KIND)) {
                            v = load(z + i);
                            if (NORM) v = fma(scale, v, shift);
                            if (residual) v = add(v, load(r + i));
                        }
                        d = mul(d, derivative(KIND, v, load(y + i), slope));
                    }
                    if (passes) store(dr + i, b.add_dresidual ? add(load(dr + i), d) : d);
                    if (NORM) {
                        store(dy + i, d);
                        plain = add(plain, d);
                        product = fma(d, mul(sub(load(z + i), mean), inverse), product);
                    } else {
                        store(dz + i, b.add_dz ? add(load(dz + i), d) : d);
                    }
                }
                if (NORM) {  // row after row: sums of sums lose less
                    store(sums[0] + half, add(load(sums[0] + half), plain));
                    store(sums[1] + half, add(load(sums[1] + half), product));
                }
            }
        }
        if (NORM) b.sums[2 * c] = lane_sum(sums[0]), b.sums[2 * c + 1] = lane_sum(sums[1]);
    }
}

void norm_back(const NormBack& a) {
    for (int c = 0; c < a.channels; c++) {
        const V scale = all(a.a[c]), mean = all(a.mean[c]), p = all(a.p[c]), q = all(a.q[c]);
        for (int h = 0; h < a.height; h++) {
            const float* z = a.z.p + c * a.z.channel + h * a.z.row;
            const float* dv = a.dv.p + c * a.dv.channel + h * a.dv.row;
            float* dz = a.dz.p + c * a.dz.channel + h * a.dz.row;
            for (int half = 0; half < LANES; half += WIDTH) {
                const V real = first_lanes(a.count, half);
                for (int i = half; i < a.width * LANES; i += LANES) {
                    V v = fma(p, sub(load(z + i), mean), fma(scale, load(dv + i), q));
                    v = pick(real, v, zero());
                    store(dz + i, a.add ? add(load(dz + i), v) : v);
                }
            }
        }
    }
}

void statistics(const Statistics& a) {
    const float number = static_cast<float>(a.count) * static_cast<float>(a.height) * static_cast<float>(a.width);
    for (int c = 0; c < a.channels; c++) {
        const float* z = a.z.p + c * a.z.channel;
        float found[2] = {};
        for (int pass = 0; pass < 2; pass++) {  // the sum; then the squares of the distances from the mean
            const V mean = all(found[0] / number);
            alignas(64) float sums[LANES] = {};
            for (int half = 0; half < LANES; half += WIDTH) {
                const V real = first_lanes(a.count, half);
                V total = zero();
                for (int h = 0; h < a.height; h++) {
                    const float* p = z + h * a.z.row + half;
                    V s[2] = {zero(), zero()};
                    for (int w = 0; w < a.width; w++, p += LANES) {
                        V& strand = s[w & 1];
                        if (pass) {
                            const V d = sub(load(p), mean);
                            strand = fma(d, d, strand);
                        } else {
                            strand = add(strand, load(p));
                        }
                    }
                    total = add(total, add(s[0], s[1]));
                }
                store(sums + half, pick(real, total, zero()));
            }
            found[pass] = lane_sum(sums);
        }
        a.out[2 * c] = found[0], a.out[2 * c + 1] = found[1];
    }
}

using Forward = void (*)(const Pointwise&);
using Back = void (*)(const PointwiseBack&);
constexpr int KINDS = static_cast<int>(Activation::count);
struct Functions {
    Forward forwards[KINDS][2][2];
    Back backs[KINDS][2];
};

template <int K>
constexpr void put(Functions& f) {
    if constexpr (K < KINDS) {
        constexpr Activation kind = static_cast<Activation>(K);
        f.forwards[K][0][0] = forward<kind, false, false>;
        f.forwards[K][0][1] = forward<kind, false, true>;
        f.forwards[K][1][0] = forward<kind, true, false>;
        f.forwards[K][1][1] = forward<kind, true, true>;
        f.backs[K][0] = backward<kind, false>;
        f.backs[K][1] = backward<kind, true>;
        put<K + 1>(f);
    }
}

constexpr Functions functions() {
    Functions f{};
    put<0>(f);
    return f;
}
constexpr Functions FUNCTIONS = functions();

void pointwise(const Pointwise& a) {
    FUNCTIONS.forwards[static_cast<int>(a.activation)][a.a != nullptr][a.residual.p != nullptr](a);
}

void pointwise_back(const PointwiseBack& b) {
    FUNCTIONS.backs[static_cast<int>(b.forward.activation)][b.forward.a != nullptr](b);
}

}  // namespace

void EPX_PART(pointwises)(Kernels& table) {
    table.pointwise = pointwise;
    table.pointwise_back = pointwise_back;
    table.norm_back = norm_back;
    table.statistics = statistics;
}

}  // namespace epicortex
