#include "reader/arrow/columns.hpp"

#include <doctest/doctest.h>

#include <set>

#include "reader/input/block.hpp"

namespace {

using namespace dft::reader;

EventBatch batch_of(const std::vector<Column>& columns, const std::string& text,
                    RowFilter rows = RowFilter::kEvents) {
  TableOptions options;
  options.columns = columns;
  options.nanoseconds = true;
  options.rows = rows;
  BatchMaker maker(options);
  auto file = std::make_shared<InFile>();
  maker.begin(file);
  Block block;
  block.take(file, text);
  block.records([&](const Event& event, std::uint64_t) { maker.add(event); });
  return maker.take();
}

std::string event(const std::string& args, const std::string& name = "read") {
  return R"({"id":7,"name":")" + name +
         R"(","cat":"POSIX","pid":5,"tid":6,"ts":100,"dur":3,"ph":"X","args":{)" + args + "}}\n";
}

bool is_valid(const ColumnData& data, std::size_t row) {
  return (data.valid[row / 64] >> (row % 64) & 1) != 0;
}

}  // namespace

TEST_CASE("columns are found by their names, which are all different") {
  std::set<std::string> names;
  for (std::size_t i = 0; i < kColumns; ++i) {
    const char* name = column_info(static_cast<Column>(i)).name;
    names.insert(name);
    CHECK(find_column(name) == static_cast<int>(i));
  }
  CHECK(names.size() == kColumns);
  CHECK(find_column("nothing") == -1);
  CHECK(find_column("") == -1);
}

TEST_CASE("every key of an integer argument fills its column") {
  for (std::size_t i = 0; i < kColumns; ++i) {
    const auto column = static_cast<Column>(i);
    const ColumnInfo& info = column_info(column);
    if (info.source != ColumnSource::kArgument) continue;
    INFO(info.name);
    const std::string key(info.keys);
    const EventBatch batch =
        batch_of({column}, event('"' + key + "\":1234") + event('"' + key + "_\":1") +
                               event('"' + key + "\":\"text\"") + event('"' + key + "\":\"99\""));
    REQUIRE(batch.rows == 4);
    const ColumnData& data = batch.data[0];
    const auto value = [&](std::size_t row) {
      return info.type == ColumnType::kInt32 ? data.int32s[row] : data.int64s[row];
    };
    CHECK(is_valid(data, 0));
    CHECK(value(0) == 1234);
    CHECK_FALSE(is_valid(data, 1));
    CHECK_FALSE(is_valid(data, 2));
    CHECK(is_valid(data, 3));
    CHECK(value(3) == 99);
    CHECK(data.nulls == 2);
  }
}

TEST_CASE("both files of a copy have a column, by either key") {
  const EventBatch batch = batch_of({Column::kFname, Column::kOther},
                                    event(R"("fhash":"a1","in_fd_hash":"b2")", "sendfile") +
                                        event(R"("fname":"/x","fd_out_hash":"b2")", "copy"));
  REQUIRE(batch.paths.size() == 3);
  CHECK(batch.paths[0] == std::pair<std::string, bool>("a1", true));
  CHECK(batch.paths[1] == std::pair<std::string, bool>("b2", true));
  CHECK(batch.paths[2] == std::pair<std::string, bool>("/x", false));
  CHECK(batch.data[0].int32s == std::vector<std::int32_t>{0, 2});
  CHECK(batch.data[1].int32s == std::vector<std::int32_t>{1, 1});
}

TEST_CASE("arguments without a column are in args, those with one are not") {
  const EventBatch batch =
      batch_of({Column::kArgs}, event(R"("hhash":"h","ret":5,"mode":"r","size":"big","ret":6)"));
  CHECK(batch.data[0].text == R"({"mode":"r","size":"big","ret":6})");
}

TEST_CASE("a level that does not fit is no level, and -1 is no parent") {
  const EventBatch batch =
      batch_of({Column::kLevel, Column::kParent},
               event(R"("level":4294967296,"p_idx":-1)") + event(R"("level":2,"p_idx":0)"));
  CHECK_FALSE(is_valid(batch.data[0], 0));
  CHECK_FALSE(is_valid(batch.data[1], 0));
  CHECK(is_valid(batch.data[0], 1));
  CHECK(is_valid(batch.data[1], 1));
  CHECK(batch.data[0].int32s[1] == 2);
}

TEST_CASE("brief events will do where no column needs an argument") {
  const auto brief = [](const std::vector<Column>& columns) {
    TableOptions options;
    options.columns = columns;
    return BatchMaker(options).takes_brief();
  };
  CHECK(brief({Column::kId, Column::kName, Column::kCat, Column::kPh, Column::kPid, Column::kTid,
               Column::kTs, Column::kDur, Column::kHost, Column::kProcess, Column::kRank,
               Column::kTrace}));
  for (const Column column :
       {Column::kLevel, Column::kParent, Column::kFname, Column::kOther, Column::kRet,
        Column::kBytes, Column::kPosition, Column::kAccess, Column::kArgs, Column::kExtra}) {
    CHECK_FALSE(brief({Column::kId, column}));
  }
  CHECK_FALSE(brief({}));  // all columns
}

TEST_CASE("metadata becomes rows only on demand") {
  const std::string text =
      R"({"id":0,"name":"FH","cat":"dftracer","pid":5,"tid":5,"ph":"M","args":{"name":"/x","value":"a1"}})"
      "\n" +
      event(R"("ret":1)");
  CHECK(batch_of({Column::kId}, text).rows == 1);
  const EventBatch all = batch_of({Column::kId}, text, RowFilter::kAll);
  CHECK(all.rows == 2);
  REQUIRE(all.facts.size() == 1);
  CHECK(all.facts[0].key == "a1");
  CHECK(all.facts[0].value == "/x");
}
