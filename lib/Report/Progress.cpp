//===- Progress.cpp - one line that shows a search at work ----------------===//
#include "optiml/Report/Progress.h"
#include "llvm/Support/FormatVariadic.h"
#include <cstdlib>
#include <sys/ioctl.h>
#include <unistd.h>

using namespace optiml;
using Clock = std::chrono::steady_clock;

/// Where colours are wanted: https://no-color.org.
static bool wantsColours() {
  const char *none = std::getenv("NO_COLOR"), *kind = std::getenv("TERM");
  return !(none && *none) && kind && std::string(kind) != "dumb";
}

Progress::Progress(int descriptor, ProgressBudget budget)
    : descriptor(descriptor), terminal(isatty(descriptor)), colours(terminal && wantsColours()), budget(budget) {}

Progress::~Progress() { clear(); }

/// " 37 %", and what is left of the time.
std::string Progress::budgetText() const {
  double share = budget.evaluations ? double(done) / budget.evaluations : 0;
  std::string left;
  if (budget.seconds > 0) {
    const double spent = std::chrono::duration<double>(Clock::now() - budget.began).count();
    share = std::max(share, spent / budget.seconds);
    left = llvm::formatv(", {0:f0} s left", std::max(0.0, budget.seconds - spent));
  }
  return llvm::formatv(" {0:f0} %{1}", 100 * std::min(1.0, share), left);
}

std::string Progress::line(unsigned columns) const {
  std::string text = "optiml: " + doing;
  if (done || !trying.empty()) {
    text += budgetText() + ", " + std::to_string(done) + " evaluations, best " +
            llvm::formatv("{0:f2}x", bestSpeedup).str() + (predicted ? " (predicted)" : "");
    if (!trying.empty())
      text += ", trying " + trying;
  }
  if (text.size() > columns)
    text = columns > 3 ? text.substr(0, columns - 3) + "..." : text.substr(0, columns);
  return text;
}

void Progress::draw(bool now) {
  if (!terminal)
    return;
  auto time = Clock::now();
  if (!now && time - lastDrawn < std::chrono::milliseconds(80))
    return;
  lastDrawn = time;
  winsize size{};
  unsigned columns = ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
  // A full last column would wrap on some terminals.
  std::string text = line(columns - 1);
  if (size_t best = text.find("best "), end = text.find('x', best); colours && bestSpeedup > 1 && end < text.size())
    text = text.substr(0, best + 5) + "\x1b[1;32m" + text.substr(best + 5, end - best - 4) + "\x1b[0m" +
           text.substr(end + 1);
  text = "\r\x1b[K" + text;
  drawn = true;
  if (write(descriptor, text.data(), text.size()) < 0)
    terminal = false;
}

void Progress::clear() {
  std::lock_guard lock(mutex);
  if (terminal && drawn && write(descriptor, "\r\x1b[K", 4) < 0)
    terminal = false;
  drawn = false;
}

void Progress::phase(const std::string &name) {
  std::lock_guard lock(mutex);
  doing = name;
  trying.clear();
  const std::string line = "optiml-clang: " + name + "\n";
  if (terminal)
    draw(true);
  else if (write(descriptor, line.data(), line.size()) < 0)
    return; // a log that is full or closed is no reason to stop
}

void Progress::started(const Recipe &recipe, Fidelity) {
  std::lock_guard lock(mutex);
  trying = recipe.empty() ? "the original" : recipeText(recipe);
  draw(false);
}

void Progress::evaluated(const EvaluationRecord &record) {
  std::lock_guard lock(mutex);
  done = record.number;
  predicted = record.measurement.time.predicted;
  if (record.improved && record.measurement.time.seconds > 0)
    bestSpeedup = record.measurement.time.baseline / record.measurement.time.seconds;
  draw(record.improved);
}
