// A program as it comes over the C boundary: a list of whole numbers, checked before anything is built from it.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "conv.h"
#include "kernels.h"

namespace epicortex {

// What is wrong with what the caller gave, in one line.
struct Refused : std::runtime_error {
    using std::runtime_error::runtime_error;
};

constexpr int64_t MOST_CHANNELS = 1 << 20;  // and nodes, and outputs

enum class OperationKind : int { conv, norm, activation, add, pool, full, count };

// Reads the slots `input` (and `other`), gives slot `index + 1`; slot 0 is the input of the network.
struct Operation {
    OperationKind kind;
    int input = 0, other = -1;
    std::vector<Shape2> kernels;          // conv
    int down = 1, across = 1;
    bool bias = false;                    // conv, full
    int nodes = 0;                        // full
    float epsilon = 0, momentum = 0;      // norm
    Activation activation = Activation::none;
    float slope = 0;
    int rows = 1, columns = 1;            // pool
    float factor = 1;
    // where its numbers are in the parameters (weights, then biases) and in the state (means, then variances)
    int64_t weights = 0, weight_count = 0, bias_count = 0, state = 0;
};

struct Extent {
    int channels, height, width;
    int64_t size() const { return static_cast<int64_t>(channels) * height * width; }
};

struct Program {
    std::vector<Extent> slots;
    std::vector<int> readers;             // of each slot
    std::vector<Operation> operations;
    LossKind loss = LossKind::softmax;
    float smoothing = 0;
    std::vector<float> class_weights;     // none: all 1
    int64_t parameters = 0, state = 0;

    int outputs() const { return slots.back().channels; }
};

// Format, all int64; a real number is the bits of a double:
//   version, channels, height, width, loss, smoothing, number of class weights, class weights…, operations,
//   then each operation: kind, how many numbers follow, the numbers
//     conv        input, stride down, stride across, bias?, kernels, then height and width of each
//     norm        input, epsilon, momentum
//     activation  input, kind, slope
//     add         input, other
//     pool        input, rows, columns, factor
//     full        input, nodes, bias?
constexpr int64_t FORMAT = 3;
Program read_program(const int64_t* numbers, int64_t count);

}  // namespace epicortex
