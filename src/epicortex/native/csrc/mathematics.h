// exp, tanh and erf of vectors, from multiplications and additions alone, so that all instruction sets agree.
#pragma once
#include "lanes.h"

namespace epicortex {
namespace {

// e^r of a reduced argument without its 1, and the power of two that goes with it. Polynomial of Cephes' expf.
inline V reduced_exponential(V x, V* scale, V* whole) {
    x = larger(all(-87.0f), smaller(all(88.0f), x));  // in this order NaN stays NaN
    const V n = rounded(mul(x, all(1.44269504f)));
    V r = fma(n, all(-0.693359375f), x);
    r = fma(n, all(2.12194440e-4f), r);
    V p = all(1.9875691500e-4f);
    p = fma(p, r, all(1.3981999507e-3f));
    p = fma(p, r, all(8.3334519073e-3f));
    p = fma(p, r, all(4.1665795894e-2f));
    p = fma(p, r, all(1.6666665459e-1f));
    p = fma(p, r, all(5.0000001201e-1f));
    *scale = power(n);
    *whole = n;
    return fma(mul(r, r), p, r);
}

// Within 2 units of the last place; of NaN, NaN.
inline V exponential(V x) {
    V scale, whole;
    const V rest = reduced_exponential(x, &scale, &whole);
    return mul(add(rest, all(1.0f)), scale);
}

// e^x − 1 of x ≤ 0, exact to the last places near 0, too.
inline V exponential_less_1(V x) {
    V scale, whole;
    const V rest = reduced_exponential(x, &scale, &whole);
    // whole is 0 or less here: −whole > 0 where the power of two is not 1
    return pick(sub(zero(), whole), sub(mul(add(rest, all(1.0f)), scale), all(1.0f)), rest);
}

inline V absolute(V x) { return pick(x, x, sub(zero(), x)); }

inline V tangent(V x) {  // hyperbolic; Cephes' tanhf
    const V size = absolute(x), square = mul(x, x);
    V p = all(-5.70498872745e-3f);
    p = fma(p, square, all(2.06390887954e-2f));
    p = fma(p, square, all(-5.37397155531e-2f));
    p = fma(p, square, all(1.33314422036e-1f));
    p = fma(p, square, all(-3.33332819422e-1f));
    const V near = fma(mul(p, square), x, x);
    const V e = exponential(add(size, size));
    const V far = sub(all(1.0f), div(all(2.0f), add(e, all(1.0f))));
    return pick(sub(size, all(0.625f)), pick(x, far, sub(zero(), far)), near);
}

inline V error_function(V x) {  // Juffa's erff: within 1.5 units of the last place
    const V t = smaller(all(16.0f), absolute(x)), s = mul(t, t);  // 1 long before 16
    V r = fma(all(-1.72853470e-5f), t, all(3.83197126e-4f));
    const V u = fma(all(-3.88396438e-3f), t, all(2.42546219e-2f));
    r = fma(r, s, u);
    r = fma(r, t, all(-1.06777877e-1f));
    r = fma(r, t, all(-6.34846687e-1f));
    r = fma(r, t, all(-1.28717512e-1f));
    r = fma(r, t, sub(zero(), t));
    const V far = sub(all(1.0f), exponential(r));
    V q = all(-5.96761703e-4f);
    q = fma(q, s, all(4.99119423e-3f));
    q = fma(q, s, all(-2.67681349e-2f));
    q = fma(q, s, all(1.12819925e-1f));
    q = fma(q, s, all(-3.76125336e-1f));
    q = fma(q, s, all(1.28379166e-1f));
    const V near = fma(q, x, x);
    return pick(sub(t, all(0.927734375f)), pick(x, far, sub(zero(), far)), near);
}

inline V logistic(V x) { return div(all(1.0f), add(all(1.0f), exponential(sub(zero(), x)))); }

}  // namespace
}  // namespace epicortex
