//===- Explain.cpp - what was understood, for people ----------------------===//
#include "Reader.h"
#include "llvm/ADT/StringExtras.h"

using namespace optiml;
using namespace optiml::gen;

std::string Understood::explain() const {
  std::string text = "operation: " + operation->name + " (" + operation->title + ")\ntype: " + type + "\n";
  for (const Size &size : operation->sizes)
    text += "size: " + size.name + " = " + std::to_string(sizes.at(size.name)) + "\n";
  for (const auto &[name, value] : reals)
    text += "constant: " + name + " = " + shortestNumber(value) + "\n";
  for (const auto &[name, value] : choices)
    text += "choice: " + name + " = " + value + "\n";
  for (const auto &[which, stages] : {std::pair("before", &before), std::pair("after", &after)})
    for (const Stage &stage : *stages) {
      text += std::string("stage ") + which + ": " + stage.operation->name;
      for (const auto &[name, value] : stage.reals)
        text += " " + name + "=" + shortestNumber(value);
      text += "\n";
    }
  for (const std::string &note : notes)
    text += "note: " + note + "\n";
  if (!ignored.empty())
    text += "not used: " + llvm::join(ignored, ", ") + "\n";
  return text;
}
