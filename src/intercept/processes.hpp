// What the wrappers of processes and of syscall() share: vfork, exit, sandboxes and credentials. On
// the program's threads.
#pragma once
#include "intercept/vfork.hpp"
#include "session/session.hpp"

namespace dft::intercept {

// On the thread that is about to call vfork.
void before_vfork() noexcept;
// The process exits without running its destructors.
void process_leaves() noexcept;

// The process is about to enter a sandbox that forbids what the tracer needs: writes what was
// recorded, and stops recording.
void enters_sandbox() noexcept;
// Makes a call that must affect all threads of the process, while ours is away. A child of vfork
// has no thread of ours, and must not stop its parent's.
template <class Call>
auto call_alone(Call call) {
  if (in_vfork_child()) return call();
  const session::Alone alone;
  return call();
}
// The same for a call that gives the process to this user.
template <class Call>
auto call_as(unsigned user, Call call) {
  if (!in_vfork_child()) session::will_become(user);
  return call_alone(call);
}

}  // namespace dft::intercept
