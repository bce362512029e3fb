// How two rows of the statistics become one.
#include "reader/stats/rows.hpp"

namespace dft::reader {

void Bytes::add(const Bytes& other) {
  add_saturated(read, other.read);
  add_saturated(written, other.written);
  read_unknown += other.read_unknown;
  write_unknown += other.write_unknown;
}

void Bytes::take_away(const Bytes& other) {
  read -= std::min(read, other.read);
  written -= std::min(written, other.written);
  read_unknown -= other.read_unknown;
  write_unknown -= other.write_unknown;
}

void CallTotals::add(const CallTotals& other) {
  count += other.count;
  add_saturated(total, other.total);
  least = std::min(least, other.least);
  most = std::max(most, other.most);
  bytes.add(other.bytes);
  durations.add(other.durations);
}

void PathRow::add(const PathRow& other) {
  count += other.count;
  add_saturated(total, other.total);
  reads += other.reads;
  writes += other.writes;
  bytes.add(other.bytes);
  add_saturated(mapped, other.mapped);
}

void ProcessRow::add(const ProcessRow& other) {
  seen = std::min(seen, other.seen);
  events += other.events;
  records += other.records;
  add_saturated(total, other.total);
  bytes.add(other.bytes);
  threads.insert(other.threads.begin(), other.threads.end());
  if (other.timed) {
    first = timed ? std::min(first, other.first) : other.first;
    last = timed ? std::max(last, other.last) : other.last;
    timed = true;
  }
  if (other.began_timed) begin_at(other.began);
  if (other.ended_timed) finish_at(other.ended);
  starts += other.starts;
  ends += other.ends;
  recovered = recovered || other.recovered;
  lost += other.lost;
  if (other.end_at.block != ~std::uint64_t{0} &&
      (end_at.block == ~std::uint64_t{0} || end_at < other.end_at)) {
    end_at = other.end_at;
    promised = other.promised;
    ring_requests = other.ring_requests;
    cpu = other.cpu;
    cpu_wait = other.cpu_wait;
  }
  if (other.starts != 0 && (starts == other.starts || start_at < other.start_at)) {
    start_at = other.start_at;
    ppid = other.ppid;
    if (texts_ != nullptr || other.texts_ != nullptr) {
      ProcessTexts fresh = other.texts();
      fresh.rank = texts().rank;
      fresh.name = texts().name;
      edit_texts() = std::move(fresh);
    }
  }
  // Equal in all records of a process, but for damage; the smaller one, so that order is no matter.
  const auto keep = [](std::string& mine, const std::string& theirs) {
    if (mine.empty() || (!theirs.empty() && theirs < mine)) mine = theirs;
  };
  if (other.texts_ != nullptr) {
    keep(edit_texts().rank, other.texts().rank);
    keep(edit_texts().name, other.texts().name);
  }
}

const ProcessTexts& ProcessRow::texts() const {
  static const ProcessTexts kNothing;
  return texts_ != nullptr ? *texts_ : kNothing;
}

ProcessTexts& ProcessRow::edit_texts() {
  // Another row may share them: rows are copied with the statistics that they are part of.
  if (texts_ == nullptr) {
    texts_ = std::make_shared<ProcessTexts>();
  } else if (texts_.use_count() > 1) {
    texts_ = std::make_shared<ProcessTexts>(*texts_);
  }
  return *texts_;
}

void FileFacts::add(const FileFacts& other, std::size_t samples) {
  if (other.timed) {
    time(other.first, other.last);
  }
  for (const auto& [key, count] : other.metadata) metadata[key] += count;
  sample.insert(sample.end(), other.sample.begin(), other.sample.end());
  std::sort(sample.begin(), sample.end());
  if (sample.size() > samples) sample.resize(samples);
}

}  // namespace dft::reader
