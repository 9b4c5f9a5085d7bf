#include "network.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <utility>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace epicortex {

// ---- memory ---------------------------------------------------------------------------------------------------------

Buffer::Buffer(Buffer&& o) noexcept : p_(std::exchange(o.p_, nullptr)), n_(std::exchange(o.n_, 0)) {}
Buffer& Buffer::operator=(Buffer&& o) noexcept {
    std::swap(p_, o.p_), std::swap(n_, o.n_);
    return *this;
}
Buffer::~Buffer() { std::free(p_); }

void Buffer::reset(int64_t count) {
    if (count < 0 || count > (int64_t{1} << 40)) throw std::bad_alloc();
    // large ones on large pages: fewer misses of the address cache, 6 % of a residual network's step
    const int64_t page = count >= (1 << 20) ? 1 << 21 : 4096;
    const int64_t bytes = (count * 4 + 64 + page - 1) / page * page;
    if (n_ != count || !p_) {
        std::free(std::exchange(p_, nullptr));
        n_ = 0;
        p_ = static_cast<float*>(std::aligned_alloc(static_cast<size_t>(page), static_cast<size_t>(bytes)));
        if (!p_) throw std::bad_alloc();
#if defined(__linux__) && defined(MADV_HUGEPAGE)
        if (page > 4096) madvise(p_, static_cast<size_t>(bytes), MADV_HUGEPAGE);
#endif
        n_ = count;
    }
    std::memset(p_, 0, static_cast<size_t>(bytes));
}

void Borders::widen(const Borders& o) {
    top = std::max(top, o.top), left = std::max(left, o.left);
    bottom = std::max(bottom, o.bottom), right = std::max(right, o.right);
}

void Storage::lay_out(const Extent& e, const Borders& b) {
    row = static_cast<int64_t>(e.width + b.left + b.right) * LANES;
    int64_t lines = static_cast<int64_t>(e.height + b.top + b.bottom) * (e.width + b.left + b.right);
    // From one channel to the next never a multiple of what a way of the first-level cache holds.
    if (lines > 1 && lines % 32 == 0) lines++;
    channel = lines * LANES;
    block = channel * e.channels;
    origin = b.top * row + b.left * LANES;
}

void Storage::use(Moment moment) {
    if (!used) first = last = moment;
    used = true;
    if (moment < first) first = moment;
    if (last < moment) last = moment;
    every = first.phase != last.phase;
}

// Zeros around a value stay where they are, so only one layout fits. With a place for each block, a block's next
// tenant may come while the last one still has the blocks after it: all blocks are then as far apart.
bool Memory::takes(const Storage& s) const {
    const Storage& one = *tenants.front();
    if (one.channel != s.channel || one.row != s.row || one.origin != s.origin || one.every != s.every) return false;
    return std::all_of(tenants.begin(), tenants.end(),
                       [&](const Storage* other) { return other->last < s.first || s.last < other->first; });
}

void Memory::ready(int blocks) {
    const int64_t need = block * (tenants.front()->every ? blocks : 1);
    if (buffer.data() && buffer.size() >= need) return;
    buffer.reset(need);
    for (Storage* s : tenants) s->base = buffer.data(), s->block = block;
}

// ---- planning -------------------------------------------------------------------------------------------------------

namespace {

// The inputs of a full layer, a row at a time.
std::vector<Run> rows_of(const Extent& e, const Storage& s) {
    std::vector<Run> runs;
    for (int c = 0; c < e.channels; c++)
        for (int h = 0; h < e.height; h++) runs.push_back({c * s.channel + h * s.row, e.width});
    return runs;
}

// As many neighbours at a time as there are.
std::vector<Run> runs_of(const Extent& e, const Storage& s) {
    const bool rows_touch = s.row == static_cast<int64_t>(e.width) * LANES;
    const bool channels_touch = rows_touch && s.channel == s.row * e.height;
    if (channels_touch) return {{0, static_cast<int>(e.size())}};
    if (!rows_touch) return rows_of(e, s);
    std::vector<Run> runs;
    for (int c = 0; c < e.channels; c++) runs.push_back({c * s.channel, e.height * e.width});
    return runs;
}

bool is_leaky(const Operation& op) {
    return op.kind == OperationKind::activation && op.activation == Activation::leaky;
}

}  // namespace

Network::Network(Program program, const Kernels& kernels) : program_(std::move(program)), kernels_(kernels) {
    make_steps();
    fold();
    make_phases();
    make_memory();
}

