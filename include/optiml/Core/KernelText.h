//===- KernelText.h - new text for a kernel, from outside -------*- C++ -*-===//
//
// A kernel's body that a language model (or a person) wrote enters a search by the action
//
//     replace-body[KERNEL]{text=NAME}
//
// where NAME stands for a KernelText in a table. The table goes with the recipe: both together reproduce the variant.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_CORE_KERNELTEXT_H
#define OPTIML_CORE_KERNELTEXT_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <array>
#include <map>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace optiml {

inline constexpr const char *replaceBody = "replace-body";
/// The reason of the condition that keeps a text to launches like those that it was tested on.
inline constexpr const char *onlyTested = "this text was only tested, on launches like these";

struct KernelText {
  std::string kernel;  ///< the original's name, as in sites
  std::string helpers; ///< __device__ functions that go before it; their names begin with the twin's and "_"
  std::string body;    ///< what stands between the kernel's braces
  /// The launch, as integer expressions over the original's (IntExpr.h).
  std::array<std::string, 3> grid{"grid.x", "grid.y", "grid.z"}, block{"block.x", "block.y", "block.z"};
  std::string shared = "shared"; ///< bytes of dynamic shared memory
  /// 16 hexadecimal digits that stand for all of it.
  std::string name() const;
};

nlohmann::json toJson(const KernelText &text);
/// Fields that are absent keep their defaults; kernel and body must be there.
llvm::Expected<KernelText> kernelTextFromJson(const nlohmann::json &value);

/// Texts by name. May be used from several threads.
class KernelTexts {
public:
  /// Returns the name it was added under: its own, unless one is given.
  std::string add(KernelText text, std::string name = "");
  std::optional<KernelText> find(const std::string &name) const;
  /// Reads {"NAME": {text}, …}.
  llvm::Error addAll(const nlohmann::json &object);

private:
  mutable std::mutex mutex;
  std::map<std::string, KernelText> texts;
};

} // namespace optiml

#endif
