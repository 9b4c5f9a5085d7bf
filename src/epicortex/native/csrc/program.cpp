#include "program.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace epicortex {
namespace {

constexpr int64_t MOST_OPERATIONS = 10'000, MOST_SIDE = 1 << 20, MOST_KERNEL = 4'095;
constexpr int64_t MOST_NUMBERS = int64_t{1} << 26;     // of one sample's value, borders included: offsets are 32 bits
constexpr int64_t MOST_PARAMETERS = int64_t{1} << 28;

class Reader {
public:
    Reader(const int64_t* numbers, int64_t count) : at_(numbers), end_(numbers + count) {}
    void where(std::string place) { where_ = std::move(place); }
    [[noreturn]] void refuse(const std::string& what) const { throw Refused(where_ + what); }

    int64_t whole(const char* what, int64_t least, int64_t most) {
        if (at_ == end_) refuse(std::string("ends before its ") + what);
        const int64_t value = *at_++;
        if (value < least || value > most)
            refuse(std::string(what) + " must be from " + std::to_string(least) + " to " + std::to_string(most) +
                   ", not " + std::to_string(value));
        return value;
    }
    int small(const char* what, int64_t least, int64_t most) { return static_cast<int>(whole(what, least, most)); }
    float real(const char* what, double least, double most) {
        if (at_ == end_) refuse(std::string("ends before its ") + what);
        double value;
        std::memcpy(&value, at_++, sizeof value);
        if (!(value >= least && value <= most))
            refuse(std::string(what) + " must be from " + std::to_string(least) + " to " + std::to_string(most) +
                   ", not " + std::to_string(value));
        return static_cast<float>(value);
    }
    int64_t left() const { return end_ - at_; }

private:
    const int64_t *at_, *end_;
    std::string where_ = "program: ";
};

Extent read_operation(Reader& in, Program& p, Operation& op, int slots) {
    const auto slot = [&](const char* what) { return in.small(what, 0, slots - 1); };
    op.kind = static_cast<OperationKind>(in.small("kind", 0, static_cast<int>(OperationKind::count) - 1));
    const int64_t length = in.whole("length", 0, in.left());
    const int64_t rest = in.left() - length;
    op.input = slot("input slot");
    Extent e = p.slots[op.input];
    switch (op.kind) {
        case OperationKind::conv: {
            op.down = in.small("stride", 1, MOST_SIDE), op.across = in.small("stride", 1, MOST_SIDE);
            op.bias = in.whole("bias flag", 0, 1) != 0;
            const int kernels = in.small("number of kernels", 1, MOST_CHANNELS);
            int64_t area = 0;
            int tallest = 1, widest = 1;
            if (in.left() < 2 * static_cast<int64_t>(kernels)) in.refuse("ends before its kernels");
            for (int k = 0; k < kernels; k++) {
                const Shape2 s{in.small("kernel size", 1, MOST_KERNEL), in.small("kernel size", 1, MOST_KERNEL)};
                if (s.height % 2 == 0 || s.width % 2 == 0) in.refuse("kernel sizes must be odd");
                op.kernels.push_back(s);
                area += static_cast<int64_t>(s.height) * s.width;
                tallest = std::max(tallest, s.height), widest = std::max(widest, s.width);
            }
            if (area > MOST_PARAMETERS / e.channels) in.refuse("too many parameters");
            if (static_cast<int64_t>(e.height + tallest) * (e.width + widest) > MOST_NUMBERS / e.channels)
                in.refuse("its input with borders is too large");
            op.weight_count = area * e.channels, op.bias_count = op.bias ? kernels : 0;
            e = {kernels, (e.height - 1) / op.down + 1, (e.width - 1) / op.across + 1};
            // gradients of the output have borders, too
            if (static_cast<int64_t>(e.height + tallest) * (e.width + widest) > MOST_NUMBERS / kernels)
                in.refuse("its output with borders is too large");
            break;
        }
        case OperationKind::norm:
            op.epsilon = in.real("epsilon", 1e-12, 1.0), op.momentum = in.real("momentum", 0.0, 1.0);
            op.weight_count = op.bias_count = e.channels;
            op.state = p.state, p.state += 2 * static_cast<int64_t>(e.channels);
            break;
        case OperationKind::activation:
            op.activation = static_cast<Activation>(in.small("activation", 1, static_cast<int>(Activation::count) - 1));
            op.slope = in.real("slope", 0.0, 1.0);
            break;
        case OperationKind::add: {
            op.other = slot("other slot");
            const Extent o = p.slots[op.other];
            if (o.channels != e.channels || o.height != e.height || o.width != e.width)
                in.refuse("adds slots of different shapes");
            break;
        }
        case OperationKind::pool:
            op.rows = in.small("rows", 1, e.height), op.columns = in.small("columns", 1, e.width);
            op.factor = in.real("factor", -1e6, 1e6);
            e = {e.channels, op.rows, op.columns};
            break;
        case OperationKind::full:
            op.nodes = in.small("nodes", 1, MOST_CHANNELS), op.bias = in.whole("bias flag", 0, 1) != 0;
            if (e.size() > MOST_PARAMETERS / op.nodes) in.refuse("too many parameters");
            op.weight_count = e.size() * op.nodes, op.bias_count = op.bias ? op.nodes : 0;
            e = {op.nodes, 1, 1};
            break;
        case OperationKind::count: break;
    }
    if (in.left() != rest) in.refuse("has the wrong length");
    if (e.size() > MOST_NUMBERS) in.refuse("its result is too large");
    op.weights = p.parameters, p.parameters += op.weight_count + op.bias_count;
    if (p.parameters > MOST_PARAMETERS) in.refuse("too many parameters");
    return e;
}

}  // namespace