// Operations that run in one pass become one step: a convolution with its rectifier; normalisation, addition and
// activation. A step stands where the last of its operations stood.
void Network::make_steps() {
    const auto& ops = program_.operations;
    const int n = static_cast<int>(ops.size());
    values_.resize(program_.slots.size());
    for (size_t i = 0; i < values_.size(); i++) values_[i].extent = program_.slots[i];
    std::vector<bool> taken(n, false);
    std::vector<std::vector<Step>> at(n);  // the steps that stand at each operation
    // the only operation that reads a slot, or -1
    const auto only_reader = [&](int slot) {
        if (program_.readers[slot] != 1) return -1;
        for (int i = slot; i < n; i++)
            if (ops[i].input == slot || ops[i].other == slot) return taken[i] ? -1 : i;
        return -1;
    };
    for (int i = 0; i < n; i++) {
        if (taken[i]) continue;
        const Operation& op = ops[i];
        Step s{};
        int last = i;
        s.in = op.input, s.other = -1;
        const auto take_activation = [&](bool leaky_only) {
            const int next = only_reader(last + 1);
            if (next < 0 || ops[next].kind != OperationKind::activation || (leaky_only && !is_leaky(ops[next]))) return;
            taken[next] = true, s.activation = ops[next].activation, s.slope = ops[next].slope, last = next;
        };
        switch (op.kind) {
            case OperationKind::conv: {
                s.kind = StepKind::conv;
                s.weights = op.weights, s.bias = op.bias ? op.weights + op.weight_count : -1;
                const Extent e = program_.slots[op.input];
                s.conv = static_cast<int>(convs_.size());
                convs_.push_back(std::make_unique<Conv>(kernels_, e.channels, e.height, e.width, op.down, op.across,
                                                        op.kernels));
                take_activation(true);
                break;
            }
            case OperationKind::norm: {
                s.kind = StepKind::pointwise;
                s.norm = static_cast<int>(norms_.size());
                Norm norm{};
                norm.channels = program_.slots[op.input].channels;
                norm.gamma = op.weights, norm.beta = op.weights + op.weight_count, norm.state = op.state;
                norm.epsilon = op.epsilon, norm.momentum = op.momentum;
                norms_.push_back(std::move(norm));
                const int next = only_reader(i + 1);
                if (next >= 0 && ops[next].kind == OperationKind::add) {
                    taken[next] = true, last = next;
                    s.other = ops[next].input == i + 1 ? ops[next].other : ops[next].input;
                }
                take_activation(false);
                break;
            }
            case OperationKind::add:
                s.kind = StepKind::pointwise, s.other = op.other;
                take_activation(false);
                break;
            case OperationKind::activation:
                s.kind = StepKind::pointwise, s.activation = op.activation, s.slope = op.slope;
                break;
            case OperationKind::pool: s.kind = StepKind::pool, s.factor = op.factor; break;
            case OperationKind::full:
                s.kind = StepKind::full, s.nodes = op.nodes;
                s.weights = op.weights, s.bias = op.bias ? op.weights + op.weight_count : -1;
                break;
            case OperationKind::count: break;
        }
        s.out = last + 1;
        at[last].push_back(std::move(s));
    }
    for (auto& group : at)
        for (Step& s : group) {
            Value& out = values_[s.out];
            out.producer = static_cast<int>(steps_.size());
            const bool own = s.kind == StepKind::conv || s.kind == StepKind::full || s.norm >= 0;
            out.learns = own || values_[s.in].learns || (s.other >= 0 && values_[s.other].learns);
            steps_.push_back(std::move(s));
        }
}

// For scoring, a norm right after a convolution goes into its weights.
void Network::fold() {
    std::vector<int> readers(values_.size(), 0);
    for (const Step& s : steps_) {
        readers[s.in]++;
        if (s.other >= 0) readers[s.other]++;
    }
    for (Step& s : steps_) {
        if (s.kind == StepKind::conv) s.score_out = s.out, s.score_activation = s.activation, s.score_slope = s.slope;
        if (s.kind != StepKind::pointwise || s.norm < 0 || values_[s.in].producer < 0 || readers[s.in] != 1) continue;
        Step& below = steps_[values_[s.in].producer];
        if (below.kind != StepKind::conv || below.activation != Activation::none || s.other == s.in) continue;
        below.folded = s.norm, s.plain = true;
        if (s.other < 0 && (s.activation == Activation::none || s.activation == Activation::leaky)) {
            s.skipped = true;
            below.score_out = s.out, below.score_activation = s.activation, below.score_slope = s.slope;
        }
    }
}

void Network::make_phases() {
    phases_.emplace_back();
    const auto add = [&](PartKind kind, int step) { phases_.back().parts.push_back({kind, step}); };
    const int n = static_cast<int>(steps_.size());
    for (int i = 0; i < n; i++) {
        if (steps_[i].norm >= 0) {
            add(PartKind::statistics, i);
            phases_.back().norm_forward = steps_[i].norm;
            phases_.emplace_back();
        }
        add(PartKind::forward, i);
    }
    add(PartKind::loss, -1);
    // who wrote the gradient of a value last, so far
    std::vector<int> writer(values_.size(), -1);
    writer.back() = n;  // the loss
    const auto contributes = [&](int slot, int step) {
        const bool more = writer[slot] >= 0;
        writer[slot] = step;
        return more;
    };
    for (int i = n - 1; i >= 0; i--) {
        Step& s = steps_[i];
        if (s.kind == StepKind::conv && s.activation == Activation::leaky) {
            const int last = writer[s.out];
            const bool along = last < n && (steps_[last].kind == StepKind::conv || steps_[last].kind == StepKind::full);
            if (along) steps_[last].mask_in = true;
            else s.mask_own = true;
        }
        if (!values_[s.out].learns) continue;
        if (s.norm >= 0) {
            if (s.other >= 0 && values_[s.other].learns) s.add_other = contributes(s.other, i);
            add(PartKind::back_sums, i);
            phases_.back().norm_back = i;
            phases_.emplace_back();
            if (values_[s.in].learns) {
                s.add_in = contributes(s.in, i);
                add(PartKind::back_norm, i);
            }
            continue;
        }
        if (s.other >= 0 && values_[s.other].learns) s.add_other = contributes(s.other, i);
        if (values_[s.in].learns) s.add_in = contributes(s.in, i);
        add(PartKind::back, i);
    }
}

