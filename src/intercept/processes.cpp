#include "intercept/processes.hpp"

#include "intercept/intercept.hpp"
#include "intercept/probe.hpp"

namespace dft::intercept {

void before_vfork() noexcept {
  buffer::ThreadState* t = watch(Category::POSIX);
  if (t == nullptr || in_vfork_child()) return;
  session::will_fork();
  const std::uint64_t now = record::ticks();
  record_call<Row::vfork>(*t, nullptr, -1, now, now, Void{});
  t_vforked_from = sys::process_id();
  t->handed_seen = buffer::kOutOfStep;
}

void enters_sandbox() noexcept {
  if (watch(Category::POSIX) == nullptr && watch(Category::STDIO) == nullptr) return;
  if (in_vfork_child()) return;
  session::at_exit();
  session::abandon();
  end();
}

void process_leaves() noexcept {
  if (t_slow == 0 && !in_vfork_child()) session::at_exit();
}

}  // namespace dft::intercept