Program read_program(const int64_t* numbers, int64_t count) {
    if (!numbers || count < 0) throw Refused("program: there is none");
    Reader in(numbers, count);
    Program p;
    in.whole("format", FORMAT, FORMAT);
    const int c = in.small("channels", 1, MOST_CHANNELS), h = in.small("height", 1, MOST_SIDE);
    const int w = in.small("width", 1, MOST_SIDE);
    p.slots.push_back({c, h, w});
    if (static_cast<int64_t>(h) * w > MOST_NUMBERS / c) in.refuse("its input is too large");
    p.loss = static_cast<LossKind>(in.small("loss", 0, static_cast<int>(LossKind::count) - 1));
    p.smoothing = in.real("label smoothing", 0.0, 1.0);
    const int64_t weights = in.whole("number of class weights", 0, MOST_CHANNELS);
    if (weights > in.left()) in.refuse("ends before its class weights");
    for (int64_t i = 0; i < weights; i++) p.class_weights.push_back(in.real("class weight", 0.0, 1e30));
    const int64_t operations = in.whole("number of operations", 1, MOST_OPERATIONS);
    for (int64_t i = 0; i < operations; i++) {
        in.where("operation " + std::to_string(i + 1) + ": ");
        Operation op{};
        const Extent e = read_operation(in, p, op, static_cast<int>(i) + 1);
        p.slots.push_back(e);
        p.operations.push_back(std::move(op));
    }
    in.where("program: ");
    if (in.left()) in.refuse("goes on after its last operation");
    p.readers.assign(p.slots.size(), 0);
    for (const Operation& op : p.operations) {
        p.readers[op.input]++;
        if (op.other >= 0) p.readers[op.other]++;
    }
    p.readers.back()++;  // the loss
    for (size_t i = 0; i < p.readers.size(); i++)
        if (!p.readers[i]) in.refuse("nothing reads slot " + std::to_string(i));
    if (p.slots.back().height != 1 || p.slots.back().width != 1)
        in.refuse("the last operation must give one number for each output: pool to 1×1, or end with a full layer");
    if (!p.class_weights.empty() && static_cast<int64_t>(p.class_weights.size()) != p.slots.back().channels)
        in.refuse("needs as many class weights as outputs");
    if (p.parameters == 0) in.refuse("has nothing that could learn");
    return p;
}

}  // namespace epicortex