void Network::make_memory() {
    find_uses();
    lay_out();
    std::vector<Storage*> gradients;
    for (Value& v : values_) {
        if (v.data.used) share({&v.data}, memories_);
        if (v.learns && v.gradient.used) gradients.push_back(&v.gradient);
    }
    share(gradients, memories_);
    make_scoring();
    make_runs();
    for (const auto& c : convs_) {
        packed_.emplace_back(), packed_back_.emplace_back(), sums_.emplace_back(), biases_.emplace_back();
        packed_.back().reset(static_cast<int64_t>(c->entries()));
        packed_back_.back().reset(static_cast<int64_t>(c->back_entries()));
        sums_.back().reset(static_cast<int64_t>(c->entries()));
        biases_.back().reset(c->maps);
    }
    for (Norm& n : norms_) {
        for (auto* v : {&n.mean, &n.inverse, &n.a, &n.b, &n.p, &n.q}) v->assign(n.channels, 0.0f);
        n.block.assign(2 * n.channels, 0.0f);
        for (auto* v : {&n.count, &n.average, &n.squares}) v->assign(n.channels, 0.0);
        n.sums.assign(2 * n.channels, 0.0);
    }
}

// When each value and each gradient is needed. What is used in one phase only needs room for one block.
void Network::find_uses() {
    Moment now{0, 0};
    values_[0].data.use(now);
    for (const Phase& phase : phases_) {
        now.part = 0;
        for (const Part& part : phase.parts) {
            now.part++;
            if (part.kind == PartKind::loss) {
                values_.back().data.use(now), values_.back().gradient.use(now);
                continue;
            }
            const Step& s = steps_[part.step];
            const bool pointwise = s.kind == StepKind::pointwise;
            const bool backward = part.kind != PartKind::forward && part.kind != PartKind::statistics;
            const bool sums = part.kind == PartKind::back_sums, norm = part.kind == PartKind::back_norm;
            if (!backward || pointwise || s.kind == StepKind::conv || s.mask_in) values_[s.in].data.use(now);
            if (s.other >= 0 && !norm) values_[s.other].data.use(now);
            if ((!backward || (pointwise && !norm) || s.mask_own) && part.kind != PartKind::statistics)
                values_[s.out].data.use(now);
            if (!backward) continue;
            values_[s.out].gradient.use(now);
            if (!sums) values_[s.in].gradient.use(now);
            if (s.other >= 0 && !norm) values_[s.other].gradient.use(now);
        }
        now.phase++;
    }
    for (const Step& s : steps_)  // gradients of full layers come last, from all blocks at once
        if (s.kind == StepKind::full) values_[s.in].data.use(now), values_[s.out].gradient.use(now);
}

// Values have the borders that the convolutions above need, gradients those that the convolution below needs; where
// maps have one size, gradients have one layout.
void Network::lay_out() {
    std::map<std::pair<int, int>, Borders> widest;
    const auto below = [&](const Value& v) {
        return v.producer >= 0 && steps_[v.producer].kind == StepKind::conv && values_[steps_[v.producer].in].learns;
    };
    for (const Value& v : values_)
        if (below(v)) {
            const Conv& c = *convs_[steps_[v.producer].conv];
            widest[{v.extent.height, v.extent.width}].widen({c.top, c.left, c.bottom, c.right});
        }
    for (Value& v : values_) {
        v.gradient.lay_out(v.extent, below(v) ? widest[{v.extent.height, v.extent.width}] : Borders{});
        v.data.lay_out(v.extent, borders_above(v));
    }
}

Borders Network::borders_above(const Value& value) const {
    Borders b;
    for (const Step& s : steps_)
        if (s.kind == StepKind::conv && &values_[s.in] == &value) {
            const Conv& c = *convs_[s.conv];
            b.widen({c.half_height, c.half_width, c.half_height, c.half_width});
        }
    return b;
}

