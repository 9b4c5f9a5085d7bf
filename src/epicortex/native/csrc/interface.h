/* The C boundary. Every function that can fail returns 0, or one of the codes below with epx_error() saying why.
   Nothing is kept of what is passed in; no function throws. One network must not be used by two threads at once. */
#ifndef EPICORTEX_INTERFACE_H
#define EPICORTEX_INTERFACE_H
#include <stdint.h>

#if defined(_WIN32)
#define EPX_API __declspec(dllexport)
#else
#define EPX_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum { EPX_OK = 0, EPX_REFUSED = 1, EPX_MEMORY = 2, EPX_FAILED = 3 };

typedef struct {
    const void* data;          /* [samples][channels][height][width], uint8 or float */
    int64_t samples, channels, height, width;
    int32_t bytes;             /* 1: uint8 */
    int32_t crop;              /* 1: windows of the program's size; 0: samples of another size are resized */
    const int64_t* rows;       /* [count] */
    int64_t count;
    const float* scale;        /* [channels]: x · scale + offset */
    const float* offset;
    const int32_t* moves;      /* [count][2] or null: where each window begins */
    const uint8_t* flips;      /* [count] or null: mirrored in the last dimension */
    const int64_t* labels;     /* [count], softmax */
    const float* targets;      /* [count][outputs], other losses */
} EpxBatch;

typedef struct {               /* weights that take orthogonal steps together */
    int64_t first, count;      /* where they are among the parameters */
    int64_t rows, columns;     /* of the matrix that they are entries of; others are 0 */
    const int32_t* places;     /* [count]: where each of them stands in it, row by row */
} EpxMatrix;

typedef struct {
    int32_t kind;              /* 0 SGD, 1 Adadelta, 2 Adam, 3 AdamW, 4 SGD with orthogonal steps for matrices */
    int32_t nesterov, first_step, reserved;
    float *first, *second;     /* memory, as long as the parameters; null where it has none */
    const float* decayed;      /* factors of weight decay, or null */
    float rate, decay, momentum, dampening, rho, epsilon, beta1, beta2, correction1, correction2;
    const EpxMatrix* matrices; /* [matrix_count], in the order of the parameters; each a run of its own */
    int64_t matrix_count;
    float matrix_rate, matrix_decay;
} EpxOptimiser;

typedef struct {               /* an unstructured network; node 0 is always 1 */
    int32_t inputs, outputs, nodes, steps, computed, reserved;
    const int32_t *targets, *activations; /* [computed] */
    const int32_t* offsets;    /* [computed + 1]: where the connections of each target begin */
    const int32_t* sources;
    const double* weights;
} EpxWiring;

typedef struct {
    int32_t poles, velocities, rounds, reserved;
    double gravity, cart_mass, cart_friction, pole_friction, interval, track, largest_angle, largest_force, least_force;
    double masses[2], lengths[2], scales[6];
} EpxPoles;

EPX_API int32_t epx_format(void);
EPX_API const char* epx_error(void);
EPX_API const char* epx_instruction_sets(void);  /* those this machine can run, best first, with commas */
EPX_API int32_t epx_create(const int64_t* program, int64_t count, const char* instruction_set, void** network);
EPX_API void epx_free(void* network);
EPX_API int64_t epx_parameters(void* network);
EPX_API int64_t epx_state(void* network);
EPX_API int64_t epx_outputs(void* network);
EPX_API int64_t epx_workspace(void* network);
/* A training step: the loss, gradients, and, with an optimiser, new parameters. */
EPX_API int32_t epx_step(void* network, const EpxBatch* batch, float* parameters, float* state, float* gradient,
                         const EpxOptimiser* optimiser, double* loss);
/* Seconds by step and kind of work (stopwatch.h), [steps + 1][kinds]; null starts the clock. How many there are. */
EPX_API int64_t epx_times(void* network, double* seconds);
EPX_API int32_t epx_score(void* network, const EpxBatch* batch, const float* parameters, const float* state,
                          float* outputs, float* losses);
/* The loss of each of `count` answers [count][outputs], without class weights. `kind` is that of a program; softmax
   takes labels, which are smoothed, the others targets [count][outputs]. */
EPX_API int32_t epx_losses(const char* instruction_set, int32_t kind, float smoothing, int64_t count, int64_t outputs,
                           const float* answers, const int64_t* labels, const float* targets, float* losses);
EPX_API int32_t epx_optimise(const char* instruction_set, int64_t count, float* parameters, const float* gradient,
                             const EpxOptimiser* optimiser);
EPX_API int32_t epx_average(const char* instruction_set, int64_t count, float* average, const float* values,
                            float weight);
/* The steps until a pole falls, at most `most`; -1 where the network does not fit. `state` is changed, and the last
   `remembered` sums of |x|, |x'|, |angle| and |angle'| are left in `unrest`, where it is not null. */
EPX_API int64_t epx_balance(const EpxWiring* network, const EpxPoles* world, double* state, int64_t most,
                            double* unrest, int64_t remembered);
EPX_API double epx_peak(const char* instruction_set, int64_t rounds); /* 12 multiply-adds of a register each */

#ifdef __cplusplus
}
#endif
#endif
