//===- Running.cpp - what each output takes from all inputs so far ---------===//
//
// "each output is the sum of all inputs up to its position", "entry k of the result is the total of the first k
// entries", "for every position the largest value before it": scans, said by what one output is. Every word must have
// its part in it.
//
//===----------------------------------------------------------------------===//
#include "ComposeSteps.h"
#include "SpokenWords.h"

using namespace optiml;
using namespace optiml::gen;
using llvm::StringRef;

namespace {

class Running : public SpokenWords {
public:
  using SpokenWords::SpokenWords;

  /// The scan in words; empty where it is none.
  std::string request() {
    lead();
    tail();
    take({":"}) || take({","});
    size_t start = at;
    take({"in"}) || take({"for"}) || take({"within"}) || take({"along"});
    if (take({"each"}) && (raw() == "row" || raw() == "column"))
      axis = words[at++].raw;
    else
      at = start;
    take({","}) || take({":"});
    position();
    take({","}) || take({":"});
    takeAny({"write", "store", "compute", "output", "give", "find", "return", "holds"});
    output();
    std::string fold = this->fold();
    if (fold.empty() || !range(fold == "sum"))
      return "";
    take({"for", "each", "position"}) || take({"for", "each", "element"}) || take({"at", "each", "position"});
    tail();
    included();
    take({","}) && bareTail();
    if (at != words.size() || fold == "mean")
      return at == words.size() ? "formula" : "";
    if (!axis.empty())
      return fold == "sum" && !isExclusive && !isBackward ? "prefix sum of each " + axis : "formula";
    if (isExclusive)
      return fold == "sum" ? "exclusive prefix sum" : "formula";
    if (isBackward)
      return fold == "sum" ? "suffix sum" : "formula";
    return fold == "sum"   ? "inclusive prefix sum"
           : fold == "max" ? "running maximum"
           : fold == "min" ? "running minimum"
                           : "running product";
  }

private:
  const Set places = {"position", "index",  "place", "point", "element", "step",
                      "slot",     "output", "input", "entri", "indices", "one"};

  bool position() {
    size_t before = at;
    if ((take({"for"}) || take({"at"}) || take({"in"}) || take({"to"}) || true) && take({"each"}) && takeAny(places) &&
        !take({"is"}) && raw() != "of")
      return true;
    at = before;
    return false;
  }
  /// "each output is", "element i of the result becomes".
  bool output() {
    size_t before = at;
    if (take({"replace"}) && take({"each"}) && takeAny({"element", "output", "input"}) &&
        (take({"by"}) || take({"with"})))
      return true;
    at = before;
    take({"each"}) || take({"the"});
    if (takeAny({"output", "result", "element", "y"})) {
      letter();
      take({"of", "the", "output"}) || take({"of", "the", "result"}) || take({"[", "i", "]"});
      if (takeAny({"is", "becomes", "equals", "holds", "contains", "gives", "gets", "should"})) {
        take({"be"}) || take({"replaced", "by"});
        return true;
      }
    }
    at = before;
    return false;
  }
  bool letter() { return raw().size() == 1 && raw() != "a" && raw()[0] >= 'a' && raw()[0] <= 'z' && (++at, true); }

  /// ", the k-th included".
  void included() {
    size_t before = at;
    bool isSaid = false;
    while (takeAny({",", "(", ")", "including", "inclusive", "inclusively", "included", "it", "itself", "that", "the",
                    "own", "one", "-", "th", "k", "i"}))
      isSaid |= StringRef(last()).starts_with("inclu");
    at = isSaid ? at : before;
  }

  std::string fold() {
    take({"the"});
    std::string name = text();
    if (name != "sum" && name != "max" && name != "min" && name != "product" && name != "mean")
      return "";
    ++at;
    takeAny({"value"});
    take({"element"});
    return name;
  }
  /// "of all inputs up to its position", "so far", "of the first i elements".
  bool range(bool mayBeFirst) {
    take({"of"}) || take({"over"}) || take({"among"});
    takeAny({"all", "the", "everything", "x"});
    takeAny({"the", "inputs"});
    if (mayBeFirst && take({"first"}) && letter()) { // "the first i elements"
      take({"element"}) || take({"inputs"});
      included();
      return true;
    }
    if (takeAny({"previous", "earlier", "preceding"}) && takeAny({"inputs", "input", "element"}))
      return isExclusive = true;
    if (Set types = {"floats", "doubles", "ints", "integers", "halfs"}; types.count(raw()))
      kept.push_back({words[at].begin, words[at].end}), ++at;
    takeAny({"element", "inputs", "input", "data", "samples"});
    take({"in", "the", "input"});
    take({"seen"}) || take({"encountered"}) || take({"read"});
    if (take({"so", "far"}) || take({"until", "now"}) || take({"up", "to", "now"}) || take({"up", "to", "here"}))
      return true;
    static const Set which = {"and",  "including", "inclusive", "this",       "that", "its", "the", "own",
                              "same", "each",      "current",   "respective", "(",    ")",   ",",   "included"};
    auto place = [&] {
      size_t before = at;
      while (takeAny(which)) {
      }
      bool isPlace =
          takeAny({"position", "index", "place", "point", "element", "it", "itself", "one", "there", "here", "i"}) ||
          take({"x", "[", "i", "]"});
      if (!isPlace && at == before)
        return false;
      take({"i"}) || take({"inclusive"}) || take({"inclusively"});
      included();
      return isPlace;
    };
    bool fromStart = take({"[", "0", "]"}) || take({"from", "the", "start"}) || take({"from", "the", "beginning"}) ||
                     take({"from", "0"}) || take({"from", "the", "first"});
    if (take({"up", "to"}) || take({"until"}) || take({"till"}) || (fromStart && (take({"to"}) || take({"through"})))) {
      isExclusive |= take({"but", "not", "including"}) || take({"but", "excluding"});
      return place();
    }
    if (takeAny({"itself", "it"}) && take({"and"})) { // "the sum of itself and all elements before it"
      takeAny({"all", "everything"}), takeAny({"the"}), takeAny({"element", "inputs"});
      bool isBefore = take({"before"}), isBehind = !isBefore && (take({"after"}) || take({"behind"}));
      isBackward = isBehind;
      return (isBefore || isBehind) && place();
    }
    if (take({"before"}) || take({"preceding"}) || take({"left", "of"}))
      return isExclusive = true, place();
    if (take({"from"}) && place() &&
        (take({"on"}) || take({"onwards"}) || take({"to", "the", "end"}) || take({"until", "the", "end"}) ||
         take({"onward"})))
      return isBackward = true;
    return false;
  }

  std::string axis;
  bool isExclusive = false, isBackward = false;
};

} // namespace

std::string optiml::gen::runningInWords(StringRef request, const Vocabulary &vocabulary) {
  Running running(request, vocabulary);
  std::string scan = running.request();
  return scan.empty() ? request.str() : scan + running.keptOf(request);
}