// Everything a place, shared with those that are needed earlier or later.
void Network::share(std::vector<Storage*> storages, std::vector<Memory>& memories) const {
    const size_t begin = memories.size();
    std::stable_sort(storages.begin(), storages.end(),
                     [](const Storage* a, const Storage* b) { return a->first < b->first; });
    for (Storage* s : storages) {
        auto place = std::find_if(memories.begin() + static_cast<std::ptrdiff_t>(begin), memories.end(),
                                  [&](const Memory& m) { return m.takes(*s); });
        if (place == memories.end()) place = memories.emplace(place);
        place->tenants.push_back(s);
        place->block = std::max(place->block, s->block);
    }
}

// In scoring a value is only needed until the last step that reads it has run, so two or three places serve them all.
void Network::make_scoring() {
    std::map<std::pair<int, int>, Borders> widest;
    for (const Value& v : values_) widest[{v.extent.height, v.extent.width}].widen(borders_above(v));
    for (Value& v : values_) {
        const Borders own = borders_above(v);
        const bool none = own.top + own.left == 0 && v.extent.height * v.extent.width == 1;
        v.scored.lay_out(v.extent, none ? own : widest[{v.extent.height, v.extent.width}]);
    }
    const int n = static_cast<int>(steps_.size());
    values_[0].scored.use({0, -1}), values_.back().scored.use({0, n});
    for (int i = 0; i < n; i++) {
        const Step& s = steps_[i];
        if (s.skipped) continue;
        values_[s.in].scored.use({0, i});
        if (s.other >= 0) values_[s.other].scored.use({0, i});
        values_[s.kind == StepKind::conv ? s.score_out : s.out].scored.use({0, i});
    }
    std::vector<Storage*> used;
    for (Value& v : values_)
        if (v.scored.used) used.push_back(&v.scored);
    share(used, scored_);
}

// The inputs of full layers, as runs of neighbours.
void Network::make_runs() {
    size_t widest = 16;
    for (Step& s : steps_) {
        if (s.kind != StepKind::full) continue;
        const Value& in = values_[s.in];
        s.runs = runs_of(in.extent, in.data);
        s.scored_runs = runs_of(in.extent, in.scored);
        s.gradient_runs = s.runs;
        widest = std::max(widest, static_cast<size_t>(s.nodes));
        if (!in.learns) continue;
        s.gradient_runs = runs_of(in.extent, in.gradient);
        if (s.gradient_runs.size() != s.runs.size())  // both in pieces of the same lengths
            s.runs = rows_of(in.extent, in.data), s.gradient_runs = rows_of(in.extent, in.gradient);
    }
    no_bias_.assign(widest, 0.0f);
}

int64_t Network::workspace() const {
    int64_t floats = large_.size();
    for (const auto* list : {&memories_, &scored_})
        for (const Memory& m : *list) floats += m.buffer.size();
    for (const auto* list : {&packed_, &packed_back_, &sums_, &biases_})
        for (const Buffer& b : *list) floats += b.size();
    return 4 * floats;
}

// Memory for batches of so many blocks; more than before means anew.
void Network::ready(int blocks) {
    if (blocks <= blocks_) return;
    for (Memory& m : memories_) m.ready(blocks);
    blocks_ = blocks;
}

// ---- running --------------------------------------------------------------------------------------------------------

void Network::check(const Batch& batch, bool targets) const {
    const Extent in = program_.slots[0];
    if (batch.count < 1 || batch.count > (int64_t{1} << 24)) throw Refused("a batch must have from 1 to 2^24 samples");
    if (!batch.data || !batch.rows || !batch.scale || !batch.offset) throw Refused("a batch needs data, rows and scaling");
    if (batch.channels != in.channels)
        throw Refused("data of " + std::to_string(batch.channels) + " channels, where the program has " +
                      std::to_string(in.channels));
    if (batch.height < 1 || batch.width < 1 || batch.height > (1 << 20) || batch.width > (1 << 20) ||
        batch.height * batch.width > (int64_t{1} << 26) / batch.channels)
        throw Refused("samples are empty or too large");
    if (batch.crop && !batch.moves) throw Refused("to crop, say where");
    for (int64_t i = 0; i < batch.count; i++) {
        if (batch.rows[i] < 0 || batch.rows[i] >= batch.samples)
            throw Refused("row " + std::to_string(batch.rows[i]) + " of " + std::to_string(batch.samples) + " samples");
        if (batch.moves && (std::abs(static_cast<int64_t>(batch.moves[2 * i])) > (1 << 20) ||
                            std::abs(static_cast<int64_t>(batch.moves[2 * i + 1])) > (1 << 20)))
            throw Refused("a sample is moved too far");
        if (!targets) continue;
        if (program_.loss != LossKind::softmax) continue;
        if (!batch.labels) throw Refused("the loss needs labels");
        if (batch.labels[i] < 0 || batch.labels[i] >= program_.outputs())
            throw Refused("label " + std::to_string(batch.labels[i]) + " where there are " +
                          std::to_string(program_.outputs()) + " outputs");
    }
    if (targets && program_.loss != LossKind::softmax && !batch.targets) throw Refused("the loss needs targets");
}

