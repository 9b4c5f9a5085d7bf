// A program made ready to run: steps of fused operations, the order they run in, and the memory they need.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "conv.h"
#include "kernels.h"
#include "program.h"
#include "stopwatch.h"

namespace epicortex {

// Floats on a cache line, zero at first.
class Buffer {
public:
    Buffer() = default;
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    Buffer(Buffer&& o) noexcept;
    Buffer& operator=(Buffer&& o) noexcept;
    ~Buffer();
    void reset(int64_t count);  // throws std::bad_alloc
    float* data() const { return p_; }
    int64_t size() const { return n_; }

private:
    float* p_ = nullptr;
    int64_t n_ = 0;
};

struct Borders {
    int top = 0, left = 0, bottom = 0, right = 0;
    void widen(const Borders& o);
};

// A moment in a batch: a phase, and a part within it.
struct Moment {
    int phase, part;
    bool operator<(const Moment& o) const { return phase != o.phase ? phase < o.phase : part < o.part; }
};

// Where the blocks of one value, or of its gradient, are kept.
struct Storage {
    float* base = nullptr;
    int64_t channel = 0, row = 0, block = 0, origin = 0;
    bool every = false;  // a place for each block of a batch; else one for all
    bool used = false;
    Moment first{}, last{};
    void lay_out(const Extent& e, const Borders& borders);
    void use(Moment moment);
    View view(int b) const { return {base + origin + (every ? b * block : 0), channel, row}; }
};

// Memory of one layout, for all who need it at different times: what is small enough stays in a cache.
struct Memory {
    Buffer buffer;
    int64_t block = 0;  // the largest of its tenants
    std::vector<Storage*> tenants;
    bool takes(const Storage& s) const;
    void ready(int blocks);
};

struct Value {
    Extent extent;
    bool learns = false;  // whether anything below it has parameters: it needs a gradient
    int producer = -1;    // step
    Storage data, gradient, scored;
};

struct Norm {
    int channels;
    int64_t gamma, beta, state;
    float epsilon, momentum;
    std::vector<float> block, mean, inverse, a, b, p, q;
    std::vector<double> count, average, squares, sums;
};

enum class StepKind : int { conv, pointwise, pool, full };

struct Step {
    StepKind kind;
    int in, other = -1, out;
    int64_t weights = 0, bias = -1;           // in the parameters
    int conv = -1, norm = -1;                 // their numbers
    Activation activation = Activation::none; // conv: none or leaky
    float slope = 0;
    float factor = 1;                         // pool
    int nodes = 0;                            // full
    std::vector<Run> runs, gradient_runs, scored_runs;  // full: of its input, of that's gradient, and in scoring
    // backward: whether it adds to the gradients of `in` and `other`, which others have written before
    bool add_in = false, add_other = false;
    bool mask_in = false;                     // it is the last to write them, and takes the rectifier below along
    bool mask_own = false;                    // nobody has taken its own rectifier along
    // scoring
    int folded = -1;                          // conv: a norm that its weights take in
    int score_out = -1;                       // conv: where it writes when the step after it has nothing left to do
    Activation score_activation = Activation::none;
    float score_slope = 0;
    bool skipped = false, plain = false;      // pointwise: nothing left; no norm left
};

enum class PartKind : int { forward, statistics, loss, back, back_sums, back_norm };
struct Part {
    PartKind kind;
    int step;
};
// Parts that run for one block after the other, and then what needs all blocks.
struct Phase {
    std::vector<Part> parts;
    int norm_forward = -1, norm_back = -1;
};

// Samples to work on; see the C interface.
struct Batch {
    const void* data;
    int64_t samples, channels, height, width;
    int32_t bytes, crop;
    const int64_t* rows;
    int64_t count;
    const float *scale, *offset;
    const int32_t* moves;
    const uint8_t* flips;
    const int64_t* labels;
    const float* targets;
};

class Network {
public:
    Network(Program program, const Kernels& kernels);

    const Program& program() const { return program_; }
    const Kernels& kernels() const { return kernels_; }
    int64_t workspace() const;

    // The loss of a batch, its gradients; running estimates of norms in `state` move.
    double gradients(const Batch& batch, const float* parameters, float* state, float* gradient);
    // Where the time goes: a row for each step, in order, and one for what belongs to none.
    void start_times() { watch_.start(steps_.size() + 1); }
    const std::vector<double>& times() const { return watch_.seconds(); }
    void lap(Work work) { watch_.lap(steps_.size(), work); }
    // Outputs [count][outputs] and losses [count]; either may be null.
    void score(const Batch& batch, const float* parameters, const float* state, float* outputs, float* losses);

private:
    void make_steps();
    void fold();
    void make_phases();
    void make_memory();
    void find_uses();
    void lay_out();
    Borders borders_above(const Value& value) const;
    void share(std::vector<Storage*> storages, std::vector<Memory>& memories) const;
    void make_scoring();
    void make_runs();
    void ready(int blocks);
    void check(const Batch& batch, bool targets) const;
    void gather(const Batch& batch, int b, View to);
    void run(const Part& part, const Batch& batch, int b, const float* parameters, float* gradient);
    void forward(const Step& step, int b, const float* parameters);
    void pool(const Step& step, View in, View out) const;
    void full(const Step& step, View in, View out, const std::vector<Run>& runs, const float* parameters) const;
    void back(const Step& step, int b, const float* parameters, float* gradient);
    void score_step(const Step& step, const float* parameters);
    void finish_statistics(Norm& norm, const float* parameters, float* state);
    void finish_sums(Norm& norm, const Step& step, float* gradient);
    void pack(const float* parameters, const float* state, bool scoring);
    void loss(const Batch& batch, int b, const float* z, float* dz, double* losses);
    Pointwise pointwise(const Step& step, View z, View residual, View y) const;
    Pointwise pointwise(const Step& step, int b) const;

    Program program_;
    const Kernels& kernels_;
    std::vector<Value> values_;
    std::vector<Step> steps_;
    std::vector<Norm> norms_;
    std::vector<Phase> phases_;
    std::vector<std::unique_ptr<Conv>> convs_;
    std::vector<Buffer> packed_, packed_back_, sums_, biases_;  // of each convolution
    std::vector<float> no_bias_;
    std::vector<Memory> memories_, scored_;
    Buffer large_;                     // a block as stored, where it is made smaller
    std::vector<uint8_t> scratch_;
    std::vector<float> line_;
    int blocks_ = 0;
    Stopwatch watch_;
    double weight_ = 0, total_ = 0;    // Σ of the samples' weights; Σ of their losses
};

}  // namespace epicortex
