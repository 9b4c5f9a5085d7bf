// Poles on a cart, balanced by an unstructured network: whole episodes, so that no step crosses the boundary.
// The reference is tasks/physics.py; both give the same bits, so the order of operations matters here.
#include <cmath>
#include <cstring>
#include <vector>

#include "interface.h"

namespace {

constexpr double far_away = 60.0;

double activated(int32_t kind, double x) {
    switch (kind) {
        case 1: return std::tanh(x);
        case 2: return 1.0 / (1.0 + std::exp(-std::fmax(-far_away, std::fmin(far_away, x))));
        case 3: return x > 0.0 ? x : 0.0;
        case 4: return std::sin(x);
        case 5: return std::exp(-std::fmin(far_away, x * x));
        default: return x;
    }
}

void compute(const EpxWiring& net, double* values) {
    for (int32_t step = 0; step < net.steps; ++step)
        for (int32_t place = 0; place < net.computed; ++place) {
            double total = 0.0;
            for (int32_t at = net.offsets[place]; at < net.offsets[place + 1]; ++at)
                total += net.weights[at] * values[net.sources[at]];
            values[net.targets[place]] = activated(net.activations[place], total);
        }
}

// The changes of the state x, x', and of each pole its angle and angular velocity (Wieland 1991).
void changes(const EpxPoles& world, double force, const double* state, double* change) {
    double pull = 0.0, mass = 0.0, grip[2], sines[2], cosines[2];
    for (int32_t pole = 0; pole < world.poles; ++pole) {
        const double angle = state[2 + 2 * pole], speed = state[3 + 2 * pole];
        const double m = world.masses[pole], l = world.lengths[pole];
        const double s = std::sin(angle), c = std::cos(angle);
        const double friction = world.pole_friction * speed / (m * l);
        pull += m * l * speed * speed * s + 0.75 * m * c * (friction + world.gravity * s);
        mass += m * (1.0 - 0.75 * c * c);
        grip[pole] = friction;
        sines[pole] = s;
        cosines[pole] = c;
    }
    const double way = state[1] > 0.0 ? 1.0 : state[1] < 0.0 ? -1.0 : 0.0;
    const double push = (force - world.cart_friction * way + pull) / (world.cart_mass + mass);
    change[0] = state[1];
    change[1] = push;
    for (int32_t pole = 0; pole < world.poles; ++pole) {
        change[2 + 2 * pole] = state[3 + 2 * pole];
        change[3 + 2 * pole] =
            -0.75 / world.lengths[pole] * (push * cosines[pole] + world.gravity * sines[pole] + grip[pole]);
    }
}

void runge_kutta(const EpxPoles& world, double force, double* state) {
    const int32_t size = 2 + 2 * world.poles;
    const double half = world.interval * 0.5, sixth = world.interval / 6.0;
    double one[6], two[6], three[6], four[6], at[6];
    changes(world, force, state, one);
    for (int32_t i = 0; i < size; ++i) at[i] = state[i] + half * one[i];
    changes(world, force, at, two);
    for (int32_t i = 0; i < size; ++i) at[i] = state[i] + half * two[i];
    changes(world, force, at, three);
    for (int32_t i = 0; i < size; ++i) at[i] = state[i] + world.interval * three[i];
    changes(world, force, at, four);
    for (int32_t i = 0; i < size; ++i) state[i] += sixth * (one[i] + 2.0 * (two[i] + three[i]) + four[i]);
}

bool fallen(const EpxPoles& world, const double* state) {
    if (!(std::fabs(state[0]) <= world.track)) return true;
    for (int32_t pole = 0; pole < world.poles; ++pole)
        if (!(std::fabs(state[2 + 2 * pole]) <= world.largest_angle)) return true;
    return false;
}

bool sound(const EpxWiring& net, const EpxPoles& world) {
    const int32_t inputs = world.velocities ? 2 + 2 * world.poles : 1 + world.poles;
    if (world.poles < 1 || world.poles > 2 || net.inputs != inputs || net.outputs != 1 || net.steps < 1) return false;
    if (net.computed != net.nodes - net.inputs || net.computed < 1 || net.offsets[0] != 0) return false;
    for (int32_t place = 0; place < net.computed; ++place) {
        if (net.targets[place] <= net.inputs || net.targets[place] > net.nodes) return false;
        if (net.offsets[place + 1] < net.offsets[place]) return false;
        for (int32_t at = net.offsets[place]; at < net.offsets[place + 1]; ++at)
            if (net.sources[at] < 0 || net.sources[at] > net.nodes) return false;
    }
    return true;
}

}  // namespace

extern "C" int64_t epx_balance(const EpxWiring* net, const EpxPoles* world, double* state, int64_t most,
                               double* unrest, int64_t remembered) try {
    if (!sound(*net, *world)) return -1;
    std::vector<double> values(static_cast<size_t>(net->nodes) + 1, 0.0);
    values[0] = 1.0;
    const int32_t stride = world->velocities ? 1 : 2;
    for (int64_t step = 0; step < most; ++step) {
        for (int32_t input = 0; input < net->inputs; ++input)
            values[1 + input] = state[input * stride] / world->scales[input * stride];
        compute(*net, values.data());
        double force = world->largest_force * std::fmax(-1.0, std::fmin(1.0, values[net->inputs + 1]));
        if (std::fabs(force) < world->least_force) force = force < 0.0 ? -world->least_force : world->least_force;
        for (int32_t round = 0; round < world->rounds; ++round) runge_kutta(*world, force, state);
        if (fallen(*world, state)) return step;
        if (unrest != nullptr)
            unrest[step % remembered] =
                std::fabs(state[0]) + std::fabs(state[1]) + std::fabs(state[2]) + std::fabs(state[3]);
    }
    return most;
} catch (...) {
    return -1;
}
