//===- Variant.h - a program, rewritten -------------------------*- C++ -*-===//
//
// A Variant is a complete CUDA program text in which kernels have gained optimized twins. For every optimized kernel it
// holds the plan that replaces its launches and the conditions under which that is right. The text always compiles; the
// original kernels are always still there.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_CORE_VARIANT_H
#define OPTIML_CORE_VARIANT_H

#include "optiml/Core/Action.h"
#include "optiml/Core/LaunchPlan.h"
#include <map>
#include <string>
#include <vector>

namespace optiml {

/// Where a condition's "p.n" lies, n being an integer member of argument p.
struct MemberPlace {
  unsigned offset = 0, bytes = 0;
  bool isSigned = true;
};

/// A parameter of a kernel, as the front end has read it.
struct Parameter {
  enum class Kind { Pointer, Signed, Unsigned, Float, Other }; ///< Signed and Unsigned: integers
  std::string declaration;                                     ///< C++: "const float *__restrict__ a", "int n"
  std::string name;
  Kind kind = Kind::Other;
  /// Of a class: its members, where these are all there is of it but for padding; of anything else, none.
  std::vector<std::string> members;
  bool operator==(const Parameter &) const = default;
};

/// "const float *a, int n"
std::string declarations(const std::vector<Parameter> &parameters);

/// How one kernel of the original program is replaced.
struct KernelRewrite {
  std::string original;       ///< qualified name with template arguments, e.g. "ns::scale<float>" (KernelDecl::name)
  std::string originalSymbol; ///< mangled
  std::string twin;           ///< identifier of the new kernel
  std::string twinText;       ///< its definition, printed
  unsigned insertAt = 0;      ///< byte offset in the original text where the twin goes
  bool besideOriginal = true; ///< after the original's definition, in its namespace
  std::string enter, leave;   ///< lines that lead from the namespace at insertAt into the original's, and back
  std::vector<Parameter> originalParameters;  ///< the original's
  unsigned originalMaxThreads = 1024;         ///< threads a block that the original may be launched with
  std::map<std::string, MemberPlace> members; ///< of the original's parameters, as "p.n"
  LaunchPlan plan;
  std::vector<Condition> conditions; ///< all must hold
  unsigned arch = 0;                 ///< runs only where the code is this compute capability × 10's own; 0: everywhere
  /// Its text came from outside (KernelText.h): nothing proves it. It is verified more thoroughly, runs only in a
  /// sandbox until then, and its conditions leave only the sizes that were exercised.
  bool testedOnly = false;
  /// Text of the original's namespace, as it stands at insertAt.
  std::string placed(const std::string &text) const;
};

struct Variant {
  std::string path;                    ///< the user's file; a variant is parsed in its place
  std::string original;                ///< text of the user's file
  std::vector<KernelRewrite> rewrites; ///< at most one per original kernel
  Recipe recipe;
  /// original + every twin after its kernel. What device-side tools compile. Host code still launches the originals.
  std::string text;
  /// Whether any of its kernels is only tested.
  bool testedOnly() const;
  /// Identifies equal outcomes of different recipes: hash of the normalized twins, plans and conditions.
  std::string key() const;
};

} // namespace optiml

#endif
