// Throws random programs and batches, valid and not, at the C interface: each is run or refused with a message.
//
// Built with the sanitizers (`make sanitize`): fuzz ROUNDS [SEED]
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "interface.h"

namespace {

std::mt19937_64 generator;
int64_t draw(int64_t least, int64_t most) { return std::uniform_int_distribution<int64_t>(least, most)(generator); }
bool chance(double part) { return std::uniform_real_distribution<double>()(generator) < part; }
int64_t bits(double value) {
    int64_t whole;
    std::memcpy(&whole, &value, sizeof whole);
    return whole;
}

// A program that is often valid: shapes are small, slots mostly the last ones.
std::vector<int64_t> program(int64_t outputs) {
    std::vector<int64_t> p = {epx_format(), draw(1, 6), draw(1, 12), draw(1, 12), draw(0, 2),
                              bits(chance(0.5) ? 0.0 : 0.1), 0};
    if (p[4] == 0 && chance(0.2)) {
        p.back() = outputs;
        for (int64_t i = 0; i < outputs; i++) p.push_back(bits(0.5 + static_cast<double>(i)));
    }
    const int64_t count = draw(1, 8);
    p.push_back(count);
    for (int64_t i = 0; i < count; i++) {
        const int64_t input = chance(0.9) ? i : draw(0, i);
        std::vector<int64_t> op;
        int64_t kind = draw(0, 5);
        if (i + 1 == count) kind = 5;
        if (kind == 0) {
            const int64_t kernels = draw(1, 12);
            op = {input, draw(1, 3), draw(1, 3), draw(0, 1), kernels};
            for (int64_t k = 0; k < 2 * kernels; k++) op.push_back(2 * draw(0, 3) + 1);
        } else if (kind == 1) op = {input, bits(1e-5), bits(0.1)};
        else if (kind == 2) op = {input, draw(1, 6), bits(chance(0.5) ? 0.0 : 0.01)};
        else if (kind == 3) op = {input, draw(0, i)};
        else if (kind == 4) op = {input, draw(1, 3), draw(1, 3), bits(2.0)};
        else op = {input, i + 1 == count ? outputs : draw(1, 30), draw(0, 1)};
        p.push_back(kind);
        p.push_back(static_cast<int64_t>(op.size()));
        p.insert(p.end(), op.begin(), op.end());
    }
    // and some damage
    if (chance(0.3))
        for (int64_t n = draw(1, 3); n > 0; n--) {
            const int64_t wild[] = {0, -1, 1, 2, 7, 1000, int64_t{1} << 20, int64_t{1} << 31, int64_t{1} << 40,
                                    INT64_MAX, INT64_MIN, bits(NAN), bits(-1.0), bits(1e300)};
            p[static_cast<size_t>(draw(0, static_cast<int64_t>(p.size()) - 1))] =
                wild[draw(0, static_cast<int64_t>(sizeof wild / sizeof *wild) - 1)];
        }
    if (chance(0.05)) p.resize(static_cast<size_t>(draw(0, static_cast<int64_t>(p.size()))));
    if (chance(0.05)) p.push_back(draw(-5, 5));
    return p;
}

int64_t refused = 0, ran = 0;
bool told(int32_t code) {
    if (code == EPX_OK) return ran++, true;
    if (!*epx_error() || code == EPX_FAILED) std::printf("code %d: %s\n", code, epx_error()), std::abort();
    return refused++, false;
}

void round_of(const char* const* sets, int set_count) {
    const std::vector<int64_t> p = program(draw(1, 5));
    void* network = nullptr;
    if (!told(epx_create(p.data(), static_cast<int64_t>(p.size()), sets[draw(0, set_count - 1)], &network))) return;
    const int64_t parameters = epx_parameters(network), state = epx_state(network);
    const int64_t outputs = epx_outputs(network);
    const int64_t volume = p[1] * p[2] * p[3];
    if (parameters > (1 << 20) || volume > (1 << 18) || outputs > 1000) return epx_free(network);
    std::normal_distribution<float> normal;
    std::vector<float> w(static_cast<size_t>(parameters)), s(static_cast<size_t>(state), 1.0f), g(w.size());
    std::vector<float> m(w.size()), v(w.size());
    for (float& x : w) x = 0.3f * normal(generator);
    for (int step = 0; step < 2; step++) {
        const int64_t samples = draw(1, 6), count = draw(1, 40);
        const bool other = chance(0.3);  // another size than the program's
        const int64_t height = other ? draw(1, 15) : p[2], width = other ? draw(1, 15) : p[3];
        const bool bytes = chance(0.5);
        const size_t size = static_cast<size_t>(samples * p[1] * height * width);
        std::vector<uint8_t> raw(bytes ? size : 0);
        std::vector<float> real(bytes ? 0 : size);
        for (uint8_t& x : raw) x = static_cast<uint8_t>(draw(0, 255));
        for (float& x : real) x = normal(generator);
        std::vector<int64_t> rows(static_cast<size_t>(count)), labels(rows.size());
        for (int64_t& r : rows) r = draw(0, samples - (chance(0.995) ? 1 : 0));
        for (int64_t& l : labels) l = draw(chance(0.995) ? 0 : -1, outputs - 1);
        std::vector<float> targets(static_cast<size_t>(count * outputs), 0.5f), scale(static_cast<size_t>(p[1]), 0.01f);
        std::vector<int32_t> moves(2 * rows.size());
        for (int32_t& x : moves) x = static_cast<int32_t>(draw(-9, 9));
        std::vector<uint8_t> flips(rows.size());
        for (uint8_t& x : flips) x = chance(0.5);
        EpxBatch b{};
        b.data = bytes ? static_cast<const void*>(raw.data()) : real.data();
        b.samples = samples, b.channels = p[1], b.height = height, b.width = width, b.bytes = bytes;
        b.crop = chance(0.3), b.rows = rows.data(), b.count = count, b.scale = b.offset = scale.data();
        b.moves = chance(0.5) ? moves.data() : nullptr, b.flips = chance(0.5) ? flips.data() : nullptr;
        b.labels = labels.data(), b.targets = targets.data();
        if (chance(0.02)) b.channels++;
        if (chance(0.02)) b.count = draw(-1, 0);
        if (chance(0.01)) b.rows = nullptr;
        EpxOptimiser o{};
        std::vector<int32_t> places(w.size());
        for (size_t i = 0; i < places.size(); i++) places[i] = static_cast<int32_t>(i);
        const int64_t columns = draw(1, 40), half = parameters / 2;
        EpxMatrix matrices[2] = {{0, half, half / columns + 1, columns, places.data()},
                                 {half, parameters - half, columns, (parameters - half) / columns + 1, places.data()}};
        if (chance(0.1)) matrices[draw(0, 1)].first += draw(-2, 2);
        if (chance(0.1)) matrices[draw(0, 1)].columns = draw(-1, 40);
        if (chance(0.1)) matrices[draw(0, 1)].count = draw(-1, parameters + 1);
        const int64_t wild[] = {0, -1, 1000, int64_t{1} << 27, int64_t{1} << 31, int64_t{1} << 40, INT64_MAX, INT64_MIN};
        const auto any = [&] { return wild[draw(0, static_cast<int64_t>(sizeof wild / sizeof *wild) - 1)]; };
        if (chance(0.05)) matrices[draw(0, 1)].rows = any();
        if (chance(0.05)) matrices[draw(0, 1)].columns = any();
        if (chance(0.05)) matrices[draw(0, 1)].first = any();
        if (chance(0.1)) places[static_cast<size_t>(draw(0, static_cast<int64_t>(places.size()) - 1))] =
            static_cast<int32_t>(draw(0, 1) ? -1 : INT32_MAX);
        o.matrices = chance(0.95) ? matrices : nullptr, o.matrix_count = draw(chance(0.05) ? -1 : 0, 2);
        o.matrix_rate = 0.01f, o.matrix_decay = 0.1f;
        o.kind = static_cast<int32_t>(draw(-1, 5)), o.first = m.data(), o.second = v.data();
        o.rate = 0.01f, o.momentum = 0.9f, o.rho = 0.9f, o.epsilon = 1e-6f, o.beta1 = 0.9f, o.beta2 = 0.99f;
        o.correction1 = o.correction2 = 1.0f, o.nesterov = 1, o.first_step = step == 0;
        double loss = 0;
        if (told(epx_step(network, &b, w.data(), s.data(), g.data(), chance(0.5) ? &o : nullptr, &loss))) {
            std::vector<float> out(static_cast<size_t>(count * outputs)), losses(rows.size());
            told(epx_score(network, &b, w.data(), s.data(), out.data(), losses.data()));
            told(epx_losses(sets[draw(0, set_count - 1)], static_cast<int32_t>(draw(-1, 3)),
                            0.1f * static_cast<float>(draw(-1, 11)), chance(0.99) ? count : -1, outputs, out.data(),
                            labels.data(), chance(0.9) ? targets.data() : nullptr, losses.data()));
        }
    }
    std::vector<double> times(static_cast<size_t>(epx_times(network, nullptr)));
    epx_times(network, times.data()), epx_times(nullptr, times.data());
    epx_free(network);
}

}  // namespace

int main(int argc, char** argv) {
    const int64_t rounds = argc > 1 ? std::atoll(argv[1]) : 1000;
    generator.seed(argc > 2 ? static_cast<uint64_t>(std::atoll(argv[2])) : 1);
    std::vector<char> names(std::strlen(epx_instruction_sets()) + 1);
    std::memcpy(names.data(), epx_instruction_sets(), names.size());
    std::vector<const char*> sets;
    for (char* name = std::strtok(names.data(), ","); name; name = std::strtok(nullptr, ",")) sets.push_back(name);
    for (int64_t i = 0; i < rounds; i++) round_of(sets.data(), static_cast<int>(sets.size()));
    std::printf("%lld calls did their work, %lld were refused with a message\n", static_cast<long long>(ran),
                static_cast<long long>(refused));
    return ran > 0 && refused > 0 ? 0 : 1;
}
