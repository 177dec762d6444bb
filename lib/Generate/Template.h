//===- Template.h - ${placeholders} and @if lines of operations -*- C++ -*-===//
#ifndef OPTIML_LIB_GENERATE_TEMPLATE_H
#define OPTIML_LIB_GENERATE_TEMPLATE_H

#include "optiml/Generate/Request.h"

namespace optiml::gen {

/// A floating-point type of 16 bits, which is computed in float.
struct ShortFloat {
  llvm::StringRef type, cType, header, toFloat, fromFloat, eps;
};

/// Null where `type` is none.
const ShortFloat *shortFloat(llvm::StringRef type);

/// Where a text stands: in a kernel, in the double-precision reference, or in main.
enum class Place { Device, Reference, Host };

/// What fused stages bring along: arrays and constants, with names that clash with nothing.
struct Extra {
  std::string name;
  bool isArray = false, perColumn = false, isBefore = false;
  double value = 0; ///< of a constant
  std::string init; ///< of an array
};

class Renderer {
public:
  explicit Renderer(const ProgramSpec &spec);
  /// The text with its placeholders filled in.
  llvm::Expected<std::string> render(llvm::StringRef text, Place place);
  const std::vector<Extra> &extras() const { return all; }
  /// Device functions (or their double-precision twins) of the stages that are used.
  llvm::Expected<std::string> stageFunctions(Place place);
  /// "float", "double", "long long": what values are computed in there.
  std::string computeType(Place place) const;
  /// T and A as C types.
  std::string cType(llvm::StringRef type, Place place) const;
  bool isFloating() const { return spec.type == "float" || spec.type == "double" || shortFloat(spec.type); }

private:
  struct NamedStage {
    const Stage *stage;
    std::map<std::string, std::string> names; ///< of operands and reals in this program
    std::string function;                     ///< non-empty: it is a function of this name
  };
  std::string filterLines(llvm::StringRef text) const;
  bool holds(llvm::StringRef condition) const;
  llvm::Expected<std::string> expand(llvm::StringRef text, Place place, unsigned depth);
  llvm::Expected<std::string> placeholder(llvm::StringRef inner, Place place, unsigned depth);
  std::string load(llvm::StringRef array, llvm::StringRef index, Place place) const;
  llvm::Expected<std::string> chain(const std::vector<NamedStage> &stages, std::string value, llvm::StringRef index,
                                    Place place, unsigned depth);
  std::string literal(llvm::StringRef number, Place place) const;
  std::string function(llvm::StringRef name, Place place) const;
  void name(const std::vector<Stage> &stages, std::vector<NamedStage> &named, bool before);
  std::string extraList(Place place, bool declare, bool before, bool after) const;

  const ProgramSpec &spec;
  std::vector<NamedStage> before, after;
  std::vector<Extra> all;
};

} // namespace optiml::gen

#endif
