//===- ProgramText.cpp - an understood request as a CUDA program ----------===//
#include "optiml/Generate/ProgramText.h"
#include "Template.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/bit.h"
#include <cmath>

using namespace optiml;
using namespace optiml::gen;
using llvm::StringRef;

using Role = Buffer::Role;

/// Window sizes and the like, which the gate does not make smaller.
static bool isKept(const Size &size, int64_t asked) { return size.keep && asked <= 64; }

std::vector<std::string> optiml::gen::smallArguments(const Understood &request) {
  std::vector<std::string> result;
  for (const Size &size : request.operation->sizes) {
    int64_t asked = request.sizes.at(size.name);
    int64_t value = isKept(size, asked) ? asked : std::min(asked, size.small);
    result.push_back(std::to_string(value));
  }
  return result;
}

/// `value` where it is allowed, as near below as it goes.
static int64_t allowed(const Size &size, int64_t value) {
  if (size.powerOfTwo)
    value = int64_t(llvm::bit_floor(uint64_t(std::max<int64_t>(value, 1))));
  return std::clamp(value, size.least, size.most);
}

std::vector<std::string> optiml::gen::otherArguments(const Understood &request) {
  std::vector<std::string> result;
  int64_t odd = 1; // sizes that were equal need not stay so
  for (const Size &size : request.operation->sizes) {
    int64_t asked = request.sizes.at(size.name);
    int64_t value = isKept(size, asked) ? asked : allowed(size, (2 * size.small) | odd);
    odd += 2;
    result.push_back(std::to_string(value));
  }
  return result;
}

std::vector<std::string> optiml::gen::middleArguments(const Understood &request) {
  std::vector<std::string> result;
  for (const Size &size : request.operation->sizes) {
    int64_t asked = request.sizes.at(size.name);
    double mean = std::sqrt(double(std::max<int64_t>(size.small, 1)) * double(asked));
    result.push_back(std::to_string(isKept(size, asked) || asked <= size.small ? asked : allowed(size, int64_t(mean))));
  }
  return result;
}

