//===- ProgramText.cpp - an understood request as a CUDA program ----------===//
#include "ProgramWriter.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;
using namespace optiml::gen;

namespace {

const char *checkMacro = R"(#define CUDA_CHECK(call)                                                                   \
  do {                                                                                     \
    cudaError_t status_ = (call);                                                          \
    if (status_ != cudaSuccess) {                                                          \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status_));     \
      exit(EXIT_FAILURE);                                                                  \
    }                                                                                      \
  } while (0)
)";

const char *randomNumbers = R"(// Inputs depend on their index only: every run and every machine has the same ones.
static unsigned hash(size_t index, unsigned seed) {
  unsigned x = (unsigned)index * 0x9e3779b9u + seed * 0x85ebca6bu + (unsigned)(index >> 32);
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}
)";
const char *uniformNumbers = R"(
static double uniform(size_t index, unsigned seed) { return (hash(index, seed) >> 8) / 16777216.0; }
)";

const char *compareFunction = R"(// Counts the elements that are off by more than the tolerance allows; NaN is always off, unless NaN is wanted.
template <typename Got, typename Want>
static size_t compare(const char *name, const std::vector<Got> &got, const std::vector<Want> &want, double tolerance) {
  size_t wrong = 0;
  for (size_t i = 0; i < want.size(); i++) {
    double g = (double)got[i], w = (double)want[i];
    bool same = got[i] == (Got)want[i] || fabs(g - w) <= tolerance * (1.0 + fabs(w)) || (w != w && g != g);
    if (!same && wrong++ < 3)
      fprintf(stderr, "%s[%zu] = %.9g, want %.9g\n", name, i, g, w);
  }
  return wrong;
}
)";

} // namespace

std::string Writer::title() {
  std::string result;
  auto list = [](const std::vector<Stage> &stages) {
    std::string names;
    for (const Stage &stage : stages)
      names += (names.empty() ? "" : ", ") + stage.operation->title;
    return names;
  };
  bool map = op.name == "map" || op.name == "map2d";
  if (map)
    return list(request.before);
  result = text(op.title, Place::Host);
  if (!request.before.empty())
    result += "; before it: " + list(request.before);
  if (!request.after.empty())
    result += "; after it: " + list(request.after);
  return result;
}

std::string Writer::head() {
  std::string names;
  for (const Size &size : op.sizes)
    names += (names.empty() ? "" : " ") + size.name;
  std::string asked = words.take_front(300).str();
  for (char &c : asked)
    if (static_cast<unsigned char>(c) < 32 || c == '\\')
      c = ' ';
  std::string result = "// " + title() + " (" + request.type + ").\n// Asked for: " + asked + "\n//\n//   program [" + names +
                       "]      default";
  for (const Size &size : op.sizes)
    result += " " + std::to_string(request.sizes.at(size.name));
  result += "\n#include <algorithm>\n#include <cfloat>\n#include <climits>\n#include <cmath>\n#include <cstdio>\n#include "
            "<cstdlib>\n#include <vector>\n";
  if (const ShortFloat *narrow = shortFloat(request.type))
    result += "#include <" + narrow->header.str() + ">\n";
  return result + "\n" + checkMacro + "\n";
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
  for (const Operation *snippet : snippetsFor(library, section("kernel", Place::Device) + section("launch", Place::Host)))
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
  std::string result = head() + device + randomNumbers;
  if (StringRef(filled).contains("uniform("))
    result += uniformNumbers;
  result += "\n" + host;
  result += std::string(compareFunction) + "\nint main(int argc, char **argv) {\n" + arguments() + realDeclarations() + "\n" + filled + "\n" + allocate() + "\n";
  result += launch;
  return result + "  CUDA_CHECK(cudaGetLastError());\n  CUDA_CHECK(cudaDeviceSynchronize());\n\n" + results() + "\n" + check(verdict) + "}\n";
}

llvm::Expected<std::string> Writer::write() {
  std::string result = assemble(kernels(), section("launch", Place::Host), "PASSED");
  if (!failure.empty())
    return makeError("{0}", failure);
  return result;
}

/// What launch takes: inputs, results (the library's temporary buffers are its own business), constants, sizes; with types, or as
/// arguments.
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

/// The library's program in the form that is asked of others: its kernels are launched by a function of their own, which
/// allocates what only they need.
llvm::Expected<std::string> Writer::writeWithLaunch() {
  std::string launches = section("launch", Place::Host), before, after;
  bool swaps = StringRef(launches).contains("swap("); // then pointers end elsewhere than they began
  for (const Buffer &buffer : op.buffers) {
    if (buffer.role == Role::In)
      continue;
    std::string device = deviceName(buffer.name), first = prefixed("first", buffer.name), type = elementType(buffer);
    std::string bytes = "(" + wide(buffer.count) + ") * sizeof(" + type + ")";
    if (buffer.role == Role::Temporary)
      before += "  " + type + " *" + device + ";\n  CUDA_CHECK(cudaMalloc(&" + device + ", " + bytes + "));\n  CUDA_CHECK(cudaMemset(" + device +
                ", 0xff, " + bytes + "));\n";
    if (swaps)
      before += "  " + type + " *const " + first + " = " + device + ";\n";
    if (buffer.role == Role::Temporary)
      after += "  CUDA_CHECK(cudaFree(" + (swaps ? first : device) + "));\n";
    else if (swaps)
      after = "  if (" + device + " != " + first + ")\n    CUDA_CHECK(cudaMemcpy(" + first + ", " + device + ", " + bytes +
              ", cudaMemcpyDeviceToDevice));\n" + after;
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
  for (const Operation *snippet : snippetsFor(library, section("reference", Place::Reference) + section("reference-functions", Place::Reference) + section("inputs", Place::Host)))
    shared += text(snippet->sections.at("kernel"), Place::Device) + "\n";
  result.text = assemble(shared + "namespace written {\n" + result.signature + ";\n}\n\n", "  written::" + callOfLaunch(), verdict);
  result.reference = shared + reference();
  if (!failure.empty())
    return makeError("{0}", failure);
  return result;
}

llvm::Expected<std::string> optiml::gen::writeProgram(const Understood &request, StringRef words, const Library &library) {
  return Writer(request, words, library).write();
}

llvm::Expected<std::string> optiml::gen::writeExample(const Understood &request, StringRef words, const Library &library) {
  return Writer(request, words, library).writeWithLaunch();
}

llvm::Expected<Harness> optiml::gen::writeHarness(const Understood &request, StringRef verdict, const Library &library) {
  return Writer(request, "the same", library).harness(verdict);
}
