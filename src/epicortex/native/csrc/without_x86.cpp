// On other machines the portable kernels are all there is.
#include "kernels.h"

namespace epicortex {
const Kernels* avx512_kernels() { return nullptr; }
const Kernels* avx2_kernels() { return nullptr; }
}  // namespace epicortex