namespace {

std::string deviceName(const std::string &name) { return "d" + std::string(1, llvm::toUpper(name[0])) + name.substr(1); }
std::string prefixed(const char *prefix, const std::string &name) {
  return prefix + std::string(1, llvm::toUpper(name[0])) + name.substr(1);
}

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

class Writer {
public:
  Writer(const Understood &request, StringRef words, const Library &library)
      : request(request), op(*request.operation), words(words), library(library), renderer(request) {}

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
  std::string elementType(const Buffer &buffer) { return renderer.cType(buffer.type, Place::Host); }
  std::string wantType(const Buffer &buffer) {
    return buffer.type == "T" || buffer.type == "A" || buffer.type == "C" ? renderer.computeType(Place::Reference) : buffer.type;
  }
  std::string wrapLines(std::string text, unsigned indent);
  std::string countOf(const Extra &extra);
  /// A buffer's number of elements, in size_t.
  std::string wide(StringRef count) {
    std::string rendered = text(count, Place::Host);
    return rendered.find_first_of("*+/") == std::string::npos ? rendered : "(size_t)" + rendered;
  }
  std::string value(const Buffer &buffer, const std::string &expression) {
    if (buffer.type == "T" && request.type == "half")
      return "__float2half((float)(" + expression + "))";
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

  const Understood &request;
  const Operation &op;
  StringRef words;
  const Library &library;
  Renderer renderer;
  bool ownTemporaries = true; ///< main has the buffers that only the kernels need
  std::string failure;
};

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
  if (request.type == "half")
    result += "#include <cuda_fp16.h>\n";
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
  for (const Operation *snippet : snippetsFor(library, section("kernel", Place::Device)))
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

std::string Writer::reference() {
  std::string stages;
  llvm::Expected<std::string> functions = renderer.stageFunctions(Place::Reference);
  if (functions)
    stages = *functions;
  else
    failure = llvm::toString(functions.takeError());
  std::string parameters;
  auto add = [&](const std::string &text) { parameters += (parameters.empty() ? "" : ", ") + text; };
  for (const Buffer &buffer : op.buffers)
    if (buffer.role == Role::In)
      add("const std::vector<" + elementType(buffer) + "> &" + buffer.name);
  for (const Extra &extra : renderer.extras())
    add(extra.isArray ? "const std::vector<" + renderer.cType("T", Place::Host) + "> &" + extra.name
                      : renderer.computeType(Place::Reference) + " " + extra.name);
  for (const Real &real : op.reals)
    add("double " + real.name);
  for (const Size &size : op.sizes)
    add("int " + size.name);
  for (const Buffer &buffer : op.buffers)
    if (buffer.role == Role::Out || buffer.role == Role::InOut)
      add("std::vector<" + wantType(buffer) + "> &" + buffer.name);
  std::string own = section("reference-functions", Place::Reference);
  return "// What the kernels must compute, one value after the other" +
         std::string(renderer.isFloating() ? ", in double precision.\n" : ".\n") + own + stages +
         wrapLines("static void reference(" + parameters + ") {", 22) + "\n" + section("reference", Place::Reference) + "}\n\n";
}

std::string Writer::arguments() {
  std::string result, condition, usage;
  int index = 1;
  for (const Size &size : op.sizes) {
    std::string i = std::to_string(index++);
    result += "  int " + size.name + " = argc > " + i + " ? atoi(argv[" + i + "]) : " +
              std::to_string(request.sizes.at(size.name)) + ";\n";
    condition += " || " + size.name + " < " + std::to_string(size.least) +
                 (size.most < (1 << 30) ? " || " + size.name + " > " + std::to_string(size.most) : "");
    if (size.powerOfTwo)
      condition += " || (" + size.name + " & (" + size.name + " - 1)) != 0";
    usage += " " + size.name;
  }
  std::string rules;
  for (const auto &[rule, message] : op.requirements) {
    condition += " || !(" + rule + ")";
    rules += "; " + message;
  }
  for (const Size &size : op.sizes) {
    if (size.most < (1 << 30))
      rules += "; " + size.name + " from " + std::to_string(size.least) + " to " + std::to_string(size.most);
    if (size.powerOfTwo)
      rules += "; " + size.name + " a power of two";
  }
  result += wrapLines("  if (argc > " + std::to_string(index) + condition + ") {", 6) + "\n";
  result += "    fprintf(stderr, \"usage: %s [" + StringRef(usage).ltrim().str() + "]" + rules + "\\n\", argv[0]);\n    return EXIT_FAILURE;\n  }\n";
  return result;
}

std::string Writer::declareReal(const std::string &name, double v) {
  std::string type = renderer.computeType(Place::Host), number = llvm::formatv("{0}", v).str();
  char buffer[40];
  snprintf(buffer, sizeof buffer, "%.9g", v);
  number = buffer;
  if (type == "float" || type == "double") {
    if (number.find_first_of(".e") == std::string::npos)
      number += ".0";
    if (type == "float")
      number += "f";
  }
  return "  const " + type + " " + name + " = " + number + ";\n";
}

std::string Writer::realDeclarations() {
  std::string result;
  for (const Real &real : op.reals)
    result += declareReal(real.name, request.reals.at(real.name));
  for (const Extra &extra : renderer.extras())
    if (!extra.isArray)
      result += declareReal(extra.name, extra.value);
  return result;
}

std::string Writer::countOf(const Extra &extra) {
  if (extra.perColumn)
    return op.columnCount;
  for (const Buffer &buffer : op.buffers)
    if (buffer.role == (extra.isBefore ? Role::In : Role::Out) || buffer.role == Role::InOut)
      return buffer.count;
  return "0";
}

std::string Writer::inputs() {
  std::string result;
  unsigned seed = 1;
  auto fill = [&](const std::string &name, const std::string &type, const std::string &count, std::string init,
                  const Buffer &like) {
    result += "  std::vector<" + type + "> " + name + "(" + wide(count) + ");\n";
    if (init == "custom")
      return;
    std::string source = text(init, Place::Host), number = std::to_string(seed++);
    for (size_t at; (at = source.find("SEED")) != std::string::npos;)
      source.replace(at, 4, number);
    result += "  for (size_t i = 0; i < " + name + ".size(); i++)\n    " + name + "[i] = " + value(like, source) + ";\n";
  };
  for (const Buffer &buffer : op.buffers) {
    if (buffer.role == Role::In || buffer.role == Role::InOut) {
      std::string init = buffer.init;
      bool first = &buffer == &op.buffers.front();
      if (first && !request.before.empty() && !request.before[0].operation->inputs.empty())
        init = request.before[0].operation->inputs; // the first stage knows where it is defined
      else if (init == "${input}")
        init = "${any}";
      fill(buffer.name, elementType(buffer), buffer.count, init.empty() ? "${any}" : init, buffer);
    }
  }
  Buffer like;
  like.type = "T";
  for (const Extra &extra : renderer.extras())
    if (extra.isArray)
      fill(extra.name, renderer.cType("T", Place::Host), countOf(extra), extra.init, like);
  return result + section("inputs", Place::Host);
}

std::string Writer::allocate() {
  std::string result, copies;
  auto add = [&](const std::string &name, const std::string &type, const std::string &count, Role role) {
    std::string device = deviceName(name), bytes = "(" + wide(count) + ") * sizeof(" + type + ")";
    if (role == Role::In || role == Role::InOut)
      bytes = name + ".size() * sizeof(" + type + ")";
    result += "  " + type + " *" + device + ";\n  CUDA_CHECK(cudaMalloc(&" + device + ", " + bytes + "));\n";
    if (role == Role::In || role == Role::InOut)
      copies += "  CUDA_CHECK(cudaMemcpy(" + device + ", " + name + ".data(), " + bytes + ", cudaMemcpyHostToDevice));\n";
    else
      copies += "  CUDA_CHECK(cudaMemset(" + device + ", 0xff, " + bytes + ")); // so that what is not written shows\n";
  };
  for (const Buffer &buffer : op.buffers)
    if (ownTemporaries || buffer.role != Role::Temporary)
      add(buffer.name, elementType(buffer), buffer.count, buffer.role);
  for (const Extra &extra : renderer.extras())
    if (extra.isArray)
      add(extra.name, renderer.cType("T", Place::Host), countOf(extra), Role::In);
  return result + copies;
}

std::string Writer::results() {
  std::string result;
  for (const Buffer &buffer : op.buffers)
    if (buffer.role == Role::Out || buffer.role == Role::InOut) {
      std::string got = prefixed("got", buffer.name);
      if (buffer.type == "T" && request.type == "half") {
        std::string raw = prefixed("raw", buffer.name);
        result += "  std::vector<__half> " + raw + "(" + wide(buffer.count) + ");\n  CUDA_CHECK(cudaMemcpy(" + raw + ".data(), " +
                  deviceName(buffer.name) + ", " + raw + ".size() * sizeof(__half), cudaMemcpyDeviceToHost));\n  std::vector<float> " +
                  got + "(" + raw + ".size());\n  for (size_t i = 0; i < " + raw + ".size(); i++)\n    " + got +
                  "[i] = __half2float(" + raw + "[i]);\n";
        continue;
      }
      result += "  std::vector<" + elementType(buffer) + "> " + got + "(" + wide(buffer.count) + ");\n  CUDA_CHECK(cudaMemcpy(" +
                got + ".data(), " + deviceName(buffer.name) + ", " + got + ".size() * sizeof(" + elementType(buffer) +
                "), cudaMemcpyDeviceToHost));\n";
    }
  for (const Buffer &buffer : op.buffers)
    if (ownTemporaries || buffer.role != Role::Temporary)
      result += "  CUDA_CHECK(cudaFree(" + deviceName(buffer.name) + "));\n";
  for (const Extra &extra : renderer.extras())
    if (extra.isArray)
      result += "  CUDA_CHECK(cudaFree(" + deviceName(extra.name) + "));\n";
  return result;
}

std::string Writer::check(StringRef verdict) {
  std::string result, call, compare;
  auto add = [&](const std::string &text) { call += (call.empty() ? "" : ", ") + text; };
  for (const Buffer &buffer : op.buffers)
    if (buffer.role == Role::In)
      add(buffer.name);
  for (const Extra &extra : renderer.extras())
    add(extra.name);
  for (const Real &real : op.reals)
    add(real.name);
  for (const Size &size : op.sizes)
    add(size.name);
  for (const Buffer &buffer : op.buffers) {
    if (buffer.role != Role::Out && buffer.role != Role::InOut)
      continue;
    std::string want = prefixed("want", buffer.name);
    add(want);
    if (buffer.role == Role::Out)
      result += "  std::vector<" + wantType(buffer) + "> " + want + "(" + wide(buffer.count) + ");\n";
    else if (buffer.type == "T" && request.type == "half")
      result += "  std::vector<double> " + want + "(" + buffer.name + ".size());\n  for (size_t i = 0; i < " + want + ".size(); i++)\n    " + want +
                "[i] = __half2float(" + buffer.name + "[i]);\n";
    else
      result += "  std::vector<" + wantType(buffer) + "> " + want + "(" + buffer.name + ".begin(), " + buffer.name + ".end());\n";
    bool exact = buffer.type != "A" && buffer.type != "T" && buffer.type != "C" && buffer.type != "float" && buffer.type != "double";
    exact |= !renderer.isFloating() && (buffer.type == "T" || buffer.type == "A");
    compare += "  wrong += compare(\"" + buffer.name + "\", " + prefixed("got", buffer.name) + ", " + want + ", " +
               (exact ? "0.0" : "tolerance") + ");\n";
  }
  result += "  " + wrapLines("reference(" + call + ");", 12) + "\n";
  std::string tolerance = text(op.tolerance.empty() ? "16 * eps" : op.tolerance, Place::Host);
  const char *eps = request.type == "half" ? "1e-3" : request.type == "double" ? "DBL_EPSILON" : "FLT_EPSILON";
  if (StringRef(compare).contains("tolerance"))
    result += std::string("  const double eps = ") + eps + ", tolerance = " + tolerance + ";\n";
  result += "  size_t wrong = 0;\n" + compare;
  std::string format, values;
  for (const Size &size : op.sizes) {
    format += " " + size.name + "=%d";
    values += ", " + size.name;
  }
  std::string name = op.name;
  if (name == "map" || name == "map2d") {
    name.clear();
    for (const Stage &stage : request.before)
      name += (name.empty() ? "" : "+") + stage.operation->name;
  }
  result += "  printf(\"%s " + name + format + "\\n\", wrong ? \"FAILED\" : \"" + verdict.str() + "\"" + values + ");\n";
  return result + "  return wrong ? EXIT_FAILURE : EXIT_SUCCESS;\n";
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

} // namespace

llvm::Expected<std::string> optiml::gen::writeProgram(const Understood &request, StringRef words, const Library &library) {
  return Writer(request, words, library).write();
}

llvm::Expected<std::string> optiml::gen::writeExample(const Understood &request, StringRef words, const Library &library) {
  return Writer(request, words, library).writeWithLaunch();
}

llvm::Expected<Harness> optiml::gen::writeHarness(const Understood &request, StringRef verdict, const Library &library) {
  return Writer(request, "the same", library).harness(verdict);
}
