// Calls that change what the process may do: credentials, namespaces, sandboxes.
#include "base/message.hpp"
#include "buffer/lane.hpp"
#include "session/session.hpp"
#include "session/state.hpp"
#include "sink/trace_file.hpp"

namespace dft::session {

Alone::Alone() noexcept {
  if (Pipeline* pipeline = g_pipeline.load()) {
    writer_ = &pipeline->writer;
    writer_->hold();
  }
}

Alone::~Alone() {
  if (writer_ != nullptr) writer_->let_go();
}

void will_become(unsigned user) noexcept {
  constexpr unsigned kUnchanged = ~0u;
  if (user == 0 || user == kUnchanged || sys::call(SYS_geteuid) != 0) return;
  SlowPath slow;
  Locked locked(g_lock);
  Session* s = g_session.load();
  if (s == nullptr || s->pipeline == nullptr || is_child(*s) || s->given_to == user) return;
  Pipeline& pipeline = *s->pipeline;
  Locked sink_locked(pipeline.sink.lock());
  if (pipeline.sink.is_unused() || !pipeline.sink.drain(sink::Sink::Scope::kEverything)) return;
  const buffer::SpoolHead& head = pipeline.spool.head();
  const sink::FileState file{head.trace_inode, head.trace_size};
  if (sink::give(s->place.directory, s->trace_name, file, user) == 0 &&
      pipeline.spool.give_to(user)) {
    s->given_to = user;
  }
}

void abandon() noexcept {
  buffer::g_on.store(false);
  const Session* s = g_session.load();
  if (s != nullptr && is_talkative(*s))
    say("process %u enters a sandbox: nothing is recorded from here on", s->pid);
}

}  // namespace dft::session
