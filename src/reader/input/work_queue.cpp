#include "reader/input/work_queue.hpp"

#include <algorithm>
#include <cstring>

namespace dft::reader {
namespace {

constexpr std::size_t kRead = std::size_t{256} << 10;

}  // namespace

FileFeed::FileFeed(std::string path, std::uint32_t index, std::uint64_t most)
    : file_(std::make_shared<File>()) {
  file_->most = most;
  file_->path = std::move(path);
  file_->index = index;
}

void FileFeed::note(Piece& piece, Trouble kind, std::uint64_t offset, std::uint64_t size,
                    std::string detail) {
  piece.report.note({kind, file_->index, piece.ordinal, offset, 0, size, std::move(detail)});
}

bool FileFeed::next(Piece& piece) {
  if (done) return false;
  piece.file = file_;
  piece.ordinal = ordinal_++;
  piece.report = {};
  piece.text.clear();
  piece.text.shrink(8 * kPieceText);  // after a line that was very long
  piece.size = 0;
  piece.what = Piece::What::kText;
  if (!opened_ && !open(piece)) return true;  // with a note of why, and nothing else
  piece.handle = file_->handle;
  const bool got = file_->compressed                  ? compressed(piece)
                   : file_->shape == Shape::kDocument ? stream(piece)
                                                      : range(piece);
  if (!got) {
    done = true;
    file_->handle.reset();
    // A note that came with the end still has to be told.
    return !piece.report.problems.empty();
  }
  return true;
}

bool FileFeed::open(Piece& piece) {
  opened_ = true;
  if (!open_file(*file_)) {
    note(piece, Trouble::kCannotRead, 0, 0, std::strerror(file_->error));
    file_->handle.reset();
    done = true;
    return false;
  }
  if (file_->size == 0) {
    note(piece, Trouble::kEmptyFile, 0, 0);
    file_->handle.reset();
    done = true;
    return false;
  }
  if (file_->ours && !file_->bracket) note(piece, Trouble::kNoBracket, 0, 0);
  return true;
}

bool FileFeed::range(Piece& piece) {
  if (at_ >= file_->size) return false;
  piece.what = Piece::What::kRange;
  piece.offset = at_;
  piece.size = std::min<std::uint64_t>(kPieceText, file_->size - at_);
  at_ += piece.size;
  return true;
}

bool FileFeed::compressed(Piece& piece) {
  for (;;) {
    if (streaming_) {
      if (stream(piece)) return true;
      streaming_ = false;
      at_ = position();
    }
    if (at_ >= file_->size) return false;
    if (group(piece)) return true;
    // Not ours, or larger than a worker should hold: followed as a stream.
    streaming_ = true;
    in_member_ = false;
    carry_.clear();
    go_to(at_);
    if (inflater_ == nullptr) inflater_ = std::make_unique<Inflater>();
    (void)after_member(piece);
  }
}

// Members of ours, by the sizes in their headers.
bool FileFeed::group(Piece& piece) {
  if (file_->shape == Shape::kDocument) return false;
  std::uint64_t at = at_;
  std::uint64_t text = 0;
  char bytes[8 + kMemberHead];
  long got = file_->handle->read(at, bytes + 8, kMemberHead);
  bool suspect = false;
  while (at < file_->size) {
    MemberHead head;
    if (got < static_cast<long>(kMemberHead) || !read_member_head({bytes + 8, kMemberHead}, head)) {
      break;
    }
    const std::uint64_t end = at + head.size;
    suspect = end > file_->size;
    std::uint32_t size_of_text = 0;
    if (!suspect) {
      got = file_->handle->read(end - 8, bytes, sizeof bytes) - 8;
      if (got < 0) break;
      std::memcpy(&size_of_text, bytes + 4, 4);
      // A size that leads nowhere is not to be believed.
      suspect = end != file_->size && !(got >= 3 && is_gzip({bytes + 8, 3}));
    }
    if (suspect || (size_of_text > kMaxMember && at == at_)) break;
    if (at != at_ && (end - at_ > kPieceBytes || text + size_of_text > kPieceText)) break;
    text += size_of_text;
    at = end;
  }
  if (at == at_) {
    if (!suspect) return false;
    const std::uint64_t next = find_header(at_ + kMemberHead, false);
    piece.what = Piece::What::kSuspect;
    piece.offset = at_;
    piece.size = next - at_;
    at_ = next;
    return true;
  }
  piece.what = Piece::What::kMembers;
  piece.offset = at_;
  piece.size = at - at_;
  at_ = at;
  return true;
}

void FileFeed::go_to(std::uint64_t offset) {
  raw_offset_ = offset;
  raw_at_ = 0;
  raw_.clear();
}

// At least `wanted` bytes at the position, if the file has them.
bool FileFeed::raw_ready(std::size_t wanted) {
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
std::uint64_t FileFeed::find_header(std::uint64_t from, bool any) {
  Buffer window;
  for (std::uint64_t at = from; at < file_->size;) {
    window.resize(kPieceText);
    const long got = file_->handle->read(at, window.data(), kPieceText);
    if (got < static_cast<long>(kMemberHead)) break;
    window.resize(static_cast<std::size_t>(got));
    const std::size_t found = find_member(window.view(), 0, any);
    if (found != std::string_view::npos) return at + found;
    at += static_cast<std::uint64_t>(got) - kMemberHead + 1;
  }
  return file_->size;
}

// Between members: begins the next one, steps over rubbish. kEnd: the stream ends here, because the
// file does or because members of ours follow.
FileFeed::Fill FileFeed::after_member(Piece& piece) {
  for (;;) {
    if (!raw_ready(kMemberHead) && raw_.size() == raw_at_) return Fill::kEnd;
    const std::string_view here = raw_.view().substr(raw_at_);
    MemberHead head;
    if (is_gzip(here)) {
      const bool ours = file_->shape == Shape::kLines && read_member_head(here, head) &&
                        position() != member_start_ && position() != at_;
      if (ours) return Fill::kEnd;
      member_start_ = position();
      inflater_->begin();
      in_member_ = true;
      member_text_ = false;
      return Fill::kMore;
    }
    const std::uint64_t next = find_header(position() + 1, true);
    note(piece, Trouble::kRubbish, position(), next - position());
    go_to(next);
    at_ = next;
    if (next >= file_->size) return Fill::kEnd;
  }
}

FileFeed::Fill FileFeed::fill_plain(Buffer& text, Piece& piece) {
  const std::size_t before = text.size();
  text.resize(before + kPieceText);
  const long got = file_->handle->read(at_, text.data() + before, kPieceText);
  text.resize(before + static_cast<std::size_t>(std::max(got, 0L)));
  if (got <= 0) return Fill::kEnd;
  piece.report.bytes_read += static_cast<std::uint64_t>(got);
  at_ += static_cast<std::uint64_t>(got);
  return Fill::kMore;
}

// Appends about a piece of text.
FileFeed::Fill FileFeed::fill(Buffer& text, Piece& piece) {
  if (!file_->compressed) return fill_plain(text, piece);
  const std::size_t most = text.size() + kPieceText;
  while (text.size() < most) {
    if (!in_member_ && after_member(piece) == Fill::kEnd) return Fill::kEnd;
    if (!raw_ready(1)) {
      // A broken header that takes all the rest for its own: members of ours are behind it.
      const std::uint64_t next =
          member_text_ ? file_->size : find_header(member_start_ + kMemberHead, false);
      if (next < file_->size) {
        note(piece, Trouble::kBadMember, member_start_, next - member_start_);
        piece.report.bytes_read -= position() - next;  // they are read again
        go_to(next);
        in_member_ = false;
        continue;
      }
      note(piece, Trouble::kCutMember, member_start_, position() - member_start_);
      in_member_ = false;
      return Fill::kEnd;
    }
    std::size_t used = 0;
    const std::size_t before = text.size();
    const Inflated result = inflater_->piece(raw_.view().substr(raw_at_), most, text, used);
    raw_at_ += used;
    piece.report.bytes_read += used;
    member_text_ = member_text_ || text.size() > before;
    if (result == Inflated::kWhole) {
      ++piece.report.members;
      in_member_ = false;
    } else if (result == Inflated::kBad) {
      in_member_ = false;
      const std::uint64_t next = find_header(member_start_ + 18, true);
      note(piece, Trouble::kBadMember, member_start_, next - member_start_);
      go_to(next);
    }
  }
  return Fill::kMore;
}

bool FileFeed::stream(Piece& piece) {
  const bool document = file_->shape == Shape::kDocument;
  Buffer& text = piece.text;
  text.append(carry_.view());
  piece.offset = file_->compressed ? (in_member_ ? member_start_ : position()) : carry_offset_;
  carry_.clear();
  for (;;) {
    const std::size_t before = text.size();
    const Fill state = fill(text, piece);
    std::size_t cut = std::string_view::npos;
    if (document) {
      cut = cutter_.scan(text.view(), before);
      const std::size_t begin = cutter_.begin();
      if (cut != std::string_view::npos) {
        if (cutter_.inside()) {
          carry_.append(text.view().substr(cut));
          carry_offset_ = at_ - carry_.size();
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
      if (!document && piece.report.count(Trouble::kCutMember) != 0) {
        text.resize(text.view().rfind('\n') + 1);
      }
      return text.size() != 0 || !piece.report.problems.empty();
    }
    if (text.size() > kMaxLine || (skipping_ && text.size() > kPieceText)) {
      if (!skipping_) note(piece, Trouble::kLongLine, piece.offset, text.size());
      skipping_ = !document;
      cutter_.drop(text.size());
      text.clear();
    }
  }
}

Feed::Feed(const std::vector<std::string>& paths, bool ordered,
           const std::vector<std::uint64_t>& most)
    : ordered_(ordered) {
  feeds_.reserve(paths.size());
  for (const std::string& path : paths) {
    const std::size_t index = feeds_.size();
    feeds_.push_back(std::make_unique<FileFeed>(path, static_cast<std::uint32_t>(index),
                                                index < most.size() ? most[index] : UINT64_MAX));
  }
}

bool Feed::next(Piece& piece) {
  for (;;) {
    std::size_t at = 0;
    {
      const std::lock_guard lock(mutex_);
      at = first_;
    }
    if (at == feeds_.size()) return false;
    // A file that another worker inflates just now is left to it; if that is so with all, this one
    // waits for the first.
    std::unique_lock<std::mutex> lock;
    if (!ordered_) {
      for (std::size_t i = at; i < feeds_.size() && !lock.owns_lock(); ++i) {
        lock = std::unique_lock(feeds_[i]->mutex, std::try_to_lock);
        if (lock.owns_lock()) {
          at = i;
          if (feeds_[i]->done) lock.unlock();
        }
      }
    }
    if (!lock.owns_lock()) {
      {
        const std::lock_guard guard(mutex_);
        at = first_;
      }
      if (at == feeds_.size()) return false;
      lock = std::unique_lock(feeds_[at]->mutex);
    }
    if (!feeds_[at]->done && feeds_[at]->next(piece)) return true;
    lock.unlock();
    const std::lock_guard guard(mutex_);
    while (first_ < feeds_.size()) {
      const std::unique_lock<std::mutex> look(feeds_[first_]->mutex, std::try_to_lock);
      if (!look.owns_lock() || !feeds_[first_]->done) break;
      ++first_;
    }
  }
}

std::vector<std::shared_ptr<File>> Feed::files() const {
  std::vector<std::shared_ptr<File>> out;
  out.reserve(feeds_.size());
  for (const auto& feed : feeds_) out.push_back(feed->file());
  return out;
}

}  // namespace dft::reader
