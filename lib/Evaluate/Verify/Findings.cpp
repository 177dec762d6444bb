//===- Findings.cpp - what a comparison has to say ---------------------------===//
#include "Comparison.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace optiml;

void Comparison::leaveOut(const ProgramInput &input, const std::string &why) {
  auto same = [&](const auto &entry) { return entry.first == why; };
  auto it = llvm::find_if(leftOut, same);
  if (it == leftOut.end())
    it = leftOut.insert(it, {why, {}});
  if (!llvm::is_contained(it->second, input.name))
    it->second.push_back(input.name);
}

std::string optiml::someOf(llvm::ArrayRef<std::string> names, size_t most) {
  std::string text = llvm::join(names.take_front(most), "; ");
  return names.size() > most ? text + "; and " + std::to_string(names.size() - most) + " more" : text;
}

void Comparison::tellWhatIsLeftOut() {
  constexpr size_t mostNamed = 3;
  for (const auto &[why, inputs] : leftOut)
    note("left out: " + someOf(inputs, mostNamed) + ": " + why);
}

void Comparison::note(const std::string &text) {
  if (!llvm::is_contained(report.notes, text))
    report.notes.push_back(text);
}

bool Comparison::fail(Verdict verdict, const std::string &what, const std::string &input, const std::string &key) {
  const bool first = report.findings.empty();
  Finding &finding = findings.try_emplace(key.empty() ? what : key, report.findings.size()).second
                         ? report.findings.emplace_back(Finding{verdict, what, {}})
                         : report.findings[findings[key.empty() ? what : key]];
  if (!input.empty())
    finding.inputs.push_back(input);
  if (first) {
    report.verdict = verdict;
    report.why = what + (input.empty() ? "" : ", on " + input);
  }
  return false;
}
