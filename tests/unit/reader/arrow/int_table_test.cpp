#include "reader/arrow/int_table.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <stdexcept>

namespace {

using namespace dft::reader;

IntTable two_columns() {
  IntTable table;
  table.names = {"a", "b"};
  table.columns = {{1, 2, 3}, {-4, 5, INT64_MAX}};
  return table;
}

// Released with the scope, as a consumer does.
class Stream {
 public:
  explicit Stream(IntTable table) {
    open_int_table(std::make_shared<const IntTable>(std::move(table)), &stream);
  }
  ~Stream() { stream.release(&stream); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ArrowArrayStream stream{};
};

}  // namespace

TEST_CASE("a table of integers is read back as it was") {
  Stream source(two_columns());
  std::vector<std::vector<std::int64_t>> found(2);
  read_ints(&source.stream, 2, [&](const auto& columns, std::int64_t rows) {
    for (std::size_t i = 0; i < 2; ++i) found[i].assign(columns[i], columns[i] + rows);
  });
  CHECK(found == two_columns().columns);
}

TEST_CASE("an empty table has no rows") {
  IntTable table;
  table.names = {"a"};
  table.columns.resize(1);
  Stream source(std::move(table));
  int calls = 0;
  read_ints(&source.stream, 1, [&](const auto&, std::int64_t) { ++calls; });
  CHECK(calls == 0);
}

TEST_CASE("another number of columns is refused") {
  Stream source(two_columns());
  CHECK_THROWS_AS(read_ints(&source.stream, 3, [](const auto&, std::int64_t) {}),
                  std::invalid_argument);
}

TEST_CASE("texts are no integers") {
  IntTable table = two_columns();
  table.text_name = "word";
  for (const char* word : {"x", "", "long one"}) table.add_text(word);
  Stream source(std::move(table));
  ArrowSchema schema{};
  REQUIRE(source.stream.get_schema(&source.stream, &schema) == 0);
  REQUIRE(schema.n_children == 3);
  CHECK(std::strcmp(schema.children[0]->format, "l") == 0);
  CHECK(std::strcmp(schema.children[2]->format, "U") == 0);
  CHECK(std::strcmp(schema.children[2]->name, "word") == 0);
  schema.release(&schema);
  CHECK_THROWS_AS(read_ints(&source.stream, 3, [](const auto&, std::int64_t) {}),
                  std::invalid_argument);
  ArrowArray batch{};
  REQUIRE(source.stream.get_next(&source.stream, &batch) == 0);
  const auto* ends = static_cast<const std::int64_t*>(batch.children[2]->buffers[1]);
  const auto* text = static_cast<const char*>(batch.children[2]->buffers[2]);
  CHECK(std::string(text + ends[2], text + ends[3]) == "long one");
  CHECK(ends[1] == ends[2]);
  batch.release(&batch);
  REQUIRE(source.stream.get_next(&source.stream, &batch) == 0);
  const bool ended = batch.release == nullptr;
  CHECK(ended);
}

TEST_CASE("a null among integers is refused") {
  Stream source(two_columns());
  auto* real = source.stream.get_next;
  static int (*next)(ArrowArrayStream*, ArrowArray*) = nullptr;
  next = real;
  source.stream.get_next = [](ArrowArrayStream* stream, ArrowArray* out) {
    const int code = next(stream, out);
    if (out->release != nullptr) out->children[1]->null_count = 1;
    return code;
  };
  CHECK_THROWS_AS(read_ints(&source.stream, 2, [](const auto&, std::int64_t) {}),
                  std::invalid_argument);
}
