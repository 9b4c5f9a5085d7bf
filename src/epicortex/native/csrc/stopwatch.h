// Where the time of training and scoring goes, for whoever asks; one comparison a part for everybody else.
#pragma once
#include <chrono>
#include <cstddef>
#include <vector>

namespace epicortex {

enum class Work : int {
    pack, gather, conv, conv_weights, conv_input, conv_bias, statistics, pointwise, pointwise_back, norm_back, pool,
    pool_back, full, full_input, full_weights, loss, optimiser, count
};

class Stopwatch {
public:
    static constexpr int KINDS = static_cast<int>(Work::count);

    void start(size_t rows) { seconds_.assign(rows * KINDS, 0.0); }
    void begin() {
        if (!seconds_.empty()) last_ = Clock::now();
    }
    // What has passed since the last call went into this.
    void lap(size_t row, Work work) {
        if (seconds_.empty()) return;
        const auto now = Clock::now();
        seconds_[row * KINDS + static_cast<size_t>(work)] += std::chrono::duration<double>(now - last_).count();
        last_ = now;
    }
    const std::vector<double>& seconds() const { return seconds_; }  // [rows][KINDS]

private:
    using Clock = std::chrono::steady_clock;
    Clock::time_point last_{};
    std::vector<double> seconds_;
};

}  // namespace epicortex
