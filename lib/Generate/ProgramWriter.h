//===- ProgramWriter.h - the parts of a generated program -------*- C++ -*-===//
//
// ProgramText.cpp puts the whole together and has what runs on the device; ProgramHost.cpp has the host's parts:
// arguments, inputs, buffers, reference, check.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_GENERATE_PROGRAMWRITER_H
#define OPTIML_LIB_GENERATE_PROGRAMWRITER_H

#include "Template.h"
#include "optiml/Generate/ProgramText.h"
#include "llvm/ADT/StringExtras.h"

namespace optiml::gen {

using llvm::StringRef;
using Role = Buffer::Role;

inline std::string deviceName(const std::string &name) {
  return "d" + std::string(1, llvm::toUpper(name[0])) + name.substr(1);
}
inline std::string prefixed(const char *prefix, const std::string &name) {
  return prefix + std::string(1, llvm::toUpper(name[0])) + name.substr(1);
}

class Writer {
public:
  Writer(const ProgramSpec &spec, StringRef words, const Library &library)
      : spec(spec), op(*spec.operation), words(words), library(library), renderer(spec) {}

  llvm::Expected<std::string> write();
  llvm::Expected<Harness> harness(StringRef verdict);
  llvm::Expected<std::string> writeWithLaunch();

private:
  std::string section(StringRef name, Place place) {
    auto it = op.sections.find(name.str());
    return it == op.sections.end() ? "" : text(it->second, place);
  }
  /// Rendered; the first error is kept.
  std::string text(StringRef source, Place place) {
    llvm::Expected<std::string> result = renderer.render(source, place);
    if (result)
      return *result;
    if (failure.empty())
      failure = llvm::toString(result.takeError());
    else
      llvm::consumeError(result.takeError());
    return "";
  }
  /// Results of bytes are 32-bit integers.
  std::string elementType(const Buffer &buffer) {
    return renderer.cType(buffer.type == "T" && buffer.role == Buffer::Role::Out ? "R" : buffer.type, Place::Host);
  }
  std::string wantType(const Buffer &buffer) {
    return buffer.type == "T" || buffer.type == "A" || buffer.type == "C" ? renderer.computeType(Place::Reference)
                                                                          : buffer.type;
  }
  std::string wrapLines(std::string text, unsigned indent);
  std::string countOf(const Extra &extra);
  /// A buffer's number of elements, in size_t.
  std::string wide(StringRef count) {
    std::string rendered = text(count, Place::Host);
    return rendered.find_first_of("*+/") == std::string::npos ? rendered : "(size_t)" + rendered;
  }
  std::string value(const Buffer &buffer, const std::string &expression) {
    if (const ShortFloat *narrow = shortFloat(spec.type); narrow && buffer.type == "T")
      return narrow->fromFloat.str() + "((float)(" + expression + "))";
    return "(" + elementType(buffer) + ")(" + expression + ")";
  }
  std::string head();
  std::string kernels();
  std::string reference();
  std::string arguments();
  std::string inputs();
  std::string allocate();
  std::string results();
  std::string check(StringRef verdict);
  std::string launchList(bool declare);
  std::string signature() { return "void launch(" + launchList(true) + ")"; }
  std::string callOfLaunch() { return "launch(" + launchList(false) + ");\n"; }
  /// The program around `device` (kernels) and `launch` (host code).
  std::string assemble(const std::string &device, const std::string &launch, StringRef verdict);
  std::string realDeclarations();
  std::string declareReal(const std::string &name, double v);
  std::string title();

  const ProgramSpec &spec;
  const Operation &op;
  StringRef words;
  const Library &library;
  Renderer renderer;
  bool ownTemporaries = true; ///< main has the buffers that only the kernels need
  std::string failure;
};

} // namespace optiml::gen

#endif
