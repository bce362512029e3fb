// Batches and their schema as Arrow structures.
#include <algorithm>
#include <cstring>

#include "reader/arrow/columns.hpp"
#include "reader/input/file.hpp"

namespace dft::reader {
namespace {

struct SchemaHold {
  std::string name;
  std::vector<ArrowSchema> children;
  std::vector<ArrowSchema*> pointers;
  ArrowSchema dictionary{};
};

void release_schema(ArrowSchema* schema) {
  auto* hold = static_cast<SchemaHold*>(schema->private_data);
  for (ArrowSchema& child : hold->children) {
    if (child.release != nullptr) child.release(&child);
  }
  if (hold->dictionary.release != nullptr) hold->dictionary.release(&hold->dictionary);
  delete hold;
  schema->release = nullptr;
}

SchemaHold* begin_schema(ArrowSchema* out, const char* format, std::string name,
                         std::int64_t flags) {
  auto* hold = new SchemaHold;
  hold->name = std::move(name);
  *out = {};
  out->format = format;
  out->name = hold->name.c_str();
  out->flags = flags;
  out->release = release_schema;
  out->private_data = hold;
  return hold;
}

struct ArrayHold {
  std::shared_ptr<const EventBatch> batch;
  const void* buffers[3] = {};
  std::vector<ArrowArray> children;
  std::vector<ArrowArray*> pointers;
  ArrowArray dictionary{};
};

void release_array(ArrowArray* array) {
  auto* hold = static_cast<ArrayHold*>(array->private_data);
  for (ArrowArray& child : hold->children) {
    if (child.release != nullptr) child.release(&child);
  }
  if (hold->dictionary.release != nullptr) hold->dictionary.release(&hold->dictionary);
  delete hold;
  array->release = nullptr;
}

ArrayHold* begin_array(ArrowArray* out, std::shared_ptr<const EventBatch> batch,
                       std::int64_t length, std::int64_t buffers) {
  auto* hold = new ArrayHold;
  hold->batch = std::move(batch);
  *out = {};
  out->length = length;
  out->n_buffers = buffers;
  out->buffers = hold->buffers;
  out->release = release_array;
  out->private_data = hold;
  return hold;
}

// Some consumers look at a buffer even if it has no elements.
const void* some(const void* data) {
  static const std::int64_t kNothing[8] = {};
  return data != nullptr ? data : kNothing;
}

void export_column(const std::shared_ptr<const EventBatch>& batch, std::size_t index,
                   ArrowArray* out) {
  const ColumnData& data = batch->data[index];
  const ColumnType type = column_info(batch->columns[index]).type;
  ArrayHold* hold = begin_array(out, batch, batch->rows, type == ColumnType::kText ? 3 : 2);
  out->null_count = data.nulls;
  hold->buffers[0] = data.nulls == 0 ? nullptr : some(data.valid.data());
  hold->buffers[1] =
      type == ColumnType::kInt64 ? some(data.int64s.data()) : some(data.int32s.data());
  if (type == ColumnType::kText) hold->buffers[2] = some(data.text.data());
  const auto& coded = batch->coded;
  const bool number = std::find(coded.begin(), coded.end(), batch->columns[index]) != coded.end();
  if (type == ColumnType::kDictionary && !number) {
    const auto words = static_cast<std::int64_t>(data.ends.size()) - 1;
    ArrayHold* inner = begin_array(&hold->dictionary, batch, words, 3);
    inner->buffers[1] = data.ends.data();
    inner->buffers[2] = some(data.words.data());
    out->dictionary = &hold->dictionary;
  }
}

}  // namespace

void export_schema(const TableOptions& options, ArrowSchema* out) {
  std::vector<Column> columns = options.columns;
  if (columns.empty()) {
    for (std::size_t i = 0; i < kColumns; ++i) columns.push_back(static_cast<Column>(i));
  }
  SchemaHold* hold = begin_schema(out, "+s", "", 0);
  hold->children.resize(columns.size());
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const ColumnInfo& info = column_info(columns[i]);
    const char* format = info.type == ColumnType::kInt64  ? "l"
                         : info.type == ColumnType::kText ? "u"
                                                          : "i";
    SchemaHold* child = begin_schema(&hold->children[i], format, info.name, kArrowNullable);
    if (info.type == ColumnType::kDictionary && !options.is_coded(columns[i])) {
      begin_schema(&child->dictionary, "u", "", kArrowNullable);
      hold->children[i].dictionary = &child->dictionary;
    }
    hold->pointers.push_back(&hold->children[i]);
  }
  out->n_children = static_cast<std::int64_t>(columns.size());
  out->children = hold->pointers.data();
}

void export_batch(EventBatch&& batch, ArrowArray* out) {
  const auto shared = std::make_shared<const EventBatch>(std::move(batch));
  ArrayHold* hold = begin_array(out, shared, shared->rows, 1);
  hold->children.resize(shared->columns.size());
  for (std::size_t i = 0; i < shared->columns.size(); ++i) {
    export_column(shared, i, &hold->children[i]);
    hold->pointers.push_back(&hold->children[i]);
  }
  out->n_children = static_cast<std::int64_t>(shared->columns.size());
  out->children = hold->pointers.data();
}

}  // namespace dft::reader
