//===- ProgramHost.cpp - the host's parts of a generated program ----------===//
#include "ProgramWriter.h"
#include "optiml/Support/Numbers.h"

using namespace optiml;
using namespace optiml::gen;

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
         wrapLines("static void reference(" + parameters + ") {", 22) + "\n" + section("reference", Place::Reference) +
         "}\n\n";
}

std::string Writer::arguments() {
  std::string result, condition, usage;
  int index = 1;
  for (const Size &size : op.sizes) {
    std::string i = std::to_string(index++);
    result += "  int " + size.name + " = argc > " + i + " ? atoi(argv[" + i +
              "]) : " + std::to_string(spec.sizes.at(size.name)) + ";\n";
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
  result += "    fprintf(stderr, \"usage: %s [" + StringRef(usage).ltrim().str() + "]" + rules +
            "\\n\", argv[0]);\n    return EXIT_FAILURE;\n  }\n";
  return result;
}

std::string Writer::declareReal(const std::string &name, double v) {
  std::string type = renderer.computeType(Place::Host), number = shortestNumber(v);
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
    result += declareReal(real.name, spec.reals.at(real.name));
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
    result +=
        "  for (size_t i = 0; i < " + name + ".size(); i++)\n    " + name + "[i] = " + value(like, source) + ";\n";
  };
  for (const Buffer &buffer : op.buffers) {
    if (buffer.role == Role::In || buffer.role == Role::InOut) {
      std::string init = buffer.init;
      bool first = &buffer == &op.buffers.front();
      if (first && !spec.before.empty() && !spec.before[0].operation->inputs.empty())
        init = spec.before[0].operation->inputs; // the first stage knows where it is defined
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
      copies +=
          "  CUDA_CHECK(cudaMemcpy(" + device + ", " + name + ".data(), " + bytes + ", cudaMemcpyHostToDevice));\n";
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
      if (const ShortFloat *narrow = shortFloat(spec.type); narrow && buffer.type == "T") {
        std::string raw = prefixed("raw", buffer.name);
        result += "  std::vector<" + narrow->cType.str() + "> " + raw + "(" + wide(buffer.count) +
                  ");\n  CUDA_CHECK(cudaMemcpy(" + raw + ".data(), " + deviceName(buffer.name) + ", " + raw +
                  ".size() * sizeof(" + narrow->cType.str() + "), cudaMemcpyDeviceToHost));\n  std::vector<float> " +
                  got + "(" + raw + ".size());\n  for (size_t i = 0; i < " + raw + ".size(); i++)\n    " + got +
                  "[i] = " + narrow->toFloat.str() + "(" + raw + "[i]);\n";
        continue;
      }
      result += "  std::vector<" + elementType(buffer) + "> " + got + "(" + wide(buffer.count) +
                ");\n  CUDA_CHECK(cudaMemcpy(" + got + ".data(), " + deviceName(buffer.name) + ", " + got +
                ".size() * sizeof(" + elementType(buffer) + "), cudaMemcpyDeviceToHost));\n";
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
    else if (const ShortFloat *narrow = shortFloat(spec.type); narrow && buffer.type == "T")
      result += "  std::vector<double> " + want + "(" + buffer.name + ".size());\n  for (size_t i = 0; i < " + want +
                ".size(); i++)\n    " + want + "[i] = " + narrow->toFloat.str() + "(" + buffer.name + "[i]);\n";
    else
      result += "  std::vector<" + wantType(buffer) + "> " + want + "(" + buffer.name + ".begin(), " + buffer.name +
                ".end());\n";
    bool exact = buffer.type != "A" && buffer.type != "T" && buffer.type != "C" && buffer.type != "float" &&
                 buffer.type != "double";
    exact |= !renderer.isFloating() && (buffer.type == "T" || buffer.type == "A");
    compare += "  wrong += compare(\"" + buffer.name + "\", " + prefixed("got", buffer.name) + ", " + want + ", " +
               (exact ? "0.0" : "tolerance") + ");\n";
  }
  result += "  " + wrapLines("reference(" + call + ");", 12) + "\n";
  std::string tolerance = text(op.tolerance.empty() ? "16 * eps" : op.tolerance, Place::Host);
  const ShortFloat *narrow = shortFloat(spec.type);
  std::string eps = narrow ? narrow->eps.str() : spec.type == "double" ? "DBL_EPSILON" : "FLT_EPSILON";
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
    for (const Stage &stage : spec.before)
      name += (name.empty() ? "" : "+") + stage.operation->name;
  }
  result +=
      "  printf(\"%s " + name + format + "\\n\", wrong ? \"FAILED\" : \"" + verdict.str() + "\"" + values + ");\n";
  return result + "  return wrong ? EXIT_FAILURE : EXIT_SUCCESS;\n";
}
