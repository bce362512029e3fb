// One call of MPI by the program: the real function, and what is recorded of it. On the program's
// threads.
#pragma once
#include "intercept/mpi_words.hpp"

namespace dft::intercept::mpi {

using Invoke = int (*)(void* real, const Word* words);
// `caller` is the return address of the wrapper.
int traced(const Given& given, void* real, Invoke invoke, const void* caller);

}  // namespace dft::intercept::mpi
