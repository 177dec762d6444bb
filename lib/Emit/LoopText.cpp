//===- LoopText.cpp - CUDA for a loop of launches -------------------------===//
//
// The new kernels are files of the folder texts: CUDA in which names, the element's type and the operation are filled
// in.
//
// Scan: one pass (Merrill and Garland's decoupled look-back). Each block takes the next tile, scans it, and looks back
// at the sums of the tiles before it, 32 at a time, until one knows the sum of everything up to it. What another block
// reads is written before a fence and announced by an atomic after it.
//
// Sort: tiles are sorted in shared memory by a bitonic network whose comparisons all point one way, so that a tile may
// end anywhere; then runs are merged two by two, each element finding its place by a binary search in the other run.
//
// Closure: in tiles, two launches for each on the diagonal. Whether the matrix holds what that needs is looked up
// before (ClosureStep.cpp); where it does not, the launches run as they are.
//
//===----------------------------------------------------------------------===//
#include "Texts.h"
#include "llvm/ADT/StringExtras.h"

using namespace optiml;

/// Tests which form a launch has.
static std::string formTests(const LaunchIdiom &idiom) {
  std::string text;
  bool scan = idiom.kind == LaunchIdiom::Kind::ScanStep;
  for (const LaunchIdiom::Form &form : idiom.forms) {
    std::string when = llvm::join(form.when, " && ");
    if (!when.empty())
      text += "    if (" + when + ") {\n";
    if (idiom.kind == LaunchIdiom::Kind::ClosureStep)
      text += "    n = " + form.count + ";\n    pitch = " + form.pitch + ";\n    vertex = " + form.step +
              ";\n    return true;\n";
    else if (scan)
      text += "    n = " + form.count + ";\n    distance = " + form.distance + ";\n    return distance > 0;\n";
    else
      text += "    first = " + form.first + ";\n    pairs = " + form.count +
              ";\n    return threads(launch) >= " + (form.threadPerElement ? "2 * pairs + first - 1" : "pairs") + ";\n";
    if (when.empty())
      return text; // the only form
    text += "    }\n";
  }
  return text + "    return false;\n";
}

/// A class's members for parameters.
static std::string fields(llvm::ArrayRef<Parameter> parameters) {
  std::string result;
  for (const Parameter &parameter : parameters)
    result += "    " + parameter.declaration + ";\n";
  return result;
}

static std::string arguments(llvm::ArrayRef<Parameter> parameters) {
  std::string result;
  for (const Parameter &parameter : parameters)
    result += ", " + parameter.name;
  return result;
}

/// Launches the kernel as it is, or through its dispatcher.
static std::string runText(const std::string &dispatcher, const std::string &callee,
                           llvm::ArrayRef<Parameter> parameters) {
  std::string config = "launch.launchGrid, launch.launchBlock, launch.launchShared, launch.launchStream", list;
  for (const Parameter &parameter : parameters)
    list += (list.empty() ? "" : ", ") + ("launch." + parameter.name);
  if (!dispatcher.empty())
    return dispatcher + "(" + config + (list.empty() ? "" : ", " + list) + ");";
  return "path().count(false);\n    " + callee + "<<<" + config + ">>>(" + list + ");";
}

/// What is filled in of a closure: the operations, and the numbers that the matrix may hold.
static void addClosure(const LaunchIdiom &idiom, std::map<std::string, std::string> &values) {
  static const std::map<std::string, std::string> operations = {{"+", "a + b"},           {"*", "a * b"},
                                                                {"&", "a & b"},           {"|", "a | b"},
                                                                {"min", "b < a ? b : a"}, {"max", "a < b ? b : a"}};
  const std::string type = values["T"];
  const bool sums = idiom.with == "+" && !idiom.isFloat, bits = idiom.op == "|" && !idiom.infinite.empty();
  values["OP"] = operations.at(idiom.op);
  values["WITH"] = operations.at(idiom.with);
  values["TILE"] = idiom.bytes > 4 ? "32" : "64";
  // No sum of two numbers that are not negative overflows.
  values["U"] = !sums ? type : idiom.bytes > 4 ? "unsigned long long" : "unsigned";
  const unsigned width = 8 * idiom.bytes - idiom.isSigned;
  const std::string top = std::to_string(~0ull >> (64 - std::min(width, 64u))) + "ull";
  std::string most = "0", infinite = "0";
  values["ALLOWED"] = bits                   ? "x == 0 || x == 1"
                      : idiom.with == "*"    ? "x >= 0 && x <= 1"
                      : idiom.op == "|"      ? "true"
                      : idiom.with != "+"    ? "x == x"
                      : idiom.infinite != "" ? "x >= 0 && (x <= most || x == infinite)"
                      : sums                 ? "x >= 0 && x <= most"
                                             : "x >= 0";
  if (idiom.with == "+" && !idiom.infinite.empty())
    most = infinite = type + "(" + idiom.infinite + ")";
  if (sums) {
    most = type + "(" + top + " / 2)";
    if (!idiom.infinite.empty()) // a path has fewer than n edges
      most = infinite + " <= " + most + " ? " + infinite + " : " + type + "(" + top +
             (idiom.infiniteAlone ? " / (2 * n))" : " / 2)");
    if (!idiom.infinite.empty() && !idiom.infiniteAlone)
      values["ALLOWED"] = "x >= 0 && x <= most";
  }
  values["LIMITS"] = "    const " + type + " most = " + most + ", infinite = " + infinite + ";\n";
}

