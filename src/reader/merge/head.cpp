// The records that a merge makes itself: who the processes are, and how the clocks differ.
#include <algorithm>
#include <tuple>

#include "reader/merge/plan.hpp"
#include "reader/merge/rewrite.hpp"
#include "reader/parse/text_map.hpp"
#include "reader/write/write.hpp"

namespace dft::reader {
namespace {

void member(std::string& out, std::string_view key, std::string_view text) {
  if (text.empty()) return;
  out += ",\"";
  out += key;
  out += "\":\"";
  append_escaped(out, text);
  out += '"';
}
void member(std::string& out, std::string_view key, std::int64_t number) {
  out += ",\"";
  out += key;
  out += "\":";
  append_number(out, number);
}

void open_record(std::string& out, std::string_view name, std::int64_t pid, std::int64_t tid) {
  out += "{\"id\":0,\"name\":\"";
  out += name;
  out += "\",\"cat\":\"dftracer\",\"pid\":";
  append_number(out, pid);
  out += ",\"tid\":";
  append_number(out, tid);
  out += ",\"ph\":\"M\",\"args\":{";
}

}  // namespace

void Plan::head_of(const MergedProcess& process, std::string& out, std::uint32_t& lines) const {
  std::vector<const Fragment*> sorted(process.fragments.begin(), process.fragments.end());
  std::sort(sorted.begin(), sorted.end(), [](const Fragment* a, const Fragment* b) {
    return std::tie(a->source, a->host) < std::tie(b->source, b->host);
  });
  std::set<std::string> threads;
  for (const Fragment* one : sorted) {
    const SurveyedProcess& facts = one->facts;
    open_record(out, kProcessRecord, process.pid, process.pid);
    out += "\"name\":\"";
    append_escaped(out, process.name);
    out += '"';
    member(out, "value", one->source);
    member(out, "kind", one->keyed ? "process" : "trace");
    if (one->pid.is_number) {
      member(out, "pid", one->pid.value);
    } else {
      out += ",\"pid\":\"" + one->pid.text + '"';
    }
    member(out, "host", one->host);
    member(out, "run", facts.run);
    if (facts.rank >= 0) member(out, "rank", facts.rank);
    if (facts.parent >= 0) member(out, "parent", facts.parent);
    member(out, "program", facts.program);
    member(out, "names", join_lines(facts.names));
    member(out, "labels", join_lines(facts.labels));
    if (process.shift_us != 0) member(out, "shift", process.shift_us);
    out += "}}\n";
    ++lines;
    threads.insert(facts.threads.begin(), facts.threads.end());
  }
  for (const std::string& thread : threads) {
    open_record(out, "thread_name", process.pid, thread_number(process.pid, thread));
    out += "\"name\":\"" + thread + "\",\"value\":\"thread_name\",\"by\":\"merge\"}}\n";
    ++lines;
  }
  // torch.profiler says the rank once a file, and the file is gone.
  const bool keyed =
      std::any_of(sorted.begin(), sorted.end(), [](const Fragment* one) { return one->keyed; });
  if (process.rank >= 0 && !keyed) {
    open_record(out, "PR", process.pid, process.pid);
    out +=
        "\"name\":\"rank\",\"value\":\"" + std::to_string(process.rank) + "\",\"by\":\"merge\"}}\n";
    ++lines;
  }
  open_record(out, "process_name", process.pid, process.pid);
  out += "\"name\":\"";
  append_escaped(out, process.name);
  out += "\",\"value\":\"process_name\",\"by\":\"merge\"}}\n";
  open_record(out, "process_sort_index", process.pid, process.pid);
  out += "\"sort_index\":";
  append_number(out, process.order);
  out += ",\"by\":\"merge\"}}\n";
  lines += 2;
}

void Plan::clock_records(std::string& out, std::uint32_t& lines) const {
  for (const HostClock& clock : clocks_) {
    const std::int64_t pid = order_[0]->pid;
    open_record(out, kClockRecord, pid, pid);
    out += "\"name\":\"clock_offset\"";
    member(out, "value", clock.host);
    member(out, "against", clock.reference);
    member(out, "offset_ns", clock.offset_ns);
    member(out, "least_ns", clock.least_ns);
    member(out, "most_ns", clock.most_ns);
    member(out, "rounds", static_cast<std::int64_t>(clock.rounds));
    out += clock.applied ? ",\"applied\":true}}\n" : ",\"applied\":false}}\n";
    ++lines;
  }
}

std::string Plan::head(std::uint32_t& lines) const {
  std::string out;
  for (const MergedProcess* process : order_) head_of(*process, out, lines);
  clock_records(out, lines);
  return out;
}

}  // namespace dft::reader