namespace {

// Windows of equal area: each output is the mean of the part of the input that it covers (a wider one where the
// output is larger than the input: linear between the nearest two).
void windows(int from, int to, std::vector<int32_t>& first, std::vector<int32_t>& count, std::vector<float>& weights) {
    const double ratio = static_cast<double>(from) / to;
    for (int i = 0; i < to; i++) {
        double low = i * ratio, high = (i + 1) * ratio;
        if (ratio < 1) {
            const double middle = (i + 0.5) * ratio;
            low = std::max(0.0, middle - 0.5), high = std::min(static_cast<double>(from), middle + 0.5);
        }
        const int begin = std::min(static_cast<int>(low), from - 1);
        int end = begin;
        double sum = 0;
        const size_t at = weights.size();
        for (; end < from && end < high - 1e-9; end++) {
            const double part = std::min(high, end + 1.0) - std::max(low, static_cast<double>(end));
            weights.push_back(static_cast<float>(part));
            sum += part;
        }
        for (size_t k = at; k < weights.size(); k++) weights[k] = static_cast<float>(weights[k] / sum);
        first.push_back(begin), count.push_back(end - begin);
    }
}

}  // namespace

void Network::gather(const Batch& batch, int b, View to) {
    const Extent in = program_.slots[0];
    const int64_t first = static_cast<int64_t>(b) * LANES;
    const int h = static_cast<int>(batch.height), w = static_cast<int>(batch.width);
    const bool same = h == in.height && w == in.width, resized = !same && !batch.crop;
    Gather g{};
    g.data = batch.data, g.bytes = batch.bytes != 0, g.rows = batch.rows + first;
    g.count = static_cast<int>(std::min<int64_t>(LANES, batch.count - first));
    g.channels = in.channels, g.height = h, g.width = w;
    g.out_height = resized ? h : in.height, g.out_width = resized ? w : in.width;
    g.scale = batch.scale, g.offset = batch.offset;
    g.moves = batch.moves ? batch.moves + 2 * first : nullptr, g.flips = batch.flips ? batch.flips + first : nullptr;
    const size_t need = static_cast<size_t>(gather_scratch(h, w, g.out_width));
    if (scratch_.size() < need + 64) scratch_.resize(need + 64);
    const size_t off = (64 - reinterpret_cast<uintptr_t>(scratch_.data()) % 64) % 64;
    g.scratch = scratch_.data() + off;
    g.x = to;
    if (!resized) return kernels_.gather(g);
    const int64_t plane = static_cast<int64_t>(h) * w * LANES;
    if (large_.size() != plane * in.channels) large_.reset(plane * in.channels);
    g.x = {large_.data(), plane, static_cast<int64_t>(w) * LANES};
    kernels_.gather(g);
    std::vector<int32_t> row_first, row_count, column_first, column_count;
    std::vector<float> row_weights, column_weights;
    windows(h, in.height, row_first, row_count, row_weights);
    windows(w, in.width, column_first, column_count, column_weights);
    line_.resize(static_cast<size_t>(w) * LANES);
    kernels_.resample({g.x, to, in.channels, h, w, in.height, in.width, row_first.data(), row_count.data(),
                       column_first.data(), column_count.data(), row_weights.data(), column_weights.data(),
                       line_.data()});
}

void Network::pack(const float* parameters, const float* state, bool scoring) {
    for (Norm& n : norms_)
        if (scoring)
            for (int c = 0; c < n.channels; c++) {
                const float inverse = 1.0f / std::sqrt(state[n.state + n.channels + c] + n.epsilon);
                n.a[c] = parameters[n.gamma + c] * inverse;
                n.b[c] = parameters[n.beta + c] - state[n.state + c] * n.a[c];
            }
    for (const Step& s : steps_) {
        if (s.kind != StepKind::conv) continue;
        const Conv& conv = *convs_[s.conv];
        const float* w = parameters + s.weights;
        float *to = packed_[s.conv].data(), *bias = biases_[s.conv].data();
        for (int m = 0; m < conv.maps; m++) bias[m] = s.bias >= 0 ? parameters[s.bias + m] : 0.0f;
        if (scoring && s.folded >= 0) {
            const Norm& n = norms_[s.folded];
            for (size_t i = 0; i < conv.entries(); i++) to[i] = w[conv.natural(i)] * n.a[conv.map_of(i)];
            for (int m = 0; m < conv.maps; m++) bias[m] = bias[m] * n.a[m] + n.b[m];
        } else {
            for (size_t i = 0; i < conv.entries(); i++) to[i] = w[conv.natural(i)];
        }
        if (!scoring && values_[s.in].learns) conv.pack_back(w, packed_back_[s.conv].data());
    }
}

Pointwise Network::pointwise(const Step& s, View z, View residual, View y) const {
    const Extent e = values_[s.in].extent;
    Pointwise p{};
    p.z = z, p.y = y, p.residual = residual;
    p.channels = e.channels, p.height = e.height, p.width = e.width;
    if (s.norm >= 0) p.a = norms_[s.norm].a.data(), p.b = norms_[s.norm].b.data();
    p.activation = s.activation, p.slope = s.slope;
    return p;
}

