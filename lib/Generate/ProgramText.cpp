//===- ProgramText.cpp - an understood request as a CUDA program ----------===//
#include "EmbeddedFile.h"
#include "ProgramWriter.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace optiml;
using namespace optiml::gen;

std::string Writer::title() {
  std::string result;
  auto list = [](const std::vector<Stage> &stages) {
    return llvm::join(llvm::map_range(stages, [](const Stage &stage) { return stage.operation->title; }), ", ");
  };
  bool map = op.name == "map" || op.name == "map2d";
  if (map)
    return list(spec.before);
  result = text(op.title, Place::Host);
  if (!spec.before.empty())
    result += "; before it: " + list(spec.before);
  if (!spec.after.empty())
    result += "; after it: " + list(spec.after);
  return result;
}

std::string Writer::head() {
  std::string names = llvm::join(llvm::map_range(op.sizes, [](const Size &size) { return size.name; }), " ");
  std::string asked = words.take_front(300).str();
  for (char &c : asked)
    if (static_cast<unsigned char>(c) < 32 || c == '\\')
      c = ' ';
  std::string result = "// " + title() + " (" + spec.type + ").\n// Asked for: " + asked + "\n//\n//   program [" +
                       names + "]      default";
  for (const Size &size : op.sizes)
    result += " " + std::to_string(spec.sizes.at(size.name));
  result +=
      "\n#include <algorithm>\n#include <cfloat>\n#include <climits>\n#include <cmath>\n#include <cstdio>\n#include "
      "<cstdlib>\n#include <vector>\n";
  if (const ShortFloat *narrow = shortFloat(spec.type))
    result += "#include <" + narrow->header.str() + ">\n";
  return result + "\n" + resource("check-macro.cu") + "\n";
}

/// Snippets (block reductions and the like) that the text calls.
static std::vector<const Operation *> snippetsFor(const Library &library, StringRef text) {
  std::vector<const Operation *> result;
  for (const Operation &snippet : library.operations())
    if (snippet.isSnippet && text.contains(snippet.name + "("))
      result.push_back(&snippet);
  return result;
}

std::string Writer::kernels() {
  std::string result;
  for (const Operation *snippet :
       snippetsFor(library, section("kernel", Place::Device) + section("launch", Place::Host)))
    result += text(snippet->sections.at("kernel"), Place::Device) + "\n";
  llvm::Expected<std::string> stages = renderer.stageFunctions(Place::Device);
  if (stages)
    result += *stages;
  else
    failure = llvm::toString(stages.takeError());
  return result + section("kernel", Place::Device) + "\n";
}

/// Breaks a parameter list that is too long after a comma.
std::string Writer::wrapLines(std::string text, unsigned indent) {
  std::string result;
  while (text.size() > 110) {
    size_t at = text.rfind(", ", 110);
    if (at == std::string::npos || at < indent)
      break;
    result += text.substr(0, at + 1) + "\n" + std::string(indent, ' ');
    text = text.substr(at + 2);
  }
  return result + text;
}

std::string Writer::assemble(const std::string &device, const std::string &launch, StringRef verdict) {
  std::string host = reference(), filled = inputs();
  std::string result = head() + device + resource("random-numbers.cu");
  if (StringRef(filled).contains("uniform("))
    result += resource("uniform-numbers.cu");
  result += "\n" + host;
  result += resource("compare.cu") + "\nint main(int argc, char **argv) {\n" + arguments() + realDeclarations() + "\n" +
            filled + "\n" + allocate() + "\n";
  result += launch;
  return result + "  CUDA_CHECK(cudaGetLastError());\n  CUDA_CHECK(cudaDeviceSynchronize());\n\n" + results() + "\n" +
         check(verdict) + "}\n";
}

llvm::Expected<std::string> Writer::write() {
  std::string result = assemble(kernels(), section("launch", Place::Host), "PASSED");
  if (!failure.empty())
    return makeError("{0}", failure);
  return result;
}

