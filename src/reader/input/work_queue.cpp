// Cuts files into work items. Called by worker threads, one at a time per file.
#include "reader/input/work_queue.hpp"

#include <algorithm>
#include <cstring>

namespace dft::reader {
namespace {

constexpr std::size_t kRead = std::size_t{256} << 10;

}  // namespace

FileQueue::FileQueue(std::string path, std::uint32_t index, std::uint64_t most)
    : file_(std::make_shared<InFile>()) {
  file_->most = most;
  file_->path = std::move(path);
  file_->index = index;
}

void FileQueue::note(WorkItem& item, Trouble kind, std::uint64_t offset, std::uint64_t size,
                     std::string detail) {
  item.damage.note({kind, file_->index, item.ordinal, offset, 0, size, std::move(detail)});
}

bool FileQueue::next(WorkItem& item) {
  if (done) return false;
  item.file = file_;
  item.ordinal = ordinal_++;
  item.damage = {};
  item.text.clear();
  item.text.shrink(8 * kItemText);  // after a line that was very long
  item.size = 0;
  item.content = WorkItem::Content::kText;
  if (!opened_ && !open(item)) return true;  // with a note of why, and nothing else
  item.handle = file_->handle;
  const bool got = file_->compressed                        ? compressed(item)
                   : file_->layout == FileLayout::kDocument ? stream(item)
                                                            : range(item);
  if (!got) {
    done = true;
    file_->handle.reset();
    // A problem found at the end of the file still has to reach the caller.
    return !item.damage.problems.empty();
  }
  return true;
}

bool FileQueue::open(WorkItem& item) {
  opened_ = true;
  if (!open_file(*file_)) {
    note(item, Trouble::kCannotRead, 0, 0, std::strerror(file_->error));
    file_->handle.reset();
    done = true;
    return false;
  }
  if (file_->size == 0) {
    note(item, Trouble::kEmptyFile, 0, 0);
    file_->handle.reset();
    done = true;
    return false;
  }
  if (file_->ours && !file_->bracket) note(item, Trouble::kNoBracket, 0, 0);
  return true;
}

bool FileQueue::range(WorkItem& item) {
  if (next_offset_ >= file_->size) return false;
  item.content = WorkItem::Content::kRange;
  item.offset = next_offset_;
  item.size = std::min<std::uint64_t>(kItemText, file_->size - next_offset_);
  next_offset_ += item.size;
  return true;
}

bool FileQueue::compressed(WorkItem& item) {
  for (;;) {
    if (streaming_) {
      if (stream(item)) return true;
      streaming_ = false;
      next_offset_ = position();
    }
    if (next_offset_ >= file_->size) return false;
    if (group(item)) return true;
    // Not ours, or larger than a worker should hold: followed as a stream.
    streaming_ = true;
    in_member_ = false;
    carry_.clear();
    go_to(next_offset_);
    if (inflater_ == nullptr) inflater_ = std::make_unique<Inflater>();
    (void)after_member(item);
  }
}

// Members of ours, by the sizes in their headers.
bool FileQueue::group(WorkItem& item) {
  if (file_->layout == FileLayout::kDocument) return false;
  std::uint64_t at = next_offset_;
  std::uint64_t text = 0;
  char bytes[8 + format::kMemberHeader];
  long got = file_->handle->read(at, bytes + 8, format::kMemberHeader);
  bool suspect = false;
  while (at < file_->size) {
    format::MemberHeader header;
    if (got < static_cast<long>(format::kMemberHeader) ||
        !format::read_member_header({bytes + 8, format::kMemberHeader}, header)) {
      break;
    }
    const std::uint64_t end = at + header.size;
    suspect = end > file_->size;
    std::uint32_t size_of_text = 0;
    if (!suspect) {
      got = file_->handle->read(end - 8, bytes, sizeof bytes) - 8;
      if (got < 0) break;
      std::memcpy(&size_of_text, bytes + 4, 4);
      // If no member follows at the end that the header gives, the header is wrong.
      suspect = end != file_->size && !(got >= 3 && format::is_gzip({bytes + 8, 3}));
    }
    if (suspect || (size_of_text > kMaxMember && at == next_offset_)) break;
    if (at != next_offset_ && (end - next_offset_ > kItemBytes || text + size_of_text > kItemText))
      break;
    text += size_of_text;
    at = end;
  }
  if (at == next_offset_) {
    if (!suspect) return false;
    const std::uint64_t next = find_header(next_offset_ + format::kMemberHeader, false);
    item.content = WorkItem::Content::kSuspect;
    item.offset = next_offset_;
    item.size = next - next_offset_;
    next_offset_ = next;
    return true;
  }
  item.content = WorkItem::Content::kMembers;
  item.offset = next_offset_;
  item.size = at - next_offset_;
  next_offset_ = at;
  return true;
}

void FileQueue::go_to(std::uint64_t offset) {
  raw_offset_ = offset;
  raw_at_ = 0;
  raw_.clear();
}

// At least `wanted` bytes at the position, if the file has them.
bool FileQueue::raw_ready(std::size_t wanted) {
  const std::size_t left = raw_.size() - raw_at_;
  if (left >= wanted) return true;
  raw_.reserve(kRead);
  std::memmove(raw_.data(), raw_.data() + raw_at_, left);
  raw_offset_ += raw_at_;
  raw_at_ = 0;
  raw_.resize(kRead);
  const long got = file_->handle->read(raw_offset_ + left, raw_.data() + left, kRead - left);
  raw_.resize(left + static_cast<std::size_t>(std::max(got, 0L)));
  return raw_.size() >= wanted;
}

// The next header at or after `from`; the end of the file if there is none.
std::uint64_t FileQueue::find_header(std::uint64_t from, bool any) {
  Buffer window;
  for (std::uint64_t at = from; at < file_->size;) {
    window.resize(kItemText);
    const long got = file_->handle->read(at, window.data(), kItemText);
    if (got < static_cast<long>(format::kMemberHeader)) break;
    window.resize(static_cast<std::size_t>(got));
    const std::size_t found = find_member(window.view(), 0, any);
    if (found != std::string_view::npos) return at + found;
    at += static_cast<std::uint64_t>(got) - format::kMemberHeader + 1;
  }
  return file_->size;
}

// Between members: begins the next one, steps over rubbish. kEnd: the stream ends here, because the
// file does or because members of ours follow.
FileQueue::Fill FileQueue::after_member(WorkItem& item) {
  for (;;) {
    if (!raw_ready(format::kMemberHeader) && raw_.size() == raw_at_) return Fill::kEnd;
    const std::string_view here = raw_.view().substr(raw_at_);
    format::MemberHeader header;
    if (format::is_gzip(here)) {
      const bool ours = file_->layout == FileLayout::kLines &&
                        format::read_member_header(here, header) && position() != member_start_ &&
                        position() != next_offset_;
      if (ours) return Fill::kEnd;
      member_start_ = position();
      inflater_->begin();
      in_member_ = true;
      member_text_ = false;
      return Fill::kMore;
    }
    const std::uint64_t next = find_header(position() + 1, true);
    note(item, Trouble::kRubbish, position(), next - position());
    go_to(next);
    next_offset_ = next;
    if (next >= file_->size) return Fill::kEnd;
  }
}

FileQueue::Fill FileQueue::fill_plain(Buffer& text, WorkItem& item) {
  const std::size_t before = text.size();
  text.resize(before + kItemText);
  const long got = file_->handle->read(next_offset_, text.data() + before, kItemText);
  text.resize(before + static_cast<std::size_t>(std::max(got, 0L)));
  if (got <= 0) return Fill::kEnd;
  item.damage.bytes_read += static_cast<std::uint64_t>(got);
  next_offset_ += static_cast<std::uint64_t>(got);
  return Fill::kMore;
}

// Appends about a item of text.
FileQueue::Fill FileQueue::fill(Buffer& text, WorkItem& item) {
  if (!file_->compressed) return fill_plain(text, item);
  const std::size_t most = text.size() + kItemText;
  while (text.size() < most) {
    if (!in_member_ && after_member(item) == Fill::kEnd) return Fill::kEnd;
    if (!raw_ready(1)) {
      // A member with a broken header swallowed the rest of the file; members of ours follow it.
      const std::uint64_t next =
          member_text_ ? file_->size : find_header(member_start_ + format::kMemberHeader, false);
      if (next < file_->size) {
        note(item, Trouble::kBadMember, member_start_, next - member_start_);
        item.damage.bytes_read -= position() - next;  // they are read again
        go_to(next);
        in_member_ = false;
        continue;
      }
      note(item, Trouble::kCutMember, member_start_, position() - member_start_);
      in_member_ = false;
      return Fill::kEnd;
    }
    std::size_t used = 0;
    const std::size_t before = text.size();
    const Inflated result = inflater_->piece(raw_.view().substr(raw_at_), most, text, used);
    raw_at_ += used;
    item.damage.bytes_read += used;
    member_text_ = member_text_ || text.size() > before;
    if (result == Inflated::kWhole) {
      ++item.damage.members;
      in_member_ = false;
    } else if (result == Inflated::kBad) {
      in_member_ = false;
      const std::uint64_t next = find_header(member_start_ + 18, true);
      note(item, Trouble::kBadMember, member_start_, next - member_start_);
      go_to(next);
    }
  }
  return Fill::kMore;
}

bool FileQueue::stream(WorkItem& item) {
  const bool document = file_->layout == FileLayout::kDocument;
  Buffer& text = item.text;
  text.append(carry_.view());
  item.offset = file_->compressed ? (in_member_ ? member_start_ : position()) : carry_offset_;
  carry_.clear();
  for (;;) {
    const std::size_t before = text.size();
    const Fill state = fill(text, item);
    std::size_t cut = std::string_view::npos;
    if (document) {
      cut = cutter_.scan(text.view(), before);
      const std::size_t begin = cutter_.begin();
      if (cut != std::string_view::npos) {
        if (cutter_.inside()) {
          carry_.append(text.view().substr(cut));
          carry_offset_ = next_offset_ - carry_.size();
        }
        const std::size_t start = std::min(begin, cut);
        std::memmove(text.data(), text.data() + start, cut - start);
        text.resize(cut - start);
        cutter_.drop(cut);
        return true;
      }
      if (!cutter_.inside()) {
        cutter_.drop(text.size());
        text.clear();
      }
    } else {
      const std::size_t last = text.view().substr(before).rfind('\n');
      if (last != std::string_view::npos) cut = before + last + 1;
      if (skipping_ && cut != std::string_view::npos) {
        const std::size_t first = text.view().find('\n') + 1;
        std::memmove(text.data(), text.data() + first, text.size() - first);
        text.resize(text.size() - first);
        cut -= first;
        skipping_ = false;
      }
      if (cut != std::string_view::npos && !skipping_ && state == Fill::kMore) {
        carry_.append(text.view().substr(cut));
        text.resize(cut);
        return true;
      }
    }
    if (state == Fill::kEnd) {
      // Half a line at the end of half a member is not a trouble of its own.
      if (!document && item.damage.count(Trouble::kCutMember) != 0) {
        text.resize(text.view().rfind('\n') + 1);
      }
      return text.size() != 0 || !item.damage.problems.empty();
    }
    if (text.size() > kMaxLine || (skipping_ && text.size() > kItemText)) {
      if (!skipping_) note(item, Trouble::kLongLine, item.offset, text.size());
      skipping_ = !document;
      cutter_.drop(text.size());
      text.clear();
    }
  }
}

WorkQueue::WorkQueue(const std::vector<std::string>& paths, bool ordered,
                     const std::vector<std::uint64_t>& most)
    : ordered_(ordered) {
  queues_.reserve(paths.size());
  for (const std::string& path : paths) {
    const std::size_t index = queues_.size();
    queues_.push_back(std::make_unique<FileQueue>(path, static_cast<std::uint32_t>(index),
                                                  index < most.size() ? most[index] : UINT64_MAX));
  }
}

bool WorkQueue::next(WorkItem& item) {
  for (;;) {
    std::size_t at = 0;
    {
      const std::lock_guard lock(mutex_);
      at = first_;
    }
    if (at == queues_.size()) return false;
    // Skip files that other workers hold; if they hold all of them, wait for the first.
    std::unique_lock<std::mutex> lock;
    if (!ordered_) {
      for (std::size_t i = at; i < queues_.size() && !lock.owns_lock(); ++i) {
        lock = std::unique_lock(queues_[i]->mutex, std::try_to_lock);
        if (lock.owns_lock()) {
          at = i;
          if (queues_[i]->done) lock.unlock();
        }
      }
    }
    if (!lock.owns_lock()) {
      {
        const std::lock_guard guard(mutex_);
        at = first_;
      }
      if (at == queues_.size()) return false;
      lock = std::unique_lock(queues_[at]->mutex);
    }
    if (!queues_[at]->done && queues_[at]->next(item)) return true;
    lock.unlock();
    const std::lock_guard guard(mutex_);
    while (first_ < queues_.size()) {
      const std::unique_lock<std::mutex> look(queues_[first_]->mutex, std::try_to_lock);
      if (!look.owns_lock() || !queues_[first_]->done) break;
      ++first_;
    }
  }
}

std::vector<std::shared_ptr<InFile>> WorkQueue::files() const {
  std::vector<std::shared_ptr<InFile>> out;
  out.reserve(queues_.size());
  for (const auto& queue : queues_) out.push_back(queue->file());
  return out;
}

}  // namespace dft::reader