Pointwise Network::pointwise(const Step& s, int b) const {
    const View residual = s.other >= 0 ? values_[s.other].data.view(b) : View{};
    return pointwise(s, values_[s.in].data.view(b), residual, values_[s.out].data.view(b));
}

void Network::pool(const Step& s, View in, View out) const {
    const Extent &from = values_[s.in].extent, &to = values_[s.out].extent;
    kernels_.pool({in, out, from.channels, from.height, from.width, to.height, to.width, s.factor, false});
}

void Network::full(const Step& s, View in, View out, const std::vector<Run>& runs, const float* parameters) const {
    kernels_.full_forward({runs.data(), static_cast<int>(runs.size()), s.nodes, parameters + s.weights}, in.p,
                          s.bias >= 0 ? parameters + s.bias : no_bias_.data(), out.p);
}

void Network::forward(const Step& s, int b, const float* parameters) {
    const View in = values_[s.in].data.view(b), out = values_[s.out].data.view(b);
    switch (s.kind) {
        case StepKind::conv:
            convs_[s.conv]->forward(in, packed_[s.conv].data(), biases_[s.conv].data(), out,
                                    s.activation == Activation::leaky ? Finish::leaky : Finish::plain, s.slope);
            break;
        case StepKind::pointwise: kernels_.pointwise(pointwise(s, b)); break;
        case StepKind::pool: pool(s, in, out); break;
        case StepKind::full: full(s, in, out, s.runs, parameters); break;
    }
}

void Network::back(const Step& s, int b, const float* parameters, float* gradient) {
    const Value &in = values_[s.in], &out = values_[s.out];
    const Finish finish = s.add_in ? (s.mask_in ? Finish::add_back : Finish::add)
                                   : (s.mask_in ? Finish::back : Finish::plain);
    // the rectifier below, if its derivative is taken along
    const float slope = s.mask_in ? steps_[in.producer].slope : 0.0f;
    const View dy = out.gradient.view(b);
    const auto lap = [&](Work work) { watch_.lap(static_cast<size_t>(&s - steps_.data()), work); };
    switch (s.kind) {
        case StepKind::conv: {
            Conv& conv = *convs_[s.conv];
            if (s.mask_own) {
                PointwiseBack p{};
                p.forward.y = p.forward.z = out.data.view(b), p.dy = p.dz = dy;
                p.forward.channels = out.extent.channels, p.forward.height = out.extent.height;
                p.forward.width = out.extent.width;
                p.forward.activation = Activation::leaky, p.forward.slope = s.slope;
                kernels_.pointwise_back(p);
                lap(Work::pointwise_back);
            }
            if (s.bias >= 0)
                for (int m = 0; m < conv.maps; m++)
                    gradient[s.bias + m] += kernels_.add_up(dy.p + m * dy.channel, dy.row, conv.out_height, conv.out_width);
            lap(Work::conv_bias);
            conv.backward_weight(in.data.view(b), dy, sums_[s.conv].data());
            lap(Work::conv_weights);
            if (in.learns)
                conv.backward_input(dy, packed_back_[s.conv].data(), in.gradient.view(b),
                                    {finish, in.data.view(b), slope});
            lap(Work::conv_input);
            break;
        }
        case StepKind::pointwise: {
            PointwiseBack p{};
            p.forward = pointwise(s, b), p.dy = dy;
            p.dz = in.learns ? in.gradient.view(b) : dy, p.add_dz = in.learns && s.add_in;
            if (s.other >= 0 && values_[s.other].learns)
                p.dresidual = values_[s.other].gradient.view(b), p.add_dresidual = s.add_other;
            kernels_.pointwise_back(p);
            lap(Work::pointwise_back);
            break;
        }
        case StepKind::pool:
            kernels_.pool_back({in.gradient.view(b), dy, in.extent.channels, in.extent.height, in.extent.width,
                                out.extent.height, out.extent.width, s.factor, s.add_in});
            lap(Work::pool_back);
            break;
        case StepKind::full:
            if (in.learns)
                kernels_.full_back({s.runs.data(), static_cast<int>(s.runs.size()), s.nodes, parameters + s.weights},
                                   dy.p, in.gradient.view(b).p, s.gradient_runs.data(), in.data.view(b).p,
                                   s.runs.data(), slope, finish);
            lap(Work::full_input);
            break;
    }
}

// What a step's way forward is, by its kind.
constexpr Work FORWARD_WORK[] = {Work::conv, Work::pointwise, Work::pool, Work::full};

