/* The pieces of C that champion/c_source.py puts together. A piece ends where the next one begins. */
/* piece: header */
#ifndef NAME_H
#define NAME_H
#ifdef __cplusplus
extern "C" {
#endif

/* sizes */

/* functions */
#ifdef __cplusplus
}
#endif
#endif
/* piece: classes_functions */
/* The names of the classes, in UTF-8, in the order of the outputs. */
extern const char *const name_classes[NAME_OUTPUTS];

/* The outputs of one sample; the largest is that of the likeliest class. It has one memory: do not call it from
   two threads at once. */
void name_logits(const float *values, float *logits);

/* Turns logits into probabilities, in place. */
void name_softmax(float *logits);

/* The number of the likeliest class of one sample. */
int name_classify(const float *values);

/* piece: regression_functions */
/* The names of the targets, in UTF-8, in the order of the outputs. */
extern const char *const name_targets[NAME_OUTPUTS];

/* The numbers that are predicted of one sample, each in the unit of its target. It has one memory: do not call it
   from two threads at once. */
void name_predict(const float *values, float *numbers);

/* piece: multilabel_functions */
/* The names of the labels, in UTF-8, in the order of the outputs. */
extern const char *const name_labels[NAME_OUTPUTS];

/* The outputs of one sample; those of labels that it gets are above 0. It has one memory: do not call it from two
   threads at once. */
void name_logits(const float *values, float *logits);

/* Turns logits into the probability of each label, in place. */
void name_sigmoid(float *logits);

/* piece: identity */
static float identity(float v)
{
  return v;
}

/* piece: leaky_relu */
static float leaky_relu(float v)
{
  return v > 0.0f ? v : 0.01f * v;
}

/* piece: relu */
static float relu(float v)
{
  return v > 0.0f ? v : 0.0f;
}

/* piece: elu */
static float elu(float v)
{
  return v > 0.0f ? v : expm1f(v);
}

/* piece: gelu */
static float gelu(float v)
{
  return 0.5f * v * (1.0f + erff(0.70710678f * v));
}

/* piece: silu */
static float silu(float v)
{
  return v / (1.0f + expf(-v));
}

/* piece: smooth */
static float smooth(float v)
{
  return 0.5f * (sqrtf(v * v + 4.0f) + v) - 1.0f;
}

/* piece: conv */
/* Kernels of individual shape, each centred on its position; beyond the edges there are zeros. */
static void conv(const float *in, int channels, int height, int width, const float *weight, const float *bias,
                 const kernel_size *kernels, int nodes, int down, int right, const float *add,
                 float (*activation)(float), float *out)
{
  for (int node = 0; node < nodes; node++) {
    const int tall = kernels[2 * node], wide = kernels[2 * node + 1];
    for (int row = 0; row < height; row += down) {
      const int top = row - tall / 2;
      const int first = top < 0 ? -top : 0, last = top + tall > height ? height - top : tall;
      for (int column = 0; column < width; column += right) {
        const int left = column - wide / 2;
        const int begin = left < 0 ? -left : 0, end = left + wide > width ? width - left : wide;
        float sum = bias ? bias[node] : 0.0f;
        for (int channel = 0; channel < channels; channel++) {
          for (int i = first; i < last; i++) {
            const float *w = weight + (channel * tall + i) * wide;
            const int place = (channel * height + top + i) * width + left;
            for (int j = begin; j < end; j++)
              sum += w[j] * in[place + j];
          }
        }
        if (add)
          sum += *add++;
        *out++ = activation(sum);
      }
    }
    weight += channels * tall * wide;
  }
}

/* piece: full */
static void full(const float *in, int inputs, const float *weight, const float *bias, int nodes,
                 const float *add, float (*activation)(float), float *out)
{
  for (int node = 0; node < nodes; node++) {
    float sum = bias ? bias[node] : 0.0f;
    for (int i = 0; i < inputs; i++)
      sum += weight[i] * in[i];
    if (add)
      sum += *add++;
    *out++ = activation(sum);
    weight += inputs;
  }
}

