// The way in: samples from the shared data, sixteen of them side by side, scaled, moved and mirrored; and made smaller.
#include "parts.h"

namespace epicortex {
namespace {

// 16 rows of `n` values each -> n times 16 values. Rows may be read and `to` written up to a multiple of 16.
void transpose(const uint8_t* const* rows, int64_t n, uint8_t* to) {
    int64_t at = 0;
#if defined(EPX_AVX512) || defined(EPX_AVX2)
    if (n >= 16)
        while (at < n) {
            if (at > n - 16) at = n - 16;
            __m128i a[16], b[16];
            for (int i = 0; i < 16; i++) a[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[i] + at));
            for (int round = 0; round < 4; round++) {  // four perfect shuffles
                for (int i = 0; i < 8; i++) {
                    b[2 * i] = _mm_unpacklo_epi8(a[i], a[i + 8]);
                    b[2 * i + 1] = _mm_unpackhi_epi8(a[i], a[i + 8]);
                }
                std::memcpy(a, b, sizeof a);
            }
            for (int i = 0; i < 16; i++) _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 16 * (at + i)), a[i]);
            at += 16;
        }
#endif
    for (; at < n; at++)
        for (int i = 0; i < 16; i++) to[16 * at + i] = rows[i][at];
}

void transpose(const float* const* rows, int64_t n, float* to) {
    for (int64_t at = 0; at < n; at++)
        for (int i = 0; i < 16; i++) to[16 * at + i] = rows[i][at];
}

inline V values(const uint8_t* p) { return from_bytes(p); }
inline V values(const float* p) { return load(p); }

// A product, rounded, then a sum, as torch makes them.
template <class T>
void scaled(const T* from, int width, V scale, V offset, float* to) {
    for (int i = 0; i < width * LANES; i += WIDTH) store(to + i, add(mul(values(from + i), scale), offset));
}

// A row of a window: columns from `first` on, an edge repeated beyond it, mirrored or not. Most are inside: those are
// copied, or mirrored, without a look at each.
template <class T>
void window_row(const T* from, int width, int first, bool flip, int count, T* to) {
    const int low = first < 0 ? lesser(-first, count) : 0;                        // columns before the left edge
    const int inside = lesser(count, width - first > low ? width - first : low);  // and before the right one
    const T left = from[0], right = from[width - 1];
    if (!flip) {
        for (int w = 0; w < low; w++) to[w] = left;
        if (inside > low) std::memcpy(to + low, from + first + low, static_cast<size_t>(inside - low) * sizeof(T));
        for (int w = inside; w < count; w++) to[w] = right;
        return;
    }
    T* last = to + count - 1;
    for (int w = 0; w < low; w++) last[-w] = left;
    for (int w = low; w < inside; w++) last[-w] = from[first + w];
    for (int w = inside; w < count; w++) last[-w] = right;
}

template <class T>
void gather_as(const Gather& a) {
    const T* data = static_cast<const T*>(a.data);
    const int64_t plane = static_cast<int64_t>(a.height) * a.width, sample = plane * a.channels;
    const T* from[16];
    int lane[16];
    for (int i = 0; i < 16; i++) {
        lane[i] = i < a.count ? i : a.count - 1;  // the last sample again: finite where it is
        from[i] = data + a.rows[lane[i]] * sample;
    }
    T* side = reinterpret_cast<T*>(a.scratch);
    const bool plain = !a.moves && !a.flips;
    for (int c = 0; c < a.channels; c++) {
        const V scale = all(a.scale[c]), offset = all(a.offset[c]);
        const T* rows[16];
        if (plain) {
            for (int i = 0; i < 16; i++) rows[i] = from[i] + c * plane;
            transpose(rows, plane, side);
            for (int h = 0; h < a.height; h++)
                scaled(side + static_cast<int64_t>(h) * a.width * 16, a.width, scale, offset,
                       a.x.p + c * a.x.channel + h * a.x.row);
            continue;
        }
        T* line = side + 16 * (static_cast<int64_t>(a.out_width) + 16);
        for (int h = 0; h < a.out_height; h++) {
            for (int i = 0; i < 16; i++) {
                const int up = a.moves ? a.moves[2 * lane[i]] : 0, left = a.moves ? a.moves[2 * lane[i] + 1] : 0;
                int at = up + h;
                at = at < 0 ? 0 : at >= a.height ? a.height - 1 : at;
                T* own = line + static_cast<int64_t>(i) * a.out_width;
                window_row(from[i] + c * plane + static_cast<int64_t>(at) * a.width, a.width, left,
                           a.flips && a.flips[lane[i]], a.out_width, own);
                rows[i] = own;
            }
            transpose(rows, a.out_width, side);
            scaled(side, a.out_width, scale, offset, a.x.p + c * a.x.channel + h * a.x.row);
        }
    }
}

void gather(const Gather& a) {
    if (a.bytes) gather_as<uint8_t>(a);
    else gather_as<float>(a);
}

void resample(const Resample& a) {
    for (int c = 0; c < a.channels; c++) {
        const float* weights = a.row_weights;
        for (int r = 0; r < a.rows; weights += a.row_count[r], r++) {
            for (int i = 0; i < a.width * LANES; i += WIDTH) {
                V s = zero();
                for (int k = 0; k < a.row_count[r]; k++)
                    s = fma(all(weights[k]), load(a.x.p + c * a.x.channel + (a.row_first[r] + k) * a.x.row + i), s);
                store(a.scratch + i, s);
            }
            const float* across = a.column_weights;
            float* y = a.y.p + c * a.y.channel + r * a.y.row;
            for (int q = 0; q < a.columns; across += a.column_count[q], q++)
                for (int half = 0; half < LANES; half += WIDTH) {
                    V s = zero();
                    for (int k = 0; k < a.column_count[q]; k++)
                        s = fma(all(across[k]), load(a.scratch + (a.column_first[q] + k) * LANES + half), s);
                    store(y + q * LANES + half, s);
                }
        }
    }
}

}  // namespace

void EPX_PART(gathers)(Kernels& table) {
    table.gather = gather;
    table.resample = resample;
}

}  // namespace epicortex
