// Average pooling to any number of rows and columns, with torch's adaptive windows; it is linear, so both ways are one.
#include "parts.h"

namespace epicortex {
namespace {

inline int begin_of(int i, int size, int parts) {
    return static_cast<int>(static_cast<int64_t>(i) * size / parts);
}
inline int end_of(int i, int size, int parts) {
    return static_cast<int>(((static_cast<int64_t>(i) + 1) * size + parts - 1) / parts);
}

// Each window with its first row and column, one past its last, and its weight.
template <class F>
inline void windows(const Pool& a, F f) {
    for (int r = 0; r < a.rows; r++)
        for (int q = 0; q < a.columns; q++) {
            const int h0 = begin_of(r, a.height, a.rows), h1 = end_of(r, a.height, a.rows);
            const int w0 = begin_of(q, a.width, a.columns), w1 = end_of(q, a.width, a.columns);
            f(r, q, h0, h1, w0, w1, a.factor / (static_cast<float>(h1 - h0) * static_cast<float>(w1 - w0)));
        }
}

void pool(const Pool& a) {
    for (int c = 0; c < a.channels; c++)
        windows(a, [&](int r, int q, int h0, int h1, int w0, int w1, float weight) {
            float* y = a.y.p + c * a.y.channel + r * a.y.row + q * LANES;
            for (int half = 0; half < LANES; half += WIDTH) {
                V total = zero();
                for (int h = h0; h < h1; h++) {
                    const float* x = a.x.p + c * a.x.channel + h * a.x.row + half;
                    V s = zero();
                    for (int w = w0; w < w1; w++) s = add(s, load(x + w * LANES));
                    total = add(total, s);
                }
                store(y + half, mul(total, all(weight)));
            }
        });
}

void pool_back(const Pool& a) {
    for (int c = 0; c < a.channels; c++) {
        float* dx = a.x.p + c * a.x.channel;
        if (!a.add)
            for (int h = 0; h < a.height; h++)
                for (int i = 0; i < a.width * LANES; i += WIDTH) store(dx + h * a.x.row + i, zero());
        windows(a, [&](int r, int q, int h0, int h1, int w0, int w1, float weight) {
            const float* dy = a.y.p + c * a.y.channel + r * a.y.row + q * LANES;
            for (int half = 0; half < LANES; half += WIDTH) {
                const V d = mul(load(dy + half), all(weight));
                for (int h = h0; h < h1; h++)
                    for (int w = w0; w < w1; w++) {
                        float* to = dx + h * a.x.row + w * LANES + half;
                        store(to, add(load(to), d));
                    }
            }
        });
    }
}

}  // namespace

void EPX_PART(pools)(Kernels& table) {
    table.pool = pool;
    table.pool_back = pool_back;
}

}  // namespace epicortex
