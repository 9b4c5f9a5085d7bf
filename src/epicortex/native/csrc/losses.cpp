// Losses of a block, and the gradients of its outputs. Lanes without a sample get a gradient of 0.
#include "mathematics.h"
#include "parts.h"

namespace epicortex {
namespace {

// log of a positive double, by multiplications and additions alone: x = 2^k m, log m = 2 artanh((m − 1) / (m + 1)).
double logarithm(double x) {
    if (!(x > 0) || x - x != 0) return x == 0 ? -__builtin_inf() : x < 0 ? __builtin_nan("") : x;
    uint64_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    int64_t exponent = static_cast<int64_t>(bits >> 52) - 1023;
    bits = (bits & 0xFFFFFFFFFFFFFull) | 0x3FF0000000000000ull;
    double m;
    std::memcpy(&m, &bits, sizeof m);
    if (m > 1.4142135623730951) m *= 0.5, exponent++;
    const double s = (m - 1.0) / (m + 1.0), q = s * s;
    double sum = 0.0;
    for (int k = 21; k >= 1; k -= 2) sum = sum * q + 1.0 / k;
    return static_cast<double>(exponent) * 0.6931471805599453 + 2.0 * s * sum;
}

// Σ over classes of target · −log(softmax), where a target is (1 − ε) for the label plus ε/K for all, times weights.
void softmax(const Loss& a) {
    alignas(64) float most[LANES], total[LANES];
    const int K = a.outputs;
    const float part = a.smoothing / static_cast<float>(K);
    for (int half = 0; half < LANES; half += WIDTH) {
        V m = load(a.z + half);
        for (int o = 1; o < K; o++) m = larger(m, load(a.z + o * LANES + half));
        V s = zero();
        for (int o = 0; o < K; o++) {
            const V e = exponential(sub(load(a.z + o * LANES + half), m));
            s = add(s, e);
            if (a.dz) store(a.dz + o * LANES + half, e);
        }
        store(most + half, m), store(total + half, s);
        if (a.dz) {
            const V inverse = div(all(1.0f), s);
            for (int o = 0; o < K; o++) {
                float* d = a.dz + o * LANES + half;
                store(d, mul(load(d), inverse));
            }
        }
    }
    const float scale = static_cast<float>(a.scale);
    for (int i = 0; i < a.count; i++) {
        const int64_t label = a.labels[i];
        const double own = a.weights ? a.weights[label] : 1.0;
        const double base = logarithm(total[i]) + most[i];  // log Σ exp
        double smooth = 0.0, weights = 0.0;
        if (a.smoothing > 0)
            for (int o = 0; o < K; o++) {
                const double w = a.weights ? a.weights[o] : 1.0;
                smooth += w * (base - a.z[o * LANES + i]);
                weights += w;
            }
        a.losses[i] = (1.0 - a.smoothing) * own * (base - a.z[label * LANES + i]) + part * smooth;
        if (!a.dz) continue;
        // d loss / d z[o] = softmax[o] · Σ targets − target[o]
        const float targets = static_cast<float>((1.0 - a.smoothing) * own + part * weights);
        for (int o = 0; o < K; o++) {
            float* d = a.dz + o * LANES + i;
            const float w = a.smoothing > 0 ? part * (a.weights ? a.weights[o] : 1.0f) : 0.0f;
            const float target = o == label ? static_cast<float>((1.0 - a.smoothing) * own) + w : w;
            *d = (*d * targets - target) * scale;
        }
    }
}

void sigmoid(const Loss& a) {  // log(1 + e^z) − t z, as max(z, 0) − t z + log(1 + e^−|z|)
    const float scale = static_cast<float>(a.scale);
    for (int i = 0; i < a.count; i++) a.losses[i] = 0.0;
    for (int o = 0; o < a.outputs; o++) {
        alignas(64) float small[LANES], whole[LANES];
        for (int half = 0; half < LANES; half += WIDTH) {
            const V z = load(a.z + o * LANES + half);
            store(small + half, exponential(sub(zero(), absolute(z))));
            store(whole + half, logistic(z));
        }
        for (int i = 0; i < a.count; i++) {
            const float z = a.z[o * LANES + i], t = a.targets[static_cast<int64_t>(i) * a.outputs + o];
            a.losses[i] += ((z > 0 ? z : 0.0) - static_cast<double>(t) * z + logarithm(1.0 + small[i])) / a.outputs;
            if (a.dz) a.dz[o * LANES + i] = (whole[i] - t) * scale;
        }
    }
}

void squared(const Loss& a) {
    const float scale = static_cast<float>(a.scale);
    for (int i = 0; i < a.count; i++) a.losses[i] = 0.0;
    for (int o = 0; o < a.outputs; o++)
        for (int i = 0; i < a.count; i++) {
            const float d = a.z[o * LANES + i] - a.targets[static_cast<int64_t>(i) * a.outputs + o];
            a.losses[i] += static_cast<double>(d) * d / a.outputs;
            if (a.dz) a.dz[o * LANES + i] = 2.0f * d * scale;
        }
}

void loss(const Loss& a) {
    if (a.kind == LossKind::softmax) softmax(a);
    if (a.kind == LossKind::sigmoid) sigmoid(a);
    if (a.kind == LossKind::squared) squared(a);
    if (a.dz)
        for (int o = 0; o < a.outputs; o++)
            for (int i = a.count; i < LANES; i++) a.dz[o * LANES + i] = 0.0f;
}

}  // namespace

void EPX_PART(losses)(Kernels& table) { table.loss = loss; }

}  // namespace epicortex
