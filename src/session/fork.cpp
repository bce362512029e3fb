// Fork: what a parent does before it, and a child at its first event or stop.
#include <pthread.h>

#include <cstring>

#include "buffer/lane.hpp"
#include "buffer/names.hpp"
#include "session/ring_gap.hpp"
#include "session/session.hpp"
#include "session/state.hpp"

namespace dft::session {
namespace {

// A program with one thread must have one at the fork, as far as it and its runtime can see.
void send_writer_away() {
  if (Pipeline* pipeline = g_pipeline.load()) pipeline->writer.pause();
}

void bring_writer_back() {
  if (Pipeline* pipeline = g_pipeline.load()) {
    const SlowPath slow;
    pipeline->writer.resume_watch();
  }
}

}  // namespace

bool watch_forks() { return ::pthread_atfork(send_writer_away, bring_writer_back, nullptr) == 0; }

void write_run_note_once(Session& s) {
  if (s.has_run_note || s.config.disable_io) return;
  RunIdentity identity{s.run, s.first, {}};
  std::memcpy(identity.trace_name, s.trace_name, sizeof identity.trace_name);
  s.has_run_note = write_run_note(s.spool_place, s.key, identity);
}

void will_fork() noexcept {
  buffer::g_forked.store(true);
  Session* s = g_session.load();
  if (s == nullptr || s->config.disable_io) return;
  if (s->has_run_note && s->io.is_ready_for_children()) return;
  SlowPath slow;
  Locked locked(g_lock);
  if (s->pipeline == nullptr || is_child(*s)) return;
  write_run_note_once(*s);
  s->io.before_fork();
}

void leave_parent(Session& s) {
  t_vforked_from = 0;
  buffer::new_epoch();
  g_pipeline.store(nullptr);
  buffer::g_spool.store(nullptr);
  buffer::g_names.publish_to(nullptr);
  if (s.pipeline != nullptr) {
    s.rate = s.pipeline->spool.clock_map().rate();
    s.pipeline->spool.retire(false);
  }
  s.pipeline = nullptr;
  s.trace_name[0] = '\0';
  s.spool_pointer[0] = '\0';
  s.next_id = kFirstId;
  s.has_run_note = false;
  s.reported = {};
  s.recovered_for = {};
  s.cpu_counts = false;
  buffer::reset_tallies(buffer::t_thread.tally);
  g_ring_gap.rings.store(0);
  g_ring_gap.requests.store(0);
}

}  // namespace dft::session