/* piece: pool */
/* The averages of windows that together cover the maps. */
static void pool(const float *in, int channels, int height, int width, int rows, int columns, float factor,
                 float *out)
{
  for (int channel = 0; channel < channels; channel++, in += height * width)
    for (int row = 0; row < rows; row++)
      for (int column = 0; column < columns; column++) {
        const int top = row * height / rows, bottom = ((row + 1) * height + rows - 1) / rows;
        const int left = column * width / columns, right = ((column + 1) * width + columns - 1) / columns;
        float sum = 0.0f;
        for (int i = top; i < bottom; i++)
          for (int j = left; j < right; j++)
            sum += in[i * width + j];
        *out++ = factor * sum / (float)((bottom - top) * (right - left));
      }
}

/* piece: each */
static void each(const float *in, int channels, int size, const float *weight, const float *bias,
                 const float *add, float (*activation)(float), float *out)
{
  for (int channel = 0; channel < channels; channel++)
    for (int i = 0; i < size; i++) {
      float v = *in++ * (weight ? weight[channel] : 1.0f) + (bias ? bias[channel] : 0.0f);
      if (add)
        v += *add++;
      *out++ = activation(v);
    }
}

/* piece: scaling */
static void scale_input(const float *values, int channels, int size, float *out)
{
  for (int channel = 0; channel < channels; channel++)
    for (int i = 0; i < size; i++)
      *out++ = *values++ * input_scale[channel] + input_shift[channel];
}

/* piece: classes_answers */
void name_softmax(float *logits)
{
  float most = logits[0], sum = 0.0f;
  for (int i = 1; i < NAME_OUTPUTS; i++)
    most = logits[i] > most ? logits[i] : most;
  for (int i = 0; i < NAME_OUTPUTS; i++)
    sum += logits[i] = expf((logits[i] - most) / TEMPERATURE);
  for (int i = 0; i < NAME_OUTPUTS; i++)
    logits[i] /= sum;
}

int name_classify(const float *values)
{
  float logits[NAME_OUTPUTS];
  int best = 0;
  name_logits(values, logits);
  for (int i = 1; i < NAME_OUTPUTS; i++)
    best = logits[i] > logits[best] ? i : best;
  return best;
}

/* piece: multilabel_answers */
void name_sigmoid(float *logits)
{
  for (int i = 0; i < NAME_OUTPUTS; i++)
    logits[i] = 1.0f / (1.0f + expf(-logits[i]));
}

/* piece: classes_main */
    name_logits(values, outputs);
    name_softmax(outputs);
    int best = 0;
    for (int i = 1; i < NAME_OUTPUTS; i++)
      best = outputs[i] > outputs[best] ? i : best;
    printf("%s %.6f\n", name_classes[best], outputs[best]);

/* piece: regression_main */
    name_predict(values, outputs);
    for (int i = 0; i < NAME_OUTPUTS; i++)
      printf(i + 1 < NAME_OUTPUTS ? "%.7g " : "%.7g\n", outputs[i]);

/* piece: multilabel_main */
    name_logits(values, outputs);
    name_sigmoid(outputs);
    for (int i = 0; i < NAME_OUTPUTS; i++)
      printf(i + 1 < NAME_OUTPUTS ? "%.6f " : "%.6f\n", outputs[i]);

/* piece: main */
#ifdef NAME_MAIN
int main(void)
{
  static float values[NAME_INPUTS], outputs[NAME_OUTPUTS];
  int count = 0;
  while (scanf("%f", &values[count]) == 1) {
    if (++count < NAME_INPUTS)
      continue;
    count = 0;
    /* answer */
  }
  if (count || !feof(stdin)) {
    fprintf(stderr, "a sample has %d numbers\n", NAME_INPUTS);
    return 2;
  }
  return 0;
}
#endif
