// Optimisers over the flat vector of parameters, each with the formulas of torch.optim.
#include "parts.h"

namespace epicortex {
namespace {

inline void sgd(const Optimiser& o, V& w, V& m, V&, V g) {
    if (o.momentum != 0.0f) {
        m = o.first_step ? g : fma(all(1.0f - o.dampening), g, mul(all(o.momentum), m));
        g = o.nesterov ? fma(all(o.momentum), m, g) : m;
    }
    w = fma(all(-o.rate), g, w);
}

inline void adadelta(const Optimiser& o, V& w, V& square, V& delta, V g) {
    const V rho = all(o.rho), rest = all(1.0f - o.rho), epsilon = all(o.epsilon);
    square = fma(mul(g, rest), g, mul(square, rho));
    const V step = mul(div(root(add(delta, epsilon)), root(add(square, epsilon))), g);
    delta = fma(mul(step, rest), step, mul(delta, rho));
    w = fma(all(-o.rate), step, w);
}

inline void adam(const Optimiser& o, V& w, V& m, V& v, V g) {
    m = fma(all(1.0f - o.beta1), sub(g, m), m);
    v = fma(mul(g, all(1.0f - o.beta2)), g, mul(v, all(o.beta2)));
    const V size = add(div(root(v), all(o.correction2)), all(o.epsilon));
    w = fma(all(-o.correction1), div(m, size), w);
}

// Sixteen parameters.
inline void step(const Optimiser& o, float* parameters, float* first, float* second, const float* gradient,
                 const float* decayed) {
    for (int half = 0; half < LANES; half += WIDTH) {
        V w = load(parameters + half), g = load(gradient + half);
        V m = first ? load(first + half) : zero(), v = second ? load(second + half) : zero();
        if (o.decay != 0.0f) {
            V decay = all(o.decay);
            if (decayed) decay = mul(decay, load(decayed + half));
            if (o.kind == OptimiserKind::adamw) w = mul(w, sub(all(1.0f), mul(all(o.rate), decay)));
            else g = fma(decay, w, g);
        }
        if (o.kind == OptimiserKind::sgd) sgd(o, w, m, v, g);
        else if (o.kind == OptimiserKind::adadelta) adadelta(o, w, m, v, g);
        else adam(o, w, m, v, g);
        store(parameters + half, w);
        if (first) store(first + half, m);
        if (second) store(second + half, v);
    }
}

void optimise(const Optimiser& o) {
    int64_t i = 0;
    for (; i + LANES <= o.n; i += LANES)
        step(o, o.parameters + i, o.first ? o.first + i : nullptr, o.second ? o.second + i : nullptr, o.gradient + i,
             o.decayed ? o.decayed + i : nullptr);
    if (i == o.n) return;
    const size_t rest = static_cast<size_t>(o.n - i) * sizeof(float);
    alignas(64) float w[LANES] = {}, m[LANES] = {}, v[LANES] = {}, g[LANES] = {}, d[LANES] = {};
    std::memcpy(w, o.parameters + i, rest), std::memcpy(g, o.gradient + i, rest);
    if (o.first) std::memcpy(m, o.first + i, rest);
    if (o.second) std::memcpy(v, o.second + i, rest);
    if (o.decayed) std::memcpy(d, o.decayed + i, rest);
    step(o, w, m, v, g, o.decayed ? d : nullptr);
    std::memcpy(o.parameters + i, w, rest);
    if (o.first) std::memcpy(o.first + i, m, rest);
    if (o.second) std::memcpy(o.second + i, v, rest);
}

void average(int64_t n, float* mean, const float* values, float weight) {
    int64_t i = 0;
    for (; i + WIDTH <= n; i += WIDTH) {
        const V m = load(mean + i);
        store(mean + i, fma(all(weight), sub(load(values + i), m), m));
    }
    if (i == n) return;
    alignas(64) float m[LANES] = {}, v[LANES] = {};
    const size_t rest = static_cast<size_t>(n - i) * sizeof(float);
    std::memcpy(m, mean + i, rest), std::memcpy(v, values + i, rest);
    store(m, fma(all(weight), sub(load(v), load(m)), load(m)));
    std::memcpy(mean + i, m, rest);
}

// How many multiply-adds of registers can be done in a row: the peak, for shares of it.
double peak(int64_t rounds) {
    V a[12];
#pragma GCC unroll 12
    for (int i = 0; i < 12; i++) a[i] = all(static_cast<float>(i));
    const V m = all(0.999f), c = all(0.001f);
    for (int64_t r = 0; r < rounds; r++)
#pragma GCC unroll 12
        for (int i = 0; i < 12; i++) a[i] = fma(a[i], m, c);
    alignas(64) float sum[LANES] = {};
    for (int i = 0; i < 12; i++) store(sum, add(load(sum), a[i]));
    return sum[0];
}

}  // namespace

void EPX_PART(optimisers)(Kernels& table) {
    table.optimise = optimise;
    table.average = average;
    table.peak = peak;
}

}  // namespace epicortex