/// What launch takes: inputs, results (the library's temporary buffers are its own business), constants, sizes; with
/// types, or as arguments.
std::string Writer::launchList(bool declare) {
  std::string result;
  auto add = [&](const std::string &type, const std::string &name) {
    result += (result.empty() ? "" : ", ") + (declare ? type : "") + name;
  };
  for (const Buffer &buffer : op.buffers)
    if (buffer.role == Role::In)
      add("const " + elementType(buffer) + " *", deviceName(buffer.name));
  for (const Extra &extra : renderer.extras())
    if (extra.isArray)
      add("const " + renderer.cType("T", Place::Host) + " *", deviceName(extra.name));
  for (const Buffer &buffer : op.buffers)
    if (buffer.role == Role::Out || buffer.role == Role::InOut)
      add(elementType(buffer) + " *", deviceName(buffer.name));
  for (const Real &real : op.reals)
    add(renderer.computeType(Place::Host) + " ", real.name);
  for (const Extra &extra : renderer.extras())
    if (!extra.isArray)
      add(renderer.computeType(Place::Host) + " ", extra.name);
  for (const Size &size : op.sizes)
    add("int ", size.name);
  return result;
}

/// The library's program in the form that is asked of others: its kernels are launched by a function of their own,
/// which allocates what only they need.
llvm::Expected<std::string> Writer::writeWithLaunch() {
  std::string launches = section("launch", Place::Host), before, after;
  bool swaps = StringRef(launches).contains("swap("); // then pointers end elsewhere than they began
  for (const Buffer &buffer : op.buffers) {
    if (buffer.role == Role::In)
      continue;
    std::string device = deviceName(buffer.name), first = prefixed("first", buffer.name), type = elementType(buffer);
    std::string bytes = "(" + wide(buffer.count) + ") * sizeof(" + type + ")";
    if (buffer.role == Role::Temporary)
      before += "  " + type + " *" + device + ";\n  CUDA_CHECK(cudaMalloc(&" + device + ", " + bytes +
                "));\n  CUDA_CHECK(cudaMemset(" + device + ", 0xff, " + bytes + "));\n";
    if (swaps)
      before += "  " + type + " *const " + first + " = " + device + ";\n";
    if (buffer.role == Role::Temporary)
      after += "  CUDA_CHECK(cudaFree(" + (swaps ? first : device) + "));\n";
    else if (swaps)
      after = "  if (" + device + " != " + first + ")\n    CUDA_CHECK(cudaMemcpy(" + first + ", " + device + ", " +
              bytes + ", cudaMemcpyDeviceToDevice));\n" + after;
  }
  std::string function = signature() + " {\n" + before + launches + after + "}\n\n";
  ownTemporaries = false;
  std::string result = assemble(kernels() + function, "  " + callOfLaunch(), "PASSED");
  if (!failure.empty())
    return makeError("{0}", failure);
  return result;
}

llvm::Expected<Harness> Writer::harness(StringRef verdict) {
  Harness result;
  ownTemporaries = false;
  result.signature = signature();
  // Functions for both sides, random numbers say, are what the reference calls, too.
  std::string shared;
  for (const Operation *snippet :
       snippetsFor(library, section("reference", Place::Reference) + section("reference-functions", Place::Reference) +
                                section("inputs", Place::Host)))
    shared += text(snippet->sections.at("kernel"), Place::Device) + "\n";
  result.text = assemble(shared + "namespace written {\n" + result.signature + ";\n}\n\n",
                         "  written::" + callOfLaunch(), verdict);
  result.reference = shared + reference();
  if (!failure.empty())
    return makeError("{0}", failure);
  return result;
}

llvm::Expected<std::string> optiml::gen::writeProgram(const ProgramSpec &spec, StringRef words,
                                                      const Library &library) {
  return Writer(spec, words, library).write();
}

llvm::Expected<std::string> optiml::gen::writeExample(const ProgramSpec &spec, StringRef words,
                                                      const Library &library) {
  return Writer(spec, words, library).writeWithLaunch();
}

llvm::Expected<Harness> optiml::gen::writeHarness(const ProgramSpec &spec, StringRef verdict, const Library &library) {
  return Writer(spec, "the same", library).harness(verdict);
}
