// Exec: a trace goes on in the next program, or ends before one that cannot be traced.
#include "buffer/lane.hpp"
#include "session/ring_gap.hpp"
#include "session/session.hpp"
#include "session/state.hpp"

namespace dft::session {

void will_exec() noexcept {
  before_close(Closing::kForExec);
  SlowPath slow;
  Locked locked(g_lock);
  Session* s = g_session.load();
  if (s == nullptr || s->pipeline == nullptr || is_child(*s)) return;
  write_run_note_once(*s);
  let_observer_finish(*s);
  Locked sink_locked(s->pipeline->sink.lock());
  write_out(*s->pipeline, sink_locked);
  add_totals(s->spool_place, s->first, take_unreported(*s));
  s->pipeline->spool.head().flags |= buffer::kEnded;
}

void will_exec_untraced() noexcept {
  before_close(Closing::kForExec);
  SlowPath slow;
  Locked locked(g_lock);
  Session* s = g_session.load();
  if (s == nullptr || is_child(*s) || !buffer::g_on.exchange(false)) return;
  s->suspended = true;
  if (s->pipeline != nullptr) close(*s);
}

void exec_failed() noexcept {
  SlowPath slow;
  Locked locked(g_lock);
  Session* s = g_session.load();
  if (s != nullptr && s->suspended) {
    s->suspended = false;
    buffer::g_on.store(true);
  }
  if (s == nullptr || s->pipeline == nullptr || is_child(*s)) return;
  Locked sink_locked(s->pipeline->sink.lock());
  s->pipeline->spool.head().flags &= ~std::uint32_t{buffer::kEnded};
}

void note_untraced(const char* name, Untraced why) noexcept {
  SlowPath slow;
  Locked locked(g_lock);
  Session* s = g_session.load();
  if (s == nullptr) return;
  if (!is_child(*s)) write_run_note_once(*s);
  add_untraced(s->spool_place, s->first, name, why);
}

}  // namespace dft::session