void Network::run(const Part& part, const Batch& batch, int b, const float* parameters, float* gradient) {
    const int count = static_cast<int>(std::min<int64_t>(LANES, batch.count - static_cast<int64_t>(b) * LANES));
    if (part.kind == PartKind::loss) {
        double losses[LANES];
        const Value& out = values_.back();
        loss(batch, b, out.data.view(b).p, out.gradient.view(b).p, losses);
        for (int i = 0; i < count; i++) total_ += losses[i];
        lap(Work::loss);
        return;
    }
    const Step& s = steps_[part.step];
    const Extent e = values_[s.in].extent;
    const auto lap = [&](Work work) { watch_.lap(static_cast<size_t>(part.step), work); };
    switch (part.kind) {
        case PartKind::forward:
            forward(s, b, parameters);
            lap(FORWARD_WORK[static_cast<int>(s.kind)]);
            break;
        case PartKind::back: back(s, b, parameters, gradient); break;
        case PartKind::statistics: {
            Norm& n = norms_[s.norm];
            kernels_.statistics({values_[s.in].data.view(b), e.channels, e.height, e.width, count, n.block.data()});
            const double own = static_cast<double>(count) * e.height * e.width;
            for (int c = 0; c < n.channels; c++) {  // Chan, Golub and LeVeque: means and squares of two parts
                const double mean = n.block[2 * c] / own, before = n.count[c], all = before + own;
                const double apart = mean - n.average[c];
                n.average[c] += apart * (own / all);
                n.squares[c] += n.block[2 * c + 1] + apart * apart * (before * own / all);
                n.count[c] = all;
            }
            lap(Work::statistics);
            break;
        }
        case PartKind::back_sums: {
            Norm& n = norms_[s.norm];
            PointwiseBack p{};
            p.forward = pointwise(s, b), p.dy = values_[s.out].gradient.view(b);
            if (s.other >= 0 && values_[s.other].learns)
                p.dresidual = values_[s.other].gradient.view(b), p.add_dresidual = s.add_other;
            p.mean = n.mean.data(), p.inverse = n.inverse.data(), p.sums = n.block.data();
            kernels_.pointwise_back(p);
            for (int i = 0; i < 2 * n.channels; i++) n.sums[i] += n.block[i];
            lap(Work::pointwise_back);
            break;
        }
        case PartKind::back_norm: {
            const Norm& n = norms_[s.norm];
            kernels_.norm_back({values_[s.out].gradient.view(b), values_[s.in].data.view(b),
                                values_[s.in].gradient.view(b), e.channels, e.height, e.width, count, n.a.data(),
                                n.mean.data(), n.p.data(), n.q.data(), s.add_in});
            lap(Work::norm_back);
            break;
        }
        case PartKind::loss: break;
    }
}

void Network::finish_statistics(Norm& n, const float* parameters, float* state) {
    for (int c = 0; c < n.channels; c++) {
        const double variance = n.squares[c] / n.count[c];
        const double unbiased = n.count[c] > 1 ? n.squares[c] / (n.count[c] - 1) : variance;
        const double inverse = 1.0 / std::sqrt(variance + n.epsilon);
        n.mean[c] = static_cast<float>(n.average[c]), n.inverse[c] = static_cast<float>(inverse);
        n.a[c] = static_cast<float>(parameters[n.gamma + c] * inverse);
        n.b[c] = static_cast<float>(parameters[n.beta + c] - n.average[c] * parameters[n.gamma + c] * inverse);
        if (!state) continue;
        float &mean = state[n.state + c], &spread = state[n.state + n.channels + c];
        mean = static_cast<float>((1.0 - n.momentum) * mean + n.momentum * n.average[c]);
        spread = static_cast<float>((1.0 - n.momentum) * spread + n.momentum * unbiased);
    }
}

void Network::finish_sums(Norm& n, const Step&, float* gradient) {
    for (int c = 0; c < n.channels; c++) {
        const double plain = n.sums[2 * c], product = n.sums[2 * c + 1];
        gradient[n.beta + c] = static_cast<float>(plain);
        gradient[n.gamma + c] = static_cast<float>(product);
        n.p[c] = static_cast<float>(-n.a[c] * static_cast<double>(n.inverse[c]) * product / n.count[c]);
        n.q[c] = static_cast<float>(-n.a[c] * plain / n.count[c]);
    }
}

void Network::loss(const Batch& batch, int b, const float* z, float* dz, double* losses) {
    const int64_t first = static_cast<int64_t>(b) * LANES;
    Loss l{};
    l.kind = program_.loss, l.z = z, l.dz = dz;
    l.outputs = program_.outputs(), l.count = static_cast<int>(std::min<int64_t>(LANES, batch.count - first));
    l.labels = batch.labels ? batch.labels + first : nullptr;
    l.targets = batch.targets ? batch.targets + first * l.outputs : nullptr;
    l.weights = program_.class_weights.empty() ? nullptr : program_.class_weights.data();
    l.smoothing = program_.smoothing;
    l.scale = program_.loss == LossKind::softmax ? 1.0 / weight_ : 1.0 / (weight_ * l.outputs);
    l.losses = losses;
    kernels_.loss(l);
}