std::string optiml::loopText(const LaunchIdiom &idiom, const LoopTextNames &names, const LoopCopyNames &copy) {
  bool scan = idiom.kind == LaunchIdiom::Kind::ScanStep, steps = idiom.kind == LaunchIdiom::Kind::TimeStep,
       closure = idiom.kind == LaunchIdiom::Kind::ClosureStep;
  static const std::map<std::string, std::string> operations = {
      {"+", "a + b"}, {"*", "a * b"},           {"&", "a & b"},          {"|", "a | b"},
      {"^", "a ^ b"}, {"min", "b < a ? b : a"}, {"max", "a < b ? b : a"}};
  std::map<std::string, std::string> values = {{"P", names.prefix},      {"T", idiom.element},     {"LOOP", names.loop},
                                               {"HELPER", names.helper}, {"KERNEL", names.kernel}, {"IN", idiom.in},
                                               {"OUT", idiom.out}};
  std::string alias; // "unsigned int()" is no expression
  if (idiom.element.find(' ') != std::string::npos) {
    values["T"] = names.prefix + "_element";
    alias = "\ntypedef " + idiom.element + " " + values["T"] + ";\n";
  }
  // Parenthesized, so that it can be an operand.
  if (scan) // CUDA's own min and max know what to do with NaN
    values["OP"] =
        "(" +
        (idiom.isFloat && (idiom.op == "min" || idiom.op == "max") ? idiom.op + "(a, b)" : operations.at(idiom.op)) +
        ")";
  bool undone = !idiom.isFloat && (idiom.op == "+" || idiom.op == "^");
  values["UNDO"] = idiom.op == "^" ? "sums[i] ^ sums[i - distance]"
                                   : "(unsigned long long)sums[i] - (unsigned long long)sums[i - distance]";
  values["WHAT"] = scan      ? names.kernel + " is a step of Hillis and Steele's scan"
                   : steps   ? names.kernel + " is a step of a stencil in time"
                   : closure ? names.kernel + " is a step of a closure"
                             : names.kernel + " is a phase of a sort by odd-even transposition";
  values["PARAMETERS"] = names.parameters.empty() ? "" : ",\n           " + declarations(names.parameters);
  values["ARGUMENTS"] = arguments(names.parameters);
  values["FIELDS"] = fields(names.parameters);
  values["RUN"] = runText(names.launch, names.callee, names.parameters);
  for (const char *name : {"ADDCOPY", "COPIES", "RUNCOPY", "CLEARCOPIES"})
    values[name] = "";
  if (copy.step) {
    values["COPYPARAMETERS"] = copy.parameters.empty() ? "" : ",\n               " + declarations(copy.parameters);
    values["COPYARGUMENTS"] = arguments(copy.parameters);
    values["COPYFIELDS"] = fields(copy.parameters);
    values["COPYRUN"] = runText(copy.launch, copy.callee, copy.parameters);
    values["ADDCOPY"] = filledText("add-copy.txt", values);
    values["COPIES"] = filledText("copy-members.txt", values);
    values["RUNCOPY"] = "      if (i < copies.size())\n        run(copies[i]);\n";
    values["CLEARCOPIES"] = "    copies.clear();\n";
  }
  values["FORMS"] = steps ? "" : formTests(idiom);
  values["CONSTRUCTOR"] = steps && !copy.step ? timeStepUsed(*idiom.step) : "";
  if (scan)
    values["CONSTRUCTOR"] = filledText("scan-used.txt", values);
  values["DEAD"] = undone ? "" : "!dead || ";
  values["BEFORE"] = !undone ? ""
                             : "if (!dead) // the other buffer, as the last step finds it\n"
                               "      " +
                                   names.prefix + "_before<<<unsigned((n + 255) / 256), 256, 0, stream>>>(last." +
                                   idiom.out + ", const_cast<" + values["T"] + " *>(last." + idiom.in +
                                   "), int(n), int(distance));";
  if (steps) {
    values["MEMBERS"] = timeStepMembers(*idiom.step, idiom.tile, names, copy);
    return timeStepKernel(*idiom.step, idiom.tile, names.prefix) + "\n" + filledText("loop-class.txt", values);
  }
  if (closure)
    addClosure(idiom, values);
  values["MEMBERS"] = scan ? filledText("scan-members.txt", values)
                           : "\n" + filledText(closure ? "closure-members.txt" : "sort-members.txt", values);
  std::string kernels = "\n" + filledText(scan ? "scan.cu" : closure ? "closure.cu" : "sort.cu", values);
  if (undone && scan)
    kernels += "\n" + filledText("scan-before.cu", values);
  return alias + kernels + "\n" + filledText("loop-class.txt", values);
}
