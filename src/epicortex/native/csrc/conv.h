// The plan of one irregular convolution: which tiles there are, and which entries of kernels they take.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels.h"

namespace epicortex {

struct Shape2 {
    int height, width;
};

// How the gradient of a layer's input is finished.
struct BackFinish {
    Finish finish = Finish::plain;
    View act{};  // results of the leaky rectifier below
    float slope = 0;
};

class Conv {
public:
    // Kernels are centred, whatever their shapes: padding is half of each.
    Conv(const Kernels& kernels, int channels, int height, int width, int stride_down, int stride_across,
         std::vector<Shape2> shapes);

    int channels, height, width, maps, down, across, out_height, out_width;
    int half_height = 0, half_width = 0;               // the border of zeros that the input needs
    int top = 0, left = 0, bottom = 0, right = 0;      // the one that gradients of the output need

    // Entries in the documented order: by kernel, channel, row, column.
    size_t entries() const { return natural_.size(); }
    size_t back_entries() const { return back_.size(); }
    size_t natural(size_t packed) const { return static_cast<size_t>(natural_[packed]); }
    int map_of(size_t packed) const { return map_of_[packed]; }

    void pack_back(const float* natural, float* packed) const;

    void forward(View x, const float* packed, const float* bias, View out, Finish finish, float slope);
    void backward_input(View dy, const float* packed, View dx, const BackFinish& finish);
    // adds to sums, in packed order
    void backward_weight(View x, View dy, float* sums);

private:
    struct Group {  // maps with kernels of one shape, as many as one tile can have
        std::vector<int> maps;
        int height, width, taps;
        size_t start;  // of its entries, [tap][map]; taps are (channel, row, column)
        int part, span;  // maps and taps at a time for the gradient of the kernels
    };
    struct Phase {  // positions of the input that the same taps reach
        int first_row, first_column, rows, width, out_row, out_column;
        std::vector<std::array<int, 3>> taps;  // map, how far up, how far left
        size_t start;
    };
    void offsets(View x);
    void row_of_tiles(int outputs, int positions, Tile tile, int limit) const;
    void choose_gradient_tile(Group& group) const;

    const Kernels& kernels_;
    std::vector<Shape2> shapes_;
    std::vector<Group> groups_;
    std::vector<Phase> phases_;
    std::vector<std::pair<int, int>> blocks_;  // of channels: first and count
    std::vector<int32_t> natural_, map_of_;    // of each packed entry: its place in the documented order, its map
    std::vector<int32_t> back_;                // of each entry packed for gradients of the input: its documented place
    std::vector<int32_t> offsets_;
};

}  // namespace epicortex
