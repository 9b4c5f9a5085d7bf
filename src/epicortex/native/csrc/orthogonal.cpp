// Matrices made orthogonal by Newton–Schulz steps: what the optimiser does with the momentum of a convolution.
//
// Sums over columns are made lane by lane and then as in `lane_sum`, those over rows in their order, so that all
// instruction sets give the same bits.
#include "parts.h"

namespace epicortex {
namespace {

// The odd polynomial of K. Jordan's Muon: five steps bring singular values from (0, 1] to about 0.7 to 1.2.
constexpr float FIRST = 3.4445f, THIRD = -4.7750f, FIFTH = 2.0315f;
constexpr int ROWS = 4;                                   // at a time
constexpr int VECTORS = REGISTERS >= 32 ? 4 : REGISTERS >= 16 ? 2 : 1;  // and of columns

// The products of P rows with R others, over all columns, [P][square].
template <int P, int R>
void products(const float* some, const float* others, int stride, float* out, int square) {
    alignas(64) float lanes[P][R][LANES];
    for (int half = 0; half < LANES; half += WIDTH) {
        V sums[P][R];
#pragma GCC unroll 4
        for (int p = 0; p < P; p++)
#pragma GCC unroll 4
            for (int r = 0; r < R; r++) sums[p][r] = zero();
        for (int c = half; c < stride; c += LANES) {
            V v[P];
#pragma GCC unroll 4
            for (int p = 0; p < P; p++) v[p] = load(some + static_cast<int64_t>(p) * stride + c);
#pragma GCC unroll 4
            for (int r = 0; r < R; r++) {
                const V w = keep(load(others + static_cast<int64_t>(r) * stride + c));
#pragma GCC unroll 4
                for (int p = 0; p < P; p++) sums[p][r] = fma(v[p], w, sums[p][r]);
            }
        }
#pragma GCC unroll 4
        for (int p = 0; p < P; p++)
#pragma GCC unroll 4
            for (int r = 0; r < R; r++) store(lanes[p][r] + half, sums[p][r]);
    }
    for (int p = 0; p < P; p++)
        for (int r = 0; r < R; r++) out[static_cast<int64_t>(p) * square + r] = lane_sum(lanes[p][r]);
}

// P rows of a = x · xᵀ from row i on, up to the diagonal
template <int P>
void squared_rows(const Orthogonal& o, int i) {
    const float* some = o.x + static_cast<int64_t>(i) * o.stride;
    float* to = o.a + static_cast<int64_t>(i) * o.square;
    int j = 0;
    for (; j + ROWS <= i + P; j += ROWS)
        products<P, ROWS>(some, o.x + static_cast<int64_t>(j) * o.stride, o.stride, to + j, o.square);
    for (; j < i + P; j++)
        products<P, 1>(some, o.x + static_cast<int64_t>(j) * o.stride, o.stride, to + j, o.square);
}

// a = x · xᵀ
void squared(const Orthogonal& o) {
    int i = 0;
    for (; i + ROWS <= o.rows; i += ROWS) squared_rows<ROWS>(o, i);
    for (; i < o.rows; i++) squared_rows<1>(o, i);
    for (i = 0; i < o.rows; i++)
        for (int k = 0; k < i; k++)
            o.a[static_cast<int64_t>(k) * o.square + i] = o.a[static_cast<int64_t>(i) * o.square + k];
}

// What a row of the result is made of: y = one · x + other · (m · z); m [rows][square], x, y and z [rows][columns]
struct Combination {
    const float *m, *z, *x;
    float* y;
    int rows, square, columns;
    float one, other;
};

// R rows of N vectors of columns
template <int R, int N>
void block(const Combination& a, int row, int column) {
    const float* m = a.m + static_cast<int64_t>(row) * a.square;
    V sums[R][N];
#pragma GCC unroll 4
    for (int r = 0; r < R; r++)
#pragma GCC unroll 4
        for (int n = 0; n < N; n++) sums[r][n] = zero();
    for (int k = 0; k < a.rows; k++) {
        const float* z = a.z + static_cast<int64_t>(k) * a.columns + column;
        V v[N];
#pragma GCC unroll 4
        for (int n = 0; n < N; n++) v[n] = load(z + n * WIDTH);
#pragma GCC unroll 4
        for (int r = 0; r < R; r++) {
            const V w = keep(all(m[static_cast<int64_t>(r) * a.square + k]));
#pragma GCC unroll 4
            for (int n = 0; n < N; n++) sums[r][n] = fma(w, v[n], sums[r][n]);
        }
    }
#pragma GCC unroll 4
    for (int r = 0; r < R; r++)
#pragma GCC unroll 4
        for (int n = 0; n < N; n++) {
            const int64_t at = static_cast<int64_t>(row + r) * a.columns + column + n * WIDTH;
            store(a.y + at, fma(all(a.other), sums[r][n], mul(all(a.one), load(a.x + at))));
        }
}

template <int R>
void combined_rows(const Combination& a, int row) {
    int column = 0;
    for (; column + VECTORS * WIDTH <= a.columns; column += VECTORS * WIDTH) block<R, VECTORS>(a, row, column);
    for (; column < a.columns; column += WIDTH) block<R, 1>(a, row, column);
}

void combined(const Combination& a) {
    int row = 0;
    for (; row + ROWS <= a.rows; row += ROWS) combined_rows<ROWS>(a, row);
    for (; row < a.rows; row++) combined_rows<1>(a, row);
}

void orthogonalise(const Orthogonal& given) {
    Orthogonal o = given;
    for (int step = 0; step < o.steps; step++) {
        squared(o);
        combined({o.a, o.a, o.a, o.b, o.rows, o.square, o.square, THIRD, FIFTH});  // b = THIRD · a + FIFTH · a²
        combined({o.b, o.x, o.x, o.y, o.rows, o.square, o.stride, FIRST, 1.0f});   // x = FIRST · x + b · x
        float* next = o.y;
        o.y = o.x, o.x = next;
    }
    if (o.x != given.x) std::memcpy(given.x, o.x, sizeof(float) * static_cast<size_t>(o.rows) * static_cast<size_t>(o.stride));
}

}  // namespace

void EPX_PART(orthogonal)(Kernels& table) { table.orthogonalise = orthogonalise; }

}  // namespace epicortex
