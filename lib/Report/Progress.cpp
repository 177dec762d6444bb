//===- Progress.cpp - one line that shows a search at work ----------------===//
#include "optiml/Report/Progress.h"
#include "llvm/Support/FormatVariadic.h"
#include <sys/ioctl.h>
#include <unistd.h>

using namespace optiml;

Progress::Progress(int descriptor, unsigned budget)
    : descriptor(descriptor), terminal(isatty(descriptor)), budget(budget) {}

Progress::~Progress() { clear(); }

std::string Progress::line(unsigned columns) const {
  std::string text = "optiml: " + std::to_string(done);
  if (budget)
    text += "/" + std::to_string(budget);
  text +=
      llvm::formatv(" evaluations, {0:f0} s, best {1:f2}x{2}", elapsed, bestSpeedup, predicted ? " (predicted)" : "")
          .str();
  if (!trying.empty())
    text += ", trying " + trying;
  if (text.size() > columns)
    text = columns > 3 ? text.substr(0, columns - 3) + "..." : text.substr(0, columns);
  return text;
}

void Progress::draw(bool now) {
  if (!terminal)
    return;
  auto time = std::chrono::steady_clock::now();
  if (!now && time - lastDrawn < std::chrono::milliseconds(80))
    return;
  lastDrawn = time;
  winsize size{};
  unsigned columns = ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
  // A full last column would wrap on some terminals.
  std::string text = "\r\x1b[K" + line(columns - 1);
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

void Progress::started(const Recipe &recipe, Fidelity) {
  std::lock_guard lock(mutex);
  trying = recipe.empty() ? "the original" : recipeText(recipe);
  draw(false);
}

void Progress::evaluated(const EvaluationRecord &record) {
  std::lock_guard lock(mutex);
  done = record.number;
  elapsed = record.elapsed;
  predicted = record.measurement.time.predicted;
  if (record.improved && record.measurement.time.seconds > 0)
    bestSpeedup = record.measurement.time.baseline / record.measurement.time.seconds;
  draw(record.improved);
}
