// The beginnings and ends of processes, seen from inside.
#pragma once
#include "intercept/vfork.hpp"
#include "session/session.hpp"

namespace dft::intercept {

// On the thread that is about to call vfork.
void before_vfork() noexcept;
// The process leaves without running its destructors.
void process_leaves() noexcept;

// The process is about to forbid itself what the tracer needs: what was recorded is written, and
// nothing is recorded from then on.
void enters_sandbox() noexcept;
// A call that changes what all threads of the process must have in common. A child of vfork has
// none of ours, and must not send its parent's away.
template <class Call>
auto call_alone(Call call) {
  if (in_vfork_child()) return call();
  const session::Alone alone;
  return call();
}
// One of them, after which the process acts for this user.
template <class Call>
auto call_as(unsigned user, Call call) {
  if (!in_vfork_child()) session::will_become(user);
  return call_alone(call);
}

}  // namespace dft::intercept
