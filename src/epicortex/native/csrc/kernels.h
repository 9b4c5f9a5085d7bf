// The micro-kernels as a table of functions, one table for each instruction set, chosen at run time.
//
// Everything works on blocks of 16 samples: a value of a block is [channels][rows][columns][16]. Plain structs and
// pointers only: this header is shared by code that is compiled for different machines, and must not instantiate
// anything from the standard library that a linker could take from the wrong one.
#pragma once
#include <cstdint>

namespace epicortex {

constexpr int LANES = 16;  // samples in a block, whatever the machine

// One block of a value: where its position (0, 0) of channel 0 is, and its strides in floats. A position is LANES.
struct View {
    float* p;
    int64_t channel, row;
};

// ---- tiles: out[g][p] = bias[g] + Σ over taps t of w[t][g] · x[off[t] + p · step] ----------------------------------
enum class Finish : int {
    plain,           // the sum
    leaky,           // a leaky rectifier of it
    add,             // added to what is there
    back,            // times the derivative of the leaky rectifier whose results `act` holds
    add_back,        // added to what is there, then as `back`
};
struct Tile {
    const float* x;
    int64_t step;              // floats between neighbouring positions of x
    const int32_t* off;        // of each tap
    const float* w;            // [taps][G]
    int taps;
    const float* bias;         // [G]
    float* out;
    const int64_t* maps;       // where each of the G outputs begins
    int64_t out_step;          // floats between its positions
    const float* act;
    const int64_t* act_maps;
    int64_t act_step;
    float slope;
    Finish finish;
    int rows;                  // and from row to row:
    int64_t x_row, out_row, act_row;
};
using TileFunction = void (*)(const Tile&);

// ---- weight gradients: out[m][g] += Σ over positions and lanes of x[off[m] + position] · dy[maps[g] + position] -----
struct Gradient {
    const float *x, *dy;
    int64_t x_row, x_step, dy_row;
    int rows, width;
    const int32_t* off;     // of the M taps
    const int64_t* maps;    // where each of the G gradients begins
    float* out;             // [M][stride], of which G are computed
    int stride;
};
using GradientFunction = void (*)(const Gradient&);

constexpr int MOST_MAPS = 9, MOST_POSITIONS = 28, MOST_TAPS = 12;

// ---- full layers: weights [inputs][nodes] ---------------------------------------------------------------------------
struct Run {                // neighbouring inputs
    int64_t at;             // floats from the block's beginning
    int count;
};
struct Full {
    const Run* runs;
    int run_count;
    int nodes;
    const float* w;         // [inputs][nodes]
};

// ---- pointwise: y = activation(a · z + b + residual) ----------------------------------------------------------------
enum class Activation : int { none, leaky, elu, gelu, silu, tanh, smooth, count };
struct Pointwise {
    View z, residual, y;    // residual.p may be null
    int channels, height, width;
    const float *a, *b;     // of each channel; null without normalisation
    Activation activation;
    float slope;
};
struct PointwiseBack {
    Pointwise forward;
    View dy;                // gradient of y; with normalisation overwritten by that of a · z + b
    View dz, dresidual;     // dz only without normalisation; dresidual.p may be null
    bool add_dz, add_dresidual;
    const float *mean, *inverse;  // of each channel, with normalisation
    float* sums;            // [channels][2]: Σ dv and Σ dv · (z − mean) · inverse
};
struct NormBack {           // dz = a · dv + p · (z − mean) + q in the first `count` lanes, 0 in the others
    View dv, z, dz;
    int channels, height, width, count;
    const float *a, *mean, *p, *q;
    bool add;
};
struct Statistics {         // of the first `count` lanes of each channel: the sum, and Σ (z − own mean)²
    View z;
    int channels, height, width, count;
    float* out;             // [channels][2]
};

// ---- average pooling of any size to any other -----------------------------------------------------------------------
struct Pool {
    View x, y;              // or their gradients
    int channels, height, width, rows, columns;
    float factor;
    bool add;
};

// ---- losses ---------------------------------------------------------------------------------------------------------
enum class LossKind : int { softmax, sigmoid, squared, count };
struct Loss {
    LossKind kind;
    const float* z;         // [outputs][16]
    float* dz;              // null where only the losses are asked for
    int outputs, count;     // of samples
    const int64_t* labels;  // softmax
    const float* targets;   // otherwise [count][outputs]
    const float* weights;   // of classes, or null
    float smoothing;
    double scale;           // what one sample's loss counts for in the gradient
    double* losses;         // [count]
};

// ---- the way in -----------------------------------------------------------------------------------------------------
struct Gather {
    const void* data;       // [samples][channels][height][width]
    bool bytes;             // uint8, else float
    const int64_t* rows;    // of the block's samples
    int count;
    int channels, height, width;    // as stored
    int out_height, out_width;
    const float *scale, *offset;    // of each channel: x · scale + offset
    const int32_t* moves;   // [count][2] or null: where the window begins; beyond an edge, the edge is repeated
    const uint8_t* flips;   // [count] or null: mirrored in the last dimension
    uint8_t* scratch;       // gather_scratch() bytes
    View x;
};
struct Resample {           // x [channels][height][width] to y [channels][rows][columns], weights of separable windows
    View x, y;
    int channels, height, width, rows, columns;
    const int32_t *row_first, *row_count, *column_first, *column_count;
    const float *row_weights, *column_weights;  // one after another
    float* scratch;         // [width][16]
};

// ---- optimisers, element by element ---------------------------------------------------------------------------------
enum class OptimiserKind : int { sgd, adadelta, adam, adamw, orthogonal, count };
struct Optimiser {
    OptimiserKind kind;
    int64_t n;
    float *parameters, *first, *second;
    const float* gradient;
    const float* decayed;   // [n] factors of weight decay, or null for 1
    float rate, decay;
    float momentum, dampening;  // sgd
    bool nesterov, first_step;
    float rho, epsilon;         // adadelta; epsilon of adam, too
    float beta1, beta2, correction1, correction2;  // adam: rate / (1 − β1^t), √(1 − β2^t)
};

// ---- matrices [rows][stride] made orthogonal ------------------------------------------------------------------------
struct Orthogonal {
    float *x, *y;           // x: no singular value above 1, no more rows than columns, 0 beyond them; y: room for as many
    float *a, *b;           // [rows][square], 0
    int rows, stride, square;  // strides are multiples of LANES
    int steps;
};

struct Kernels {
    const char* name;
    int most_maps;                                   // G at most
    int most_positions[MOST_MAPS + 1];               // P at most, by G
    int most_taps[MOST_MAPS + 1];                    // M at most, by G
    TileFunction tile[MOST_MAPS + 1][MOST_POSITIONS + 1];
    GradientFunction gradient[MOST_MAPS + 1][MOST_TAPS + 1];

