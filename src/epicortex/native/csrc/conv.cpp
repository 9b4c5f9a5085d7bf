#include "conv.h"

#include <algorithm>
#include <map>

namespace epicortex {
namespace {

constexpr int KEPT = 384;  // lines of 64 bytes that the first-level cache keeps beside others
constexpr float ZEROS[MOST_MAPS] = {};

// Lines of rows that the next row of tiles will be the first to read.
void fetch(View v, int channels, int row, int rows, int left, int width) {
    for (int c = 0; c < channels; c++)
        for (int r = row; r < row + rows; r++) {
            const float* p = v.p + c * v.channel + r * v.row + static_cast<int64_t>(left) * LANES;
            for (int i = 0; i < width; i++) __builtin_prefetch(p + i * LANES, 0, 2);
        }
}

// n in nearly equal parts of at most `most`
template <class F>
void in_parts(int n, int most, F f) {
    for (int done = 0; done < n;) {
        const int rest = n - done, parts = (rest + most - 1) / most, count = (rest + parts - 1) / parts;
        f(done, count);
        done += count;
    }
}

int remainder(int a, int b) { return (a % b + b) % b; }

}  // namespace

Conv::Conv(const Kernels& kernels, int c, int h, int w, int stride_down, int stride_across, std::vector<Shape2> shapes)
    : channels(c), height(h), width(w), maps(static_cast<int>(shapes.size())), down(stride_down), across(stride_across),
      out_height((h - 1) / stride_down + 1), out_width((w - 1) / stride_across + 1), kernels_(kernels),
      shapes_(std::move(shapes)) {
    std::vector<int32_t> first_entry;  // of each map, in the documented order
    std::map<std::pair<int, int>, std::vector<int>> by_shape;
    int32_t count = 0;
    for (int m = 0; m < maps; m++) {
        const Shape2 s = shapes_[m];
        half_height = std::max(half_height, s.height / 2), half_width = std::max(half_width, s.width / 2);
        by_shape[{s.height, s.width}].push_back(m);
        first_entry.push_back(count);
        count += channels * s.height * s.width;
    }
    const auto entry = [&](int m, int channel, int up, int left) {  // counted from the centre
        const Shape2 s = shapes_[m];
        return first_entry[m] + (channel * s.height + up + s.height / 2) * s.width + left + s.width / 2;
    };
    for (const auto& [shape, same] : by_shape)
        in_parts(static_cast<int>(same.size()), kernels_.most_maps, [&, shape = shape, &same = same](int first, int n) {
            Group g{{same.begin() + first, same.begin() + first + n}, shape.first, shape.second,
                    channels * shape.first * shape.second, natural_.size(), 1, 1};
            for (int ch = 0; ch < channels; ch++)
                for (int r = -(g.height / 2); r <= g.height / 2; r++)
                    for (int q = -(g.width / 2); q <= g.width / 2; q++)
                        for (int m : g.maps) natural_.push_back(entry(m, ch, r, q)), map_of_.push_back(m);
            choose_gradient_tile(g);
            groups_.push_back(std::move(g));
        });
    in_parts(channels, kernels_.most_maps, [&](int first, int n) { blocks_.emplace_back(first, n); });
    for (int fh = 0; fh < down; fh++)
        for (int fw = 0; fw < across; fw++) {
            Phase f{};
            // rows h of the input with (h + half) ≡ fh: reached from output row i by kernel row r where i·down + r − half = h
            f.first_row = remainder(fh - half_height, down), f.first_column = remainder(fw - half_width, across);
            if (f.first_row >= height || f.first_column >= width) continue;
            f.rows = (height - 1 - f.first_row) / down + 1, f.width = (width - 1 - f.first_column) / across + 1;
            f.out_row = (f.first_row + half_height - fh) / down;
            f.out_column = (f.first_column + half_width - fw) / across;
            f.start = back_.size();
            std::vector<std::array<int, 2>> from_centre;
            for (int m = 0; m < maps; m++) {
                const Shape2 s = shapes_[m];
                for (int r = half_height - s.height / 2; r <= half_height + s.height / 2; r++)
                    for (int q = half_width - s.width / 2; q <= half_width + s.width / 2; q++) {
                        if (remainder(r - fh, down) || remainder(q - fw, across)) continue;
                        const int up = (r - fh) / down, to_left = (q - fw) / across;
                        f.taps.push_back({m, up, to_left});
                        from_centre.push_back({r - half_height, q - half_width});
                        top = std::max(top, up - f.out_row), left = std::max(left, to_left - f.out_column);
                        bottom = std::max(bottom, f.out_row + f.rows - 1 - up - (out_height - 1));
                        right = std::max(right, f.out_column + f.width - 1 - to_left - (out_width - 1));
                    }
            }
            for (auto [first, n] : blocks_)
                for (size_t t = 0; t < f.taps.size(); t++)
                    for (int ch = first; ch < first + n; ch++)
                        back_.push_back(entry(f.taps[t][0], ch, from_centre[t][0], from_centre[t][1]));
            phases_.push_back(std::move(f));
        }
}

void Conv::pack_back(const float* natural, float* packed) const {
    for (size_t i = 0; i < back_.size(); i++) packed[i] = natural[back_[i]];
}

void Conv::offsets(View x) {
    offsets_.clear();
    for (const Group& g : groups_)
        for (int c = 0; c < channels; c++)
            for (int i = -(g.height / 2); i <= g.height / 2; i++)
                for (int j = -(g.width / 2); j <= g.width / 2; j++)
                    offsets_.push_back(static_cast<int32_t>(c * x.channel + i * x.row + j * LANES));
}

// A row of positions cut into tiles of nearly the same length.
void Conv::row_of_tiles(int outputs, int positions, Tile a, int limit) const {
    in_parts(positions, std::min(kernels_.most_positions[outputs], limit), [&](int, int p) {
        kernels_.tile[outputs][p](a);
        a.x += p * a.step;
        a.out += p * a.out_step;
        a.act += p * a.act_step;
    });
}

void Conv::forward(View x, const float* packed, const float* bias, View out, Finish finish, float slope) {
    offsets(x);
    // Much work for each line: row after row, with lines asked for ahead. Little: tile after tile, down all rows.
    const bool busy = entries() >= 100 * static_cast<size_t>(channels);
    const int rows = busy ? 1 : out_height;
    for (int row = 0; row < out_height; row += rows) {
        const int32_t* o = offsets_.data();
        if (busy && row + 1 < out_height)
            fetch(x, channels, row * down + half_height + 1, down, -half_width, width + 2 * half_width);
        for (const Group& g : groups_) {
            int64_t at[MOST_MAPS];
            float biases[MOST_MAPS] = {};
            const int n = static_cast<int>(g.maps.size());
            for (int i = 0; i < n; i++) {
                at[i] = g.maps[i] * out.channel;
                if (bias) biases[i] = bias[g.maps[i]];
            }
            Tile a{};
            a.x = x.p + static_cast<int64_t>(row) * down * x.row, a.step = static_cast<int64_t>(across) * LANES;
            a.off = o, a.w = packed + g.start, a.taps = g.taps, a.bias = biases;
            a.out = out.p + row * out.row, a.maps = at, a.out_step = LANES;
            a.act = a.out, a.act_maps = at, a.finish = finish, a.slope = slope;
            a.rows = rows, a.x_row = static_cast<int64_t>(down) * x.row, a.out_row = out.row;
            // down a column of tiles the first-level cache keeps the rows that the next row of tiles reads again
            const bool any = busy || g.height == 1;
            row_of_tiles(n, out_width, a, any ? MOST_POSITIONS : std::max(7, KEPT / (channels * g.height)));
            o += g.taps;
        }
    }
}

void Conv::backward_input(View dy, const float* packed, View dx, const BackFinish& finish) {
    const bool masked = finish.finish == Finish::back || finish.finish == Finish::add_back;
    const View act = masked ? finish.act : dx;
    const bool busy = entries() >= 100 * static_cast<size_t>(maps);
    for (const Phase& f : phases_) {
        const int taps = static_cast<int>(f.taps.size()), rows = busy ? 1 : f.rows;
        offsets_.clear();
        for (const auto& t : f.taps)
            offsets_.push_back(static_cast<int32_t>(t[0] * dy.channel - t[1] * dy.row - t[2] * LANES));
        for (int r = 0; r < f.rows; r += rows) {
            if (busy && r + 1 < f.rows)
                fetch(dy, maps, std::min(f.out_row + r + 1 + half_height / down, out_height - 1), 1, 0, out_width);
            const float* w = packed + f.start;
            const int h = f.first_row + r * down;
            for (auto [first, n] : blocks_) {
                int64_t at[MOST_MAPS], act_at[MOST_MAPS];
                for (int i = 0; i < n; i++) at[i] = (first + i) * dx.channel, act_at[i] = (first + i) * act.channel;
                Tile a{};
                a.x = dy.p + static_cast<int64_t>(f.out_row + r) * dy.row + static_cast<int64_t>(f.out_column) * LANES;
                a.step = LANES, a.off = offsets_.data(), a.w = w, a.taps = taps, a.bias = ZEROS;
                a.out = dx.p + h * dx.row + f.first_column * LANES, a.maps = at;
                a.out_step = static_cast<int64_t>(across) * LANES;
                a.act = act.p + h * act.row + f.first_column * LANES, a.act_maps = act_at, a.act_step = a.out_step;
                a.finish = finish.finish, a.slope = finish.slope;
                a.rows = rows, a.x_row = dy.row, a.out_row = down * dx.row, a.act_row = down * act.row;
                row_of_tiles(n, f.width, a, MOST_POSITIONS);
                w += static_cast<size_t>(taps) * n;
            }
        }
    }
}

// As few lines from the second-level cache for each product as registers allow.
void Conv::choose_gradient_tile(Group& g) const {
    double least = 1e9;
    const int area = g.height * g.width, count = static_cast<int>(g.maps.size());
    for (int n = 1; n <= count; n++) {
        const int most = kernels_.most_taps[n], parts = (count + n - 1) / n, even = (count + parts - 1) / parts;
        if (even != n) continue;
        int taps = most, lines = 1;
        if (area <= most) taps = std::min(most / area, channels) * area, lines = taps / g.width;
        else if (g.width <= most) taps = std::min(most / g.width, g.height) * g.width, lines = taps / g.width;
        const double products = static_cast<double>(taps) * n;
        const double cost = std::max({1.0, 2.5 * (lines + n) / products, 1.0 * (taps + n) / products, 4.0 / products});
        if (cost < least - 1e-9) least = cost, g.part = n, g.span = taps;
    }
}

void Conv::backward_weight(View x, View dy, float* sums) {
    offsets(x);
    const int32_t* o = offsets_.data();
    for (const Group& g : groups_) {
        const int count = static_cast<int>(g.maps.size());
        in_parts(count, g.part, [&](int first, int n) {
            int64_t at[MOST_MAPS];
            for (int i = 0; i < n; i++) at[i] = g.maps[first + i] * dy.channel;
            for (int done = 0; done < g.taps;) {
                const int taps = std::min(g.span, g.taps - done);
                Gradient a{};
                a.x = x.p, a.dy = dy.p, a.x_row = static_cast<int64_t>(down) * x.row;
                a.x_step = static_cast<int64_t>(across) * LANES, a.dy_row = dy.row;
                a.rows = out_height, a.width = out_width, a.off = o + done, a.maps = at;
                a.out = sums + g.start + static_cast<size_t>(done) * count + first, a.stride = count;
                kernels_.gradient[n][taps](a);
                done += taps;
            }
        });
        o += g.taps;
    }
}

}  // namespace epicortex
