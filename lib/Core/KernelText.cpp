//===- KernelText.cpp - new text for a kernel, from outside ---------------===//
#include "optiml/Core/KernelText.h"
#include "optiml/Core/Hash.h"
#include "optiml/Core/JsonFields.h"

using namespace optiml;
using nlohmann::json;

std::string KernelText::name() const {
  return contentHash({kernel, helpers, body, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared})
      .substr(0, 16);
}

json optiml::toJson(const KernelText &text) {
  return {{"kernel", text.kernel}, {"helpers", text.helpers}, {"body", text.body},
          {"grid", text.grid},     {"block", text.block},     {"shared", text.shared}};
}

/// Up to three expressions, as words or numbers; those that are absent are 1.
static void readGeometry(JsonFields &in, const char *name, std::array<std::string, 3> &into) {
  const json &list = in.array(name, /*required=*/false);
  if (list.empty())
    return;
  if (list.size() > 3)
    in.fail(std::string("a kernel text's '") + name + "' must have at most three expressions");
  for (size_t i = 0; i < 3; ++i) {
    if (i >= list.size())
      into[i] = "1";
    else if (list[i].is_string())
      into[i] = list[i].get<std::string>();
    else if (list[i].is_number_unsigned())
      into[i] = std::to_string(list[i].get<uint64_t>());
    else
      in.fail(std::string("a kernel text's '") + name + "' must hold integer expressions");
  }
}

llvm::Expected<KernelText> optiml::kernelTextFromJson(const json &value) {
  KernelText text;
  JsonFields in(value, "a kernel text");
  in.text("kernel", text.kernel);
  in.text("body", text.body);
  in.text("helpers", text.helpers, /*required=*/false);
  if (in.ok()) {
    readGeometry(in, "grid", text.grid);
    readGeometry(in, "block", text.block);
    if (auto shared = value.find("shared"); shared != value.end() && shared->is_number_unsigned())
      text.shared = std::to_string(shared->get<uint64_t>());
    else
      in.text("shared", text.shared, /*required=*/false);
  }
  if (llvm::Error error = in.take())
    return std::move(error);
  return text;
}

std::string KernelTexts::add(KernelText text, std::string name) {
  if (name.empty())
    name = text.name();
  std::lock_guard lock(mutex);
  texts.insert_or_assign(name, std::move(text));
  return name;
}

std::optional<KernelText> KernelTexts::find(const std::string &name) const {
  std::lock_guard lock(mutex);
  auto it = texts.find(name);
  return it == texts.end() ? std::nullopt : std::optional(it->second);
}

llvm::Error KernelTexts::addAll(const json &object) {
  if (!object.is_object())
    return makeError("kernel texts must be a JSON object from names to texts");
  for (const auto &[name, value] : object.items()) {
    auto text = kernelTextFromJson(value);
    if (!text)
      return makeError("kernel text '{0}': {1}", name, llvm::toString(text.takeError()));
    add(std::move(*text), name);
  }
  return llvm::Error::success();
}
