// Arrow import and export of tables of integers. Called by the Python extension.
#include "reader/arrow/int_table.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace dft::reader {
namespace {

template <typename T>
class Released {
 public:
  Released() = default;
  ~Released() {
    if (value.release != nullptr) value.release(&value);
  }
  Released(const Released&) = delete;
  Released& operator=(const Released&) = delete;
  T value{};
};

[[noreturn]] void fail(ArrowArrayStream* stream) {
  const char* text = stream->get_last_error(stream);
  throw std::runtime_error(text != nullptr ? text : "a stream of integers failed");
}

// A node of an exported tree: the whole table, or one column.
struct ExportedNode {
  std::shared_ptr<const IntTable> table;
  const void* buffers[3] = {};
  std::vector<ArrowArray> arrays;
  std::vector<ArrowArray*> array_pointers;
  std::vector<ArrowSchema> schemas;
  std::vector<ArrowSchema*> schema_pointers;
};

template <typename T>
std::vector<T>& children(ExportedNode& hold) {
  if constexpr (std::is_same_v<T, ArrowArray>) {
    return hold.arrays;
  } else {
    return hold.schemas;
  }
}

template <typename T>
void release(T* node) {
  auto* hold = static_cast<ExportedNode*>(node->private_data);
  for (T& child : children<T>(*hold)) {
    if (child.release != nullptr) child.release(&child);
  }
  delete hold;
  node->release = nullptr;
}

template <typename T>
ExportedNode* begin(T* out, const std::shared_ptr<const IntTable>& table) {
  auto* hold = new ExportedNode;
  hold->table = table;
  *out = {};
  out->release = release<T>;
  out->private_data = hold;
  return hold;
}

void export_table(const std::shared_ptr<const IntTable>& table, ArrowArray* out) {
  const std::size_t numbers = table->columns.size();
  const auto rows = numbers == 0 ? 0 : static_cast<std::int64_t>(table->columns[0].size());
  ExportedNode* hold = begin(out, table);
  out->length = rows;
  out->n_buffers = 1;
  out->buffers = hold->buffers;
  hold->arrays.resize(numbers + (table->text_name.empty() ? 0 : 1));
  for (std::size_t i = 0; i < hold->arrays.size(); ++i) {
    ArrowArray& child = hold->arrays[i];
    ExportedNode* own = begin(&child, table);
    own->buffers[1] = i < numbers ? table->columns[i].data() : table->ends.data();
    own->buffers[2] = table->text.data();
    child.length = rows;
    child.n_buffers = i < numbers ? 2 : 3;
    child.buffers = own->buffers;
    hold->array_pointers.push_back(&child);
  }
  out->n_children = static_cast<std::int64_t>(hold->arrays.size());
  out->children = hold->array_pointers.data();
}

void export_names(const std::shared_ptr<const IntTable>& table, ArrowSchema* out) {
  ExportedNode* hold = begin(out, table);
  out->format = "+s";
  out->name = "";
  const std::size_t numbers = table->names.size();
  hold->schemas.resize(numbers + (table->text_name.empty() ? 0 : 1));
  for (std::size_t i = 0; i < hold->schemas.size(); ++i) {
    ArrowSchema& child = hold->schemas[i];
    begin(&child, table);
    child.format = i < numbers ? "l" : "U";
    child.name = i < numbers ? table->names[i].c_str() : table->text_name.c_str();
    hold->schema_pointers.push_back(&child);
  }
  out->n_children = static_cast<std::int64_t>(hold->schemas.size());
  out->children = hold->schema_pointers.data();
}

struct TableSource {
  std::shared_ptr<const IntTable> table;
  bool done = false;
};

TableSource* of(ArrowArrayStream* stream) {
  return static_cast<TableSource*>(stream->private_data);
}

}  // namespace

void read_ints(ArrowArrayStream* stream, std::size_t columns, const TakeInts& take) {
  Released<ArrowSchema> schema;
  if (stream->get_schema(stream, &schema.value) != 0) fail(stream);
  bool fits = schema.value.n_children == static_cast<std::int64_t>(columns);
  for (std::size_t i = 0; fits && i < columns; ++i) {
    fits = std::strcmp(schema.value.children[i]->format, "l") == 0;
  }
  if (!fits) throw std::invalid_argument("columns of 64-bit integers are needed");
  std::vector<const std::int64_t*> data(columns);
  for (;;) {
    Released<ArrowArray> batch;
    if (stream->get_next(stream, &batch.value) != 0) fail(stream);
    if (batch.value.release == nullptr) return;
    if (batch.value.length == 0) continue;
    for (std::size_t i = 0; i < columns; ++i) {
      const ArrowArray& child = *batch.value.children[i];
      // -1: not counted.
      if (child.null_count > 0) throw std::invalid_argument("a null among integers");
      data[i] =
          static_cast<const std::int64_t*>(child.buffers[1]) + child.offset + batch.value.offset;
    }
    take(data, batch.value.length);
  }
}

void open_int_table(std::shared_ptr<const IntTable> table, ArrowArrayStream* out) {
  *out = {};
  out->private_data = new TableSource{std::move(table)};
  out->get_schema = [](ArrowArrayStream* stream, ArrowSchema* to) {
    export_names(of(stream)->table, to);
    return 0;
  };
  out->get_next = [](ArrowArrayStream* stream, ArrowArray* to) {
    TableSource& source = *of(stream);
    if (std::exchange(source.done, true)) {
      *to = {};
    } else {
      export_table(source.table, to);
    }
    return 0;
  };
  out->get_last_error = [](ArrowArrayStream*) -> const char* { return nullptr; };
  out->release = [](ArrowArrayStream* stream) {
    delete of(stream);
    stream->release = nullptr;
  };
}

}  // namespace dft::reader
