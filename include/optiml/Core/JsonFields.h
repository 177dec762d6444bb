//===- JsonFields.h - reading JSON objects field by field -------*- C++ -*-===//
//
// Files that OptiML reads back (store, workloads, GPU data) may be damaged or written by hand. A JsonFields reads typed
// fields of one object and remembers the first mistake, in words that name the field, so that readers stay short:
//
//     JsonFields in(value, "measurement");
//     in.number("reward", m.reward);
//     if (llvm::Error e = in.take()) return e;
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_CORE_JSONFIELDS_H
#define OPTIML_CORE_JSONFIELDS_H

#include "optiml/Support/Error.h"
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <vector>

namespace optiml {

class JsonFields {
public:
  /// `what` is what the object is, for messages ("a launch step").
  JsonFields(const nlohmann::json &value, std::string what) : value(value), what(std::move(what)) {
    if (!value.is_object())
      fail(this->what + " must be a JSON object");
  }

  /// A number; null reads as NaN (JSON has no other way to write one). A required field that is absent is a mistake.
  template <typename T> void number(const char *name, T &into, bool required = true) {
    const nlohmann::json *field = find(name, required);
    if (!field)
      return;
    if constexpr (std::is_floating_point_v<T>) {
      if (field->is_null())
        into = std::numeric_limits<T>::quiet_NaN();
      else if (field->is_number())
        into = field->get<T>();
      else
        fail(what + "'s '" + name + "' must be a number");
    } else {
      bool ok = field->is_number_integer();
      if (ok && field->is_number_unsigned())
        ok = field->get<uint64_t>() <= uint64_t(std::numeric_limits<T>::max());
      else if (ok)
        ok = field->get<int64_t>() >= int64_t(std::numeric_limits<T>::min());
      if (ok)
        into = field->get<T>();
      else
        fail(what + "'s '" + name + "' must be an integer" + (std::is_unsigned_v<T> ? " of at least 0" : ""));
    }
  }

  void text(const char *name, std::string &into, bool required = true) {
    if (const nlohmann::json *field = ofType(name, required, &nlohmann::json::is_string, "a string"))
      into = field->get<std::string>();
  }

  void boolean(const char *name, bool &into, bool required = true) {
    if (const nlohmann::json *field = ofType(name, required, &nlohmann::json::is_boolean, "true or false"))
      into = field->get<bool>();
  }

  /// An array of strings.
  void texts(const char *name, std::vector<std::string> &into) {
    for (const nlohmann::json &item : array(name)) {
      if (item.is_string())
        into.push_back(item);
      else
        fail(what + "'s " + name + " must be strings");
    }
  }

  /// The field when it is an array; an empty array (and a mistake remembered) otherwise.
  const nlohmann::json &array(const char *name, bool required = true) {
    static const nlohmann::json none = nlohmann::json::array();
    const nlohmann::json *field = ofType(name, required, &nlohmann::json::is_array, "an array");
    return field ? *field : none;
  }

  /// The field when it is an object; an empty object (and a mistake remembered) otherwise.
  const nlohmann::json &object(const char *name, bool required = true) {
    static const nlohmann::json none = nlohmann::json::object();
    const nlohmann::json *field = ofType(name, required, &nlohmann::json::is_object, "an object");
    return field ? *field : none;
  }

  /// `read(fields)` for an object in a field, which is `kind`; its first mistake is remembered here.
  template <typename Read> void inside(const char *name, const char *kind, Read read) {
    const nlohmann::json &inner = object(name);
    if (ok())
      readInner(inner, kind, read);
  }

  /// `read(fields, into.emplace_back())` for every element of an array of objects, each of which is a `kind`.
  template <typename T, typename Read>
  void list(const char *name, const char *kind, std::vector<T> &into, Read read, bool required = true) {
    for (const nlohmann::json &item : array(name, required)) {
      if (!ok())
        return;
      readInner(item, kind, [&](JsonFields &fields) { read(fields, into.emplace_back()); });
    }
  }

  /// Remembers `message` unless something was wrong before.
  void fail(std::string message) {
    if (mistake.empty())
      mistake = std::move(message);
  }

  bool ok() const { return mistake.empty(); }
  llvm::Error take() const { return mistake.empty() ? llvm::Error::success() : makeError(mistake); }

private:
  template <typename Read> void readInner(const nlohmann::json &inner, const char *kind, Read read) {
    JsonFields fields(inner, kind);
    read(fields);
    fail(fields.mistake);
  }

  const nlohmann::json *ofType(const char *name, bool required, bool (nlohmann::json::*is)() const noexcept,
                               const char *type) {
    const nlohmann::json *field = find(name, required);
    if (!field || (field->*is)())
      return field;
    fail(what + "'s '" + name + "' must be " + type);
    return nullptr;
  }

  const nlohmann::json *find(const char *name, bool required) {
    if (!mistake.empty())
      return nullptr;
    auto it = value.find(name);
    if (it != value.end())
      return &*it;
    if (required)
      fail(what + " lacks '" + name + "'");
    return nullptr;
  }

  const nlohmann::json &value;
  std::string what, mistake;
};

} // namespace optiml

#endif