double Network::gradients(const Batch& batch, const float* parameters, float* state, float* gradient) {
    watch_.begin();
    check(batch, true);
    const int blocks = static_cast<int>((batch.count + LANES - 1) / LANES);
    ready(blocks);
    pack(parameters, nullptr, false);
    std::memset(gradient, 0, static_cast<size_t>(program_.parameters) * sizeof(float));
    for (Buffer& s : sums_) std::memset(s.data(), 0, static_cast<size_t>(s.size()) * sizeof(float));
    for (Norm& n : norms_)
        for (auto* v : {&n.count, &n.average, &n.squares, &n.sums}) std::fill(v->begin(), v->end(), 0.0);
    weight_ = static_cast<double>(batch.count), total_ = 0;
    if (program_.loss == LossKind::softmax && !program_.class_weights.empty()) {
        weight_ = 0;
        for (int64_t i = 0; i < batch.count; i++) weight_ += program_.class_weights[batch.labels[i]];
    }
    lap(Work::pack);
    for (size_t i = 0; i < phases_.size(); i++) {
        for (int b = 0; b < blocks; b++) {
            if (i == 0) gather(batch, b, values_[0].data.view(b)), lap(Work::gather);
            for (const Part& part : phases_[i].parts) run(part, batch, b, parameters, gradient);
        }
        if (phases_[i].norm_forward >= 0) finish_statistics(norms_[phases_[i].norm_forward], parameters, state);
        if (phases_[i].norm_back >= 0) {
            const Step& s = steps_[phases_[i].norm_back];
            finish_sums(norms_[s.norm], s, gradient);
        }
    }
    for (const Step& s : steps_) {
        if (s.kind == StepKind::conv) {
            const Conv& conv = *convs_[s.conv];
            const float* sums = sums_[s.conv].data();
            for (size_t i = 0; i < conv.entries(); i++) gradient[s.weights + conv.natural(i)] = sums[i];
            lap(Work::pack);
        }
        if (s.kind == StepKind::full) {
            const Value &in = values_[s.in], &out = values_[s.out];
            kernels_.full_gradient({s.runs.data(), static_cast<int>(s.runs.size()), s.nodes, nullptr},
                                   in.data.view(0).p, in.data.block, out.gradient.view(0).p, out.gradient.block, blocks,
                                   gradient + s.weights, s.bias >= 0 ? gradient + s.bias : nullptr);
            watch_.lap(static_cast<size_t>(&s - steps_.data()), Work::full_weights);
        }
    }
    return total_ / weight_;
}

void Network::score_step(const Step& s, const float* parameters) {
    if (s.skipped) return;
    const View in = values_[s.in].scored.view(0);
    const View out = values_[s.kind == StepKind::conv ? s.score_out : s.out].scored.view(0);
    switch (s.kind) {
        case StepKind::conv:
            convs_[s.conv]->forward(in, packed_[s.conv].data(), biases_[s.conv].data(), out,
                                    s.score_activation == Activation::leaky ? Finish::leaky : Finish::plain,
                                    s.score_slope);
            break;
        case StepKind::pointwise: {
            Pointwise p = pointwise(s, in, s.other >= 0 ? values_[s.other].scored.view(0) : View{}, out);
            if (s.plain) p.a = p.b = nullptr;
            kernels_.pointwise(p);
            break;
        }
        case StepKind::pool: pool(s, in, out); break;
        case StepKind::full: full(s, in, out, s.scored_runs, parameters); break;
    }
}

void Network::score(const Batch& batch, const float* parameters, const float* state, float* outputs, float* losses) {
    watch_.begin();
    check(batch, losses != nullptr);
    if (!norms_.empty() && !state) throw Refused("normalisation needs its state");
    for (Memory& m : scored_) m.ready(1);
    pack(parameters, state, true);
    lap(Work::pack);
    weight_ = 1;
    const int blocks = static_cast<int>((batch.count + LANES - 1) / LANES), n = program_.outputs();
    for (int b = 0; b < blocks; b++) {
        const int64_t first = static_cast<int64_t>(b) * LANES;
        const int count = static_cast<int>(std::min<int64_t>(LANES, batch.count - first));
        Batch own = batch;  // one block at a time, in the place of the first
        own.rows += first, own.count = count;
        if (own.moves) own.moves += 2 * first;
        if (own.flips) own.flips += first;
        if (own.labels) own.labels += first;
        if (own.targets) own.targets += first * n;
        gather(own, 0, values_[0].scored.view(0));
        lap(Work::gather);
        for (size_t i = 0; i < steps_.size(); i++) {
            score_step(steps_[i], parameters);
            watch_.lap(i, FORWARD_WORK[static_cast<int>(steps_[i].kind)]);
        }
        const float* z = values_.back().scored.view(0).p;
        if (outputs)
            for (int i = 0; i < count; i++)
                for (int o = 0; o < n; o++) outputs[(first + i) * n + o] = z[o * LANES + i];
        if (losses) {
            double found[LANES];
            loss(own, 0, values_.back().scored.view(0).p, nullptr, found);
            for (int i = 0; i < count; i++) losses[first + i] = static_cast<float>(found[i]);
        }
        lap(Work::loss);
    }
}

}  // namespace epicortex
