// The calls of MPI and of MPI-IO: their wrappers, as a layer of library_layers.hpp. The settings decide
// which of the two categories is recorded. Called when interception begins and ends.
#pragma once
#include "intercept/library_layers.hpp"

namespace dft::intercept::mpi {

extern LibraryLayer g_layer;

void watch_mpi(bool calls, bool files) noexcept;

}  // namespace dft::intercept::mpi
