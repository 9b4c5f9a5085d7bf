#include "interface.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "network.h"

#if defined(__x86_64__) || defined(_M_X64)
#include <xmmintrin.h>
#define EPX_X86 1
#endif

using namespace epicortex;

static_assert(sizeof(EpxBatch) == sizeof(Batch), "one layout on both sides of the boundary");
static_assert(offsetof(EpxBatch, targets) == offsetof(Batch, targets), "one layout on both sides of the boundary");

namespace {

thread_local std::string message;

constexpr int ORTHOGONAL_STEPS = 5;
constexpr int64_t MOST_SIDE = int64_t{1} << 27, MOST_ENTRIES = int64_t{1} << 27;

// Numbers too small for a normal float count as 0 while we compute, and as before when we are done.
class FlushedDenormals {
public:
#if defined(EPX_X86)
    FlushedDenormals() : before_(_mm_getcsr()) { _mm_setcsr(before_ | 0x8040); }
    ~FlushedDenormals() { _mm_setcsr(before_); }
    FlushedDenormals(const FlushedDenormals&) = delete;

private:
    unsigned before_;
#elif defined(__aarch64__)
    FlushedDenormals() {
        asm volatile("mrs %0, fpcr" : "=r"(before_));
        asm volatile("msr fpcr, %0" : : "r"(before_ | (uint64_t{1} << 24)));
    }
    ~FlushedDenormals() { asm volatile("msr fpcr, %0" : : "r"(before_)); }
    FlushedDenormals(const FlushedDenormals&) = delete;

private:
    uint64_t before_;
#else
    FlushedDenormals() {}
#endif
};

const Kernels* kernels_of(const std::string& name) {
#if defined(EPX_X86) && defined(__GNUC__)
    __builtin_cpu_init();
    if (name == "avx512" && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd"))
        return avx512_kernels();
    if (name == "avx2" && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
        __builtin_cpu_supports("bmi2"))
        return avx2_kernels();
#endif
    return name == "portable" ? portable_kernels() : nullptr;
}

const Kernels& chosen(const char* name) {
    if (name && *name) {
        const Kernels* kernels = kernels_of(name);
        if (!kernels)
            throw Refused(std::string("this machine or build has no instruction set '") + name + "'; there are " +
                          epx_instruction_sets());
        return *kernels;
    }
    for (const char* best : {"avx512", "avx2"})
        if (const Kernels* kernels = kernels_of(best)) return *kernels;
    return *portable_kernels();
}

// Whatever happens inside becomes a code and a message.
template <class F>
int32_t guarded(F f) {
    try {
        const FlushedDenormals flushed;
        f();
        return EPX_OK;
    } catch (const Refused& error) {
        message = error.what();
        return EPX_REFUSED;
    } catch (const std::bad_alloc&) {
        message = "out of memory";
        return EPX_MEMORY;
    } catch (const std::exception& error) {
        message = error.what();
        return EPX_FAILED;
    } catch (...) {
        message = "an unknown failure";
        return EPX_FAILED;
    }
}

template <class T>
T* needed(T* pointer, const char* what) {
    if (!pointer) throw Refused(std::string("there is no ") + what);
    return pointer;
}

// The momentum of a matrix, made orthogonal, is its step; decay is apart from it.
void orthogonal_step(const Kernels& kernels, const Optimiser& o, const EpxMatrix& m, float rate, float decay) {
    thread_local std::vector<float> room;
    const bool upright = m.rows > m.columns;  // then it lies on its side
    const int64_t rows = upright ? m.columns : m.rows, columns = upright ? m.rows : m.columns;
    Orthogonal own{};
    own.rows = static_cast<int>(rows), own.steps = ORTHOGONAL_STEPS;
    own.stride = static_cast<int>((columns + LANES - 1) / LANES * LANES);
    own.square = static_cast<int>((rows + LANES - 1) / LANES * LANES);
    const int64_t size = rows * own.stride, square = rows * own.square;
    room.assign(static_cast<size_t>(2 * (size + square)), 0.0f);
    own.x = room.data(), own.y = own.x + size, own.a = own.y + size, own.b = own.a + square;
    float *w = o.parameters + m.first, *memory = o.first + m.first;
    const float* g = o.gradient + m.first;
    const auto place = [&](int64_t i) {
        const int64_t row = m.places[i] / m.columns, column = m.places[i] % m.columns;
        return upright ? column * own.stride + row : row * own.stride + column;
    };
    double sum = 0;
    for (int64_t i = 0; i < m.count; i++) {
        memory[i] = o.momentum * memory[i] + g[i];
        const float ahead = o.nesterov ? g[i] + o.momentum * memory[i] : memory[i];
        own.x[place(i)] = ahead;
        sum += static_cast<double>(ahead) * ahead;
    }
    const float factor = static_cast<float>(1.0 / (std::sqrt(sum) + 1e-12));
    for (int64_t i = 0; i < size; i++) own.x[i] *= factor;
    kernels.orthogonalise(own);
    const double tall = static_cast<double>(m.rows) / static_cast<double>(m.columns);
    const float step = rate * static_cast<float>(std::sqrt(tall > 1 ? tall : 1.0)), kept = 1.0f - rate * decay;
    for (int64_t i = 0; i < m.count; i++) w[i] = w[i] * kept - step * own.x[place(i)];
}

void check(const EpxMatrix& m, int64_t from, int64_t to) {
    if (m.count < 1 || m.first < from || m.count > to - m.first) throw Refused("a matrix is not among the parameters");
    if (m.rows < 1 || m.columns < 1 || m.rows > MOST_SIDE || m.columns > MOST_SIDE || m.rows * m.columns > MOST_ENTRIES)
        throw Refused("the size of a matrix is out of range");
    needed(m.places, "list of places in a matrix");
    for (int64_t i = 0; i < m.count; i++)
        if (m.places[i] < 0 || m.places[i] >= m.rows * m.columns) throw Refused("a weight is outside of its matrix");
}

// Matrices take orthogonal steps, what is between them those of SGD.
void orthogonal(const Kernels& kernels, const EpxOptimiser& o, Optimiser own) {
    if (o.matrix_count < 0) throw Refused("a negative number of matrices");
    if (o.matrix_count) needed(o.matrices, "list of matrices");
    int64_t done = 0;
    for (int64_t i = 0; i < o.matrix_count; i++) {
        check(o.matrices[i], done, own.n);
        done = o.matrices[i].first + o.matrices[i].count;
    }
    own.kind = OptimiserKind::sgd;
    done = 0;
    for (int64_t i = 0; i <= o.matrix_count; i++) {
        const bool last = i == o.matrix_count;
        Optimiser part = own;
        part.n = (last ? own.n : o.matrices[i].first) - done;
        part.parameters += done, part.gradient += done, part.first += done;
        if (part.decayed) part.decayed += done;
        kernels.optimise(part);
        if (last) break;
        orthogonal_step(kernels, own, o.matrices[i], o.matrix_rate, o.matrix_decay);
        done = o.matrices[i].first + o.matrices[i].count;
    }
}

void optimise(const Kernels& kernels, const EpxOptimiser& o, int64_t count, float* parameters, const float* gradient) {
    if (o.kind < 0 || o.kind >= static_cast<int32_t>(OptimiserKind::count)) throw Refused("there is no such optimiser");
    const auto kind = static_cast<OptimiserKind>(o.kind);
    const bool one_memory = kind == OptimiserKind::sgd || kind == OptimiserKind::orthogonal;
    if ((kind != OptimiserKind::sgd || o.momentum != 0.0f) && !o.first) throw Refused("the optimiser has no memory");
    if (!one_memory && !o.second) throw Refused("the optimiser has no second memory");
    Optimiser own{};
    own.kind = kind, own.n = count, own.parameters = parameters, own.gradient = gradient;
    own.first = o.first, own.second = o.second, own.decayed = o.decayed, own.rate = o.rate, own.decay = o.decay;
    own.momentum = o.momentum, own.dampening = o.dampening;
    own.nesterov = o.nesterov != 0, own.first_step = o.first_step != 0, own.rho = o.rho, own.epsilon = o.epsilon;
    own.beta1 = o.beta1, own.beta2 = o.beta2, own.correction1 = o.correction1, own.correction2 = o.correction2;
    if (kind == OptimiserKind::orthogonal) return orthogonal(kernels, o, own);
    kernels.optimise(own);
}

void losses_of(const Kernels& kernels, LossKind kind, float smoothing, int64_t count, int outputs,
               const float* answers, const int64_t* labels, const float* targets, float* losses) {
    double found[LANES];
    const size_t size = static_cast<size_t>(outputs) * LANES;
    std::vector<float> room(size + LANES);  // [outputs][16], beginning where a register may
    void* place = room.data();
    size_t bytes = room.size() * sizeof(float);
    float* block = static_cast<float*>(std::align(64, size * sizeof(float), place, bytes));
    for (int64_t first = 0; first < count; first += LANES) {
        const int here = static_cast<int>(std::min<int64_t>(LANES, count - first));
        for (int o = 0; o < outputs; o++)
            for (int i = 0; i < LANES; i++) block[o * LANES + i] = i < here ? answers[(first + i) * outputs + o] : 0.0f;
        Loss loss{};
        loss.kind = kind, loss.z = block, loss.outputs = outputs, loss.count = here, loss.losses = found;
        loss.smoothing = smoothing;
        loss.labels = labels ? labels + first : nullptr;
        loss.targets = targets ? targets + first * outputs : nullptr;
        kernels.loss(loss);
        for (int i = 0; i < here; i++) losses[first + i] = static_cast<float>(found[i]);
    }
}

Batch batch_of(const EpxBatch* batch) {
    Batch own;
    std::memcpy(&own, needed(batch, "batch"), sizeof own);
    return own;
}

}  // namespace

extern "C" {

int32_t epx_format(void) { return static_cast<int32_t>(FORMAT); }

const char* epx_error(void) { return message.c_str(); }

const char* epx_instruction_sets(void) {
    static const std::string names = [] {
        std::string found;
        for (const char* name : {"avx512", "avx2", "portable"})
            if (kernels_of(name)) found += (found.empty() ? "" : ",") + std::string(name);
        return found;
    }();
    return names.c_str();
}

int32_t epx_create(const int64_t* program, int64_t count, const char* instruction_set, void** network) {
    return guarded([&] {
        *needed(network, "place for the network") = nullptr;
        *network = std::make_unique<Network>(read_program(program, count), chosen(instruction_set)).release();
    });
}

void epx_free(void* network) { delete static_cast<Network*>(network); }

int64_t epx_parameters(void* network) { return network ? static_cast<Network*>(network)->program().parameters : 0; }
int64_t epx_state(void* network) { return network ? static_cast<Network*>(network)->program().state : 0; }
int64_t epx_outputs(void* network) { return network ? static_cast<Network*>(network)->program().outputs() : 0; }
int64_t epx_workspace(void* network) { return network ? static_cast<Network*>(network)->workspace() : 0; }

int32_t epx_step(void* network, const EpxBatch* batch, float* parameters, float* state, float* gradient,
                 const EpxOptimiser* optimiser, double* loss) {
    return guarded([&] {
        Network& net = *static_cast<Network*>(needed(network, "network"));
        needed(parameters, "parameter vector"), needed(gradient, "gradient vector"), needed(loss, "place for the loss");
        *loss = net.gradients(batch_of(batch), parameters, state, gradient);
        if (optimiser) optimise(net.kernels(), *optimiser, net.program().parameters, parameters, gradient);
        net.lap(Work::optimiser);
    });
}

int64_t epx_times(void* network, double* seconds) {
    if (!network) return 0;
    Network& net = *static_cast<Network*>(network);
    const int32_t failed = guarded([&] {
        if (!seconds) net.start_times();
        else if (!net.times().empty()) std::memcpy(seconds, net.times().data(), net.times().size() * sizeof(double));
    });
    return failed ? 0 : static_cast<int64_t>(net.times().size());
}

int32_t epx_score(void* network, const EpxBatch* batch, const float* parameters, const float* state, float* outputs,
                  float* losses) {
    return guarded([&] {
        Network& net = *static_cast<Network*>(needed(network, "network"));
        net.score(batch_of(batch), needed(parameters, "parameter vector"), state, outputs, losses);
    });
}

int32_t epx_losses(const char* instruction_set, int32_t kind, float smoothing, int64_t count, int64_t outputs,
                   const float* answers, const int64_t* labels, const float* targets, float* losses) {
    return guarded([&] {
        if (kind < 0 || kind >= static_cast<int32_t>(LossKind::count)) throw Refused("there is no such loss");
        if (!(smoothing >= 0 && smoothing <= 1)) throw Refused("the label smoothing is out of range");
        if (count < 0) throw Refused("a negative number of answers");
        if (outputs < 1 || outputs > MOST_CHANNELS) throw Refused("the number of outputs is out of range");
        const auto own = static_cast<LossKind>(kind);
        if (own == LossKind::softmax) {
            needed(labels, "vector of labels");
            for (int64_t i = 0; i < count; i++)
                if (labels[i] < 0 || labels[i] >= outputs) throw Refused("a label is out of range");
        } else {
            needed(targets, "array of targets");
        }
        losses_of(chosen(instruction_set), own, smoothing, count, static_cast<int>(outputs),
                  needed(answers, "array of answers"), labels, targets, needed(losses, "place for the losses"));
    });
}

int32_t epx_optimise(const char* instruction_set, int64_t count, float* parameters, const float* gradient,
                     const EpxOptimiser* optimiser) {
    return guarded([&] {
        if (count < 0) throw Refused("a negative number of parameters");
        optimise(chosen(instruction_set), *needed(optimiser, "optimiser"), count,
                 needed(parameters, "parameter vector"), needed(gradient, "gradient vector"));
    });
}

int32_t epx_average(const char* instruction_set, int64_t count, float* average, const float* values, float weight) {
    return guarded([&] {
        if (count < 0) throw Refused("a negative number of values");
        chosen(instruction_set).average(count, needed(average, "average"), needed(values, "vector of values"), weight);
    });
}

double epx_peak(const char* instruction_set, int64_t rounds) {
    double result = 0;
    guarded([&] { result = chosen(instruction_set).peak(rounds); });
    return result;
}

}  // extern "C"