    float (*add_up)(const float* dy, int64_t row, int rows, int width);  // the sum over positions and lanes
    void (*full_forward)(const Full&, const float* x, const float* bias, float* out);
    // gradient of the inputs; `act` and `slope` as in Finish::back
    void (*full_back)(const Full&, const float* dy, float* dx, const Run* dx_runs, const float* act, const Run* act_runs,
                      float slope, Finish finish);
    void (*full_gradient)(const Full&, const float* x, int64_t x_block, const float* dy, int64_t dy_block, int blocks,
                          float* dw, float* dbias);
    void (*pointwise)(const Pointwise&);
    void (*pointwise_back)(const PointwiseBack&);
    void (*norm_back)(const NormBack&);
    void (*statistics)(const Statistics&);
    void (*pool)(const Pool&);
    void (*pool_back)(const Pool&);
    void (*loss)(const Loss&);
    void (*gather)(const Gather&);
    void (*resample)(const Resample&);
    void (*optimise)(const Optimiser&);
    void (*orthogonalise)(const Orthogonal&);
    void (*average)(int64_t n, float* average, const float* values, float weight);
    double (*peak)(int64_t rounds);
};

const Kernels* avx512_kernels();    // null where they are not built
const Kernels* avx2_kernels();
const Kernels* portable_kernels();

inline int64_t gather_scratch(int64_t height, int64_t width, int64_t out_width) {
    const int64_t plane = height * width, lines = 2 * out_width;  // a channel of 16 samples, or a row of them twice
    return 16 * ((plane > lines ? plane : lines) + 32) * static_cast<int64_t>(sizeof(float));
}

}  // namespace epicortex
