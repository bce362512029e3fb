#include <cstring>

#include "buffer/lane.hpp"
#include "session/session.hpp"
#include "session/state.hpp"
#include "sink/trace_file.hpp"

namespace dft::session {
namespace {

void leave_word_once(Session& s) {
  if (s.word_left || s.config.disable_io) return;
  Kin kin{s.run, s.first, {}};
  std::memcpy(kin.trace_name, s.trace_name, sizeof kin.trace_name);
  s.word_left = leave_word(s.spool_place, s.key, kin);
}

}  // namespace

void will_fork() noexcept {
  buffer::g_forked.store(true);
  Session* s = g_session.load();
  if (s == nullptr || s->config.disable_io) return;
  if (s->word_left && s->io.is_ready_for_children()) return;
  SlowPath slow;
  Locked locked(g_lock);
  if (s->spool == nullptr || is_child(*s)) return;
  leave_word_once(*s);
  s->io.before_fork();
}

void will_exec() noexcept {
  SlowPath slow;
  Locked locked(g_lock);
  Session* s = g_session.load();
  if (s == nullptr || s->spool == nullptr || is_child(*s)) return;
  leave_word_once(*s);
  Locked sink_locked(s->sink->lock());
  s->sink->drain(sink::Sink::Scope::kEverything);
  add_amounts(s->spool_place, s->first, take_unreported(*s));
  s->spool->head().flags |= buffer::kEnded;
}

void will_exec_untraced() noexcept {
  SlowPath slow;
  Locked locked(g_lock);
  Session* s = g_session.load();
  if (s == nullptr || is_child(*s) || !buffer::g_on.exchange(false)) return;
  s->suspended = true;
  if (s->spool != nullptr) close(*s);
}

void exec_failed() noexcept {
  SlowPath slow;
  Locked locked(g_lock);
  Session* s = g_session.load();
  if (s != nullptr && s->suspended) {
    s->suspended = false;
    buffer::g_on.store(true);
  }
  if (s == nullptr || s->spool == nullptr || is_child(*s)) return;
  Locked sink_locked(s->sink->lock());
  s->spool->head().flags &= ~std::uint32_t{buffer::kEnded};
}

void will_become(unsigned user) noexcept {
  constexpr unsigned kUnchanged = ~0u;
  if (user == 0 || user == kUnchanged || sys::call(SYS_geteuid) != 0) return;
  SlowPath slow;
  Locked locked(g_lock);
  Session* s = g_session.load();
  if (s == nullptr || s->spool == nullptr || is_child(*s) || s->given_to == user) return;
  Locked sink_locked(s->sink->lock());
  if (s->sink->is_unused() || !s->sink->drain(sink::Sink::Scope::kEverything)) return;
  const buffer::SpoolHead& head = s->spool->head();
  const sink::FileState file{head.trace_inode, head.trace_size};
  if (sink::give(s->place.directory, s->trace_name, file, user) == 0 && s->spool->give_to(user))
    s->given_to = user;
}

void note_untraced(const char* name, Untraced why) noexcept {
  SlowPath slow;
  Locked locked(g_lock);
  Session* s = g_session.load();
  if (s == nullptr) return;
  if (!is_child(*s)) leave_word_once(*s);
  add_untraced(s->spool_place, s->first, name, why);
}

}  // namespace dft::session
