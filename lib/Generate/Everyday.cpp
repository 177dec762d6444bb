//===- Everyday.cpp - everyday words in those of the library ----------------===//
//
// "double all prices", "cut every number in half", "on which day was it the hottest", "who is older than 30": verbs
// that are multiples, superlatives of any kind, and questions for a place or a total, in the words that the
// operations are described with. What they are said of stays.
//
//===----------------------------------------------------------------------===//
#include "Asides.h"
#include "Rewrites.h"
#include "optiml/Generate/Words.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include <map>
#include <set>
#include <vector>

using namespace optiml::gen;
using llvm::StringRef;

namespace {

using Set = std::set<StringRef>;

/// The words of a text, and their signs.
struct Words {
  explicit Words(StringRef text) : text(text), lower(text.lower()) {
    for (size_t i = 0; i < lower.size();) {
      size_t end = i + 1;
      if (llvm::isAlnum(lower[i]))
        while (end < lower.size() && llvm::isAlnum(lower[end]))
          ++end;
      if (lower[i] != ' ' && lower[i] != '\n')
        at.push_back({i, end});
      i = end;
    }
  }
  StringRef operator[](size_t word) const {
    return word < at.size() ? StringRef(lower).slice(at[word].first, at[word].second) : StringRef();
  }
  size_t size() const { return at.size(); }
  /// [first, last) as it was written.
  std::string slice(size_t first, size_t last) const {
    return first < last ? text.slice(at[first].first, at[last - 1].second).str() : std::string();
  }
  /// `text` with the words [first, last) replaced.
  std::string replaced(size_t first, size_t last, const std::string &by) const {
    return text.take_front(at[first].first).str() + by + text.substr(at[last - 1].second).str();
  }

  StringRef text;
  std::string lower;
  std::vector<std::pair<size_t, size_t>> at;
};

} // namespace

/// Whether a step may begin here: at the start, behind a comma, "then", "please", "a kernel to".
static bool beginsStep(const Words &words, size_t at) {
  static const Set before = {",",       ";",      ".",    ":",       "and",  "then",  "to",  "please",
                             "kernel",  "should", "must", "will",    "that", "which", "can", "you",
                             "finally", "first",  "just", "program", "now",  "would"};
  return !at || before.count(words[at - 1]);
}

/// "give me half of every number", "twice each value": an amount that is asked for.
static bool beginsAmount(const Words &words, size_t at) {
  static const Set before = {"me", "us", "compute", "get", "give", "want", "need", "return", "write", "output", "take"};
  return beginsStep(words, at) || before.count(words[at - 1]);
}

/// The end of what a step is done to, which begins at `at`: "all the numbers", "every element" of "every element of a
/// matrix".
static size_t endOfObject(const Words &words, size_t at) {
  static const Set ends = {",",  ";",  ".",    ":",     "and",    "then", "in",   "of",   "for",   "before", "followed",
                           "by", "on", "with", "after", "inside", "from", "into", "that", "which", "(",      "as"};
  while (at < words.size() && !ends.count(words[at]))
    at += words[at] == "each" && words[at + 1] == "of" ? 2 : 1;
  return at;
}

/// Something there is much of, or one thing that was named before: no name behind a type ("double array").
static bool isObject(const Words &words, size_t first, size_t last) {
  static const Set leads = {"all",   "every", "each", "everything", "the",  "these", "those", "my",  "our",
                            "their", "them",  "it",   "its",        "both", "your",  "any",   "this"};
  static const Set measures = {"resolution", "size", "width", "height",  "length",
                               "precision",  "rate", "speed", "sampling"};
  static const Set ofThings = {"number", "amount", "sum"};
  bool isCounted =
      first + 1 < last && llvm::isDigit(words[first][0]) && words[last - 1].ends_with("s"); // "halve 6000 floats"
  bool isAmount = first < last && ofThings.count(words[last - 1]) && words[last] == "of";
  return first < last && !isAmount && (isCounted || leads.count(words[first])) && !measures.count(words[last - 1]);
}

/// "double every element", "make all prices twice as big", "cut each number in half", "each value doubled".
static std::string multiples(std::string text) {
  static const std::map<StringRef, StringRef> verbs = {{"double", "2"},    {"doubles", "2"},   {"doubling", "2"},
                                                       {"triple", "3"},    {"triples", "3"},   {"tripling", "3"},
                                                       {"quadruple", "4"}, {"halve", "0.5"},   {"halves", "0.5"},
                                                       {"halving", "0.5"}, {"quadruples", "4"}};
  static const std::map<StringRef, StringRef> participles = {
      {"doubled", "2"}, {"tripled", "3"}, {"quadrupled", "4"}, {"halved", "0.5"}};
  static const std::map<StringRef, StringRef> times = {
      {"twice", "2"}, {"half", "0.5"}, {"double", "2"}, {"thrice", "3"}};
  static const Set all = {"all", "every", "each", "everything"}, sizes = {"as", "the"},
                   makes = {"make", "turn", "scale"}, cuts = {"cut", "cuts", "divide", "reduce", "chop", "shrink"};
  for (unsigned changes = 0; changes < 8; ++changes) {
    Words words(text);
    std::string result;
    for (size_t at = 0; at < words.size() && result.empty(); ++at) {
      size_t end = endOfObject(words, at + 1);
      if (auto verb = verbs.find(words[at]);
          verb != verbs.end() && beginsStep(words, at) && isObject(words, at + 1, end))
        result = words.replaced(at, end, "multiply " + words.slice(at + 1, end) + " by " + verb->second.str());
      else if (auto many = times.find(words[at]);
               many != times.end() && all.count(words[at + 1 + (words[at + 1] == "of")]) && beginsAmount(words, at)) {
        size_t object = at + 1 + (words[at + 1] == "of");
        result =
            words.replaced(at, endOfObject(words, object),
                           "multiply " + words.slice(object, endOfObject(words, object)) + " by " + many->second.str());
      } else if (auto part = participles.find(words[at]); part != participles.end() && at && words[at + 1] != "without")
        result = words.replaced(at, at + 1, "multiplied by " + part->second.str());
      else if (cuts.count(words[at]) && beginsStep(words, at) && isObject(words, at + 1, end) &&
               (words[end] == "in" || words[end] == "into" || words[end] == "by") &&
               (words[end + 1] == "half" || words[end + 1] == "halves"))
        result = words.replaced(at, end + 2, "multiply " + words.slice(at + 1, end) + " by 0.5");
      else if (makes.count(words[at]) && isObject(words, at + 1, end = std::min(end, words.size()))) {
        // "twice as big", "half the size", "3 times bigger"
        for (size_t many = at + 2; many < end + 1 && result.empty(); ++many)
          if (auto factor = times.find(words[many]);
              factor != times.end() && sizes.count(words[many + 1]) && words.size() > many + 2)
            result =
                words.replaced(at, many + 3, "multiply " + words.slice(at + 1, many) + " by " + factor->second.str());
      }
    }
    if (result.empty())
      break;
    text = std::move(result);
  }
  return text;
}

/// "the cheapest offer", "our longest trip": of values that there are; not "the shortest path", "the fastest kernel".
static std::string superlatives(std::string text) {
  static const std::map<StringRef, StringRef> names = {
      {"longest", "highest"},  {"best", "highest"},      {"richest", "highest"},  {"strongest", "highest"},
      {"fastest", "highest"},  {"latest", "highest"},    {"busiest", "highest"},  {"dearest", "highest"},
      {"priciest", "highest"}, {"costliest", "highest"}, {"widest", "highest"},   {"deepest", "highest"},
      {"steepest", "highest"}, {"fattest", "highest"},   {"thickest", "highest"}, {"cheapest", "lowest"},
      {"shortest", "lowest"},  {"weakest", "lowest"},    {"poorest", "lowest"},   {"earliest", "lowest"},
      {"slowest", "lowest"},   {"worst", "lowest"},      {"narrowest", "lowest"}, {"thinnest", "lowest"},
      {"shallowest", "lowest"}};
  static const Set before = {"the", "its", "their", "my", "our", "each", "whose", "how", ""},
                   others = {"path",       "paths",     "route",       "routes",         "way",         "ways",
                             "distance",   "distances", "common",      "increasing",     "run",         "runs",
                             "decreasing", "streak",    "word",        "words",          "possible",    "kernel",
                             "repeated",   "fit",       "match",       "method",         "subsequence", "substring",
                             "sequence",   "version",   "consecutive", "algorithm",      "chain",       "cuda",
                             "code",       "sort",      "palindrome",  "implementation", "edge",        "line",
                             "known",      "first",     "sentence",    "text",           "name",        "names",
                             "string",     "letter",    "friend",      "friends",        "seat",        "book",
                             "song",       "songs"};
  Words words(text);
  for (size_t at = words.size(); at-- > 0;)
    if (auto name = names.find(words[at]); name != names.end() && words[at + 1] == "first") // "shortest first"
      text.replace(words.at[at].first, words.at[at].second - words.at[at].first, name->second.str());
    else if (name != names.end() && before.count(at ? words[at - 1] : StringRef()) && !others.count(words[at + 1]) &&
             !others.count(words[at + 2]) && !others.count(words[at + 3]) && words.size() > at + 1 &&
             llvm::isAlpha(words[at + 1][0]))
      text.replace(words.at[at].first, words.at[at].second - words.at[at].first, name->second.str());
  return text;
}

/// "hours worked times hourly pay for each worker", "litres divided by kilometres": two arrays, whatever they hold.
static std::string pairs(const std::string &text, const Vocabulary &vocabulary) {
  static const std::map<StringRef, StringRef> names = {{"times", "product"},
                                                       {"multiplied", "product"},
                                                       {"divided", "quotient"},
                                                       {"minus", "difference"},
                                                       {"plus", "sum"}};
  static const Set general = {"element", "array",  "vector", "matrix",   "row",   "column", "index", "input",
                              "output",  "number", "pixel",  "point",    "step",  "time",   "batch", "image",
                              "gamma",   "beta",   "alpha",  "residual", "token", "mask",   "bias",  "identity"},
                   ends = {",",   ";",    ".",   ":",  "of",   "compute", "calculate", "find", "get",
                           "and", "then", "for", "in", "from", "the",     "my",        "our",  "their"},
                   light = {"each",  "every", "all", "its",  "their", "own",   "itself", "another",
                            "other", "some",  "any", "both", "this",  "that",  "these",  "those",
                            "which", "with",  "not", "one",  "two",   "three", "first",  "second",
                            "many",  "how",   "was", "were", "are",   "has",   "have"};
  static const Set measures = {"price", "weight", "quantity", "distance", "height", "length",
                               "width", "area",   "volume",   "mass",     "energy", "pay"};
  Words words(text);
  bool isOfData = false;
  auto isNoun = [&](size_t at) {
    StringRef word = words[at];
    std::string meant = vocabulary.canonical(word.str());
    bool isTerm = meant != Vocabulary::stem(word.str()) || words.slice(at, at + 1) != word; // "square", "RMSNorm"
    if (isTerm || word.size() < 3 || !llvm::isAlpha(word[0]) || light.count(word) || general.count(meant))
      return false;
    bool isData = vocabulary.isData(word.str()) || measures.count(word);
    isOfData |= isData || (word.ends_with("s") && !word.ends_with("ss"));
    return isData || vocabulary.isFiller(meant) || !vocabulary.isKnown(word.str());
  };
  for (size_t at = 1; at + 1 < words.size(); ++at) {
    auto name = names.find(words[at]);
    if (name == names.end())
      continue;
    bool takesBy = words[at] == "divided" || words[at] == "multiplied";
    size_t first = at, second = at + 1 + takesBy, last = second;
    if (takesBy && words[at + 1] != "by")
      continue;
    isOfData = false;
    while (first > 0 && at - first < 3 && !ends.count(words[first - 1]) && isNoun(first - 1))
      --first;
    bool isWhole = first < at && (!first || ends.count(words[first - 1])) && isOfData;
    last += words[last] == "the" || words[last] == "my" || words[last] == "our";
    size_t noun = last;
    isOfData = false;
    while (last < words.size() && last - noun < 3 && !ends.count(words[last]) && isNoun(last))
      ++last;
    if (!isWhole || last == noun || (last < words.size() && !ends.count(words[last])))
      continue;
    if ((words[last] == "for" || words[last] == "in") && (words[last + 1] == "each" || words[last + 1] == "every") &&
        last + 2 < words.size())
      last += 3;
    first -= first > 0 && (words[first - 1] == "the" || words[first - 1] == "my" || words[first - 1] == "our");
    return words.replaced(first, last, "elementwise " + name->second.str() + " of two arrays");
  }
  return text;
}

std::string optiml::gen::everydayInWords(StringRef request, const Vocabulary &vocabulary) {
  std::string text = pairs(multiples(superlatives(request.str())), vocabulary);
  // What counts as the largest or the smallest.
#define PLACES                                                                                                         \
  "(shop|store|stop|bus "                                                                                              \
  "stop|station|hospital|school|house|tower|city|town|village|pump|well|tree|facility|depot|charger|enemy|restaurant|" \
  "hotel|doctor|sensor|site)"
#define MORE                                                                                                           \
  "higher|bigger|larger|more "                                                                                         \
  "expensive|older|taller|heavier|longer|richer|hotter|warmer|later|louder|faster|brighter|deeper|wider|dearer|"       \
  "stronger"
#define LESS                                                                                                           \
  "lower|smaller|less "                                                                                                \
  "expensive|younger|lighter|colder|cooler|cheaper|shorter|earlier|slower|darker|poorer|weaker|quieter"
  static const Rewrite rules[] = {
      {"(" MORE ") than ", "greater than "},
      {"(" LESS ") than ", "less than "},
      {"([Mm])ost expensive", "\\1aximum"},
      {"least expensive", "cheapest"},
      // "three values in a row", "ten rounds of", "readings in degrees"
      {"([0-9]+|two|three|four|five|six|seven|eight|nine|ten) ([a-z]+s) in a row", "\\1 consecutive \\2"},
      {"([0-9]+|two|three|four|five|six|seven|eight|nine|ten) rounds( of|$|[.,;])", "\\1 steps\\2"},
      {"^([^.;]*(readings|temperatures|prices|costs|amounts|distances|lengths|times|weights|heights|values|"
       "measurements)[a-z ]*) in "
       "(degrees|euros?|dollars?|cents|met(re|er)s|kilomet(re|er)s|miles|kilos|kilograms|grams|pounds|seconds|minutes|"
       "hours|years|percent)($|[.,;])",
       "\\1\\6"},
      {"^([Ww]hat is )?([Tt]he|[Mm]y|[Oo]ur) (usual|typical) ", "average "},
      {"(usual|typical) (value|amount|price|height|rainfall|temperature|age|size|score|mark|length|weight|time|cost)",
       "average \\2"},
      // "which ten scores are the highest"
      {"([Ww]hich|[Tt]he) ([0-9]+|two|three|four|five|six|seven|eight|nine|ten) ([a-z]+) (that |which "
       ")?(are|were|have|had) the (highest|largest|biggest|lowest|smallest|greatest)",
       "the \\2 \\6 \\3"},
      // "share every amount between 10 people", "give everyone 5 extra points", "take 2 off every number"
      {"([Ss]hare|[Ss]plit|[Dd]ivide) ((every|each|all)[a-z ]*[a-z])( equally| evenly| fairly)? "
       "(between|among|amongst) ([0-9]+|two|three|four|five|six|ten)( [a-z]+)?($|[.,;])",
       "divide \\2 by \\6\\8"},
      {"[Gg]ive (everybody|everyone|(every|each|all)[a-z ]*[a-z]) ([0-9.]+) (extra|more|additional)( [a-z]+)?",
       "add \\3 to each value"},
      {"[Aa]dd ([0-9.]+|one|two|three|four|five|ten) ([a-z]+) to (each|every|all)", "add \\1 to \\3"},
      {"^[Aa]dd(ing)? up .* so far", "running total"},
      {"([Tt]ake|[Kk]nock) ([0-9.]+) (off|away from)( of)? ((every|each|all|the)[a-z ]*)", "subtract \\2 from \\5"},
      // "which is the smallest of all shoe sizes", "every number should become twice as large"
      {"^[Ww]hich (one )?(is|was) the "
       "(highest|largest|biggest|greatest|tallest|longest|smallest|lowest|least|shortest) of (all |the |these |my )",
       "the \\3 of \\4"},
      {"(should |must |will |has to |have to |needs to )?(become|becomes|be|is|gets?) (made )?(twice|double) (as|the) "
       "(large|big|high|long|much|size|amount|value)",
       "multiplied by 2"},
      {"(should |must |will |has to |have to |needs to )?(become|becomes|be|is|gets?) (made )?half (as|the) "
       "(large|big|high|long|much|size|amount|value)",
       "multiplied by 0.5"},
      {"(^|[,.;:] *|then |and |to )([Ll]ower|[Rr]educe|[Cc]ut) ((every|each|all|the)[a-z ]*) by ([0-9.]+)($|[ ,;])",
       "\\1subtract \\5 from \\3\\6"},
      {"(the )?(better|best|larger|higher) (one )?of (the )?two [a-z]+( (for|of|in|at) each [a-z]+)?",
       "elementwise maximum of two arrays"},
      {"(the )?(worse|worst|smaller|lower) (one )?of (the )?two [a-z]+( (for|of|in|at) each [a-z]+)?",
       "elementwise minimum of two arrays"},
      {"([Ww]hich|[Ww]hat) [a-z]+ (is|lies|are) (the )?(closest|nearest) to (each|every) ([a-z]+)",
       "nearest point for each query"},
      // "take whichever of the two is larger"
      {"(whichever|which|the one) of (the |both |these )?(two )?([a-z]+ )?(is|are|was) (the "
       ")?(larger|bigger|higher|greater|more|dearer)( one)?",
       "elementwise maximum of two arrays"},
      {"(whichever|which|the one) of (the |both |these )?(two )?([a-z]+ )?(is|are|was) (the "
       ")?(smaller|lower|less|cheaper)( one)?",
       "elementwise minimum of two arrays"},
      // "for each house the nearest bus stop", "how far is every village from every other one"
      {"[Ff]or (each|every|all|any) ([a-z]+)( of ([a-z]+ )*[a-z]+)?,? (find |give |tell |name |compute )?(me )?(the "
       ")?(nearest|closest) " PLACES "s?",
       "nearest point for each query"},
      {"([Tt]he )?(closest|nearest) " PLACES "s? (for|to|of) (each|every) [a-z]+", "nearest point for each query"},
      {"([Tt]he )?distances? between (any|every|each) two of (my |the |these )?([0-9]+ )",
       "distances between all pairs of \\4"},
      {"[Hh]ow far (is|are) (every|each|all)( of)?( the)? [a-z]+ (away )?(from|to) (every other|each other|all "
       "other|all the other|all)( one| ones| [a-z]+)?",
       "distances between all pairs of points"},
      // "how much did it change from each hour to the next"
      {"([Hh]ow much|[Bb]y how much|[Hh]ow) (did|does|do|has|have|is|are|was) ([a-z ]+ "
       ")?(change|changed|grow|grown|grew|rise|risen|fall|fallen|differ)s? (from|between) (each|every|one) ([a-z]+ "
       ")?(to|and) (the )?(next|following)( one)?",
       "adjacent difference"},
      {"(changes?|differences?|growth) (from|between) (each|every|one) ([a-z]+ )?(to|and) (the )?(next|following)( "
       "one)?",
       "adjacent difference"},
      // "after each day, how much fell in total so far"
      {"((after|at|for|by) (each|every) [a-z]+,? )?(how much|how many|what|the)?[a-z ]*(in total|altogether|total|sum) "
       "(so far|until then|up to then|up to that (day|point|time|moment))",
       "running total"},
      // "zero an array", "clear the list"
      {"(^|[.,;:] *|and |then |to |[Pp]lease )([Zz]ero|[Cc]lear|[Zz]ero out|[Bb]lank|[Ww]ipe|[Ee]mpty)( out)? "
       "(an?|the|my|this|all|every|each|our|whole|entire) ([a-z0-9 "
       "]*)(array|vector|matrix|list|buffer|tensor|elements?|entry|entries|values?|numbers?)($|[ .,;])",
       "\\1set \\4 \\5\\6 to 0 \\7"},
      // "take the spending away from the income"
      {"([Tt]ake|[Dd]educt) ([a-z ]+) away from ", "subtract \\2 from "},
      {"[Dd]educt ([a-z ]+) from ", "subtract \\1 from "},
      // "on which day was it the hottest", "who has the most points"
      {"^([Oo]n|[Ii]n|[Aa]t|[Dd]uring) (which|what) [a-z ]+ the (most|least|fewest)", "index of the \\3"},
      {"^([Oo]n |[Ii]n |[Aa]t |[Dd]uring )(which|what)( one)?( of)?( the| these| my| our)? [a-z]+ "
       "(is|was|were|are|did|do|does|has|had)( it| there| we| they| he| she)?( have| had| get| see| reach)?( the| its| "
       "our)? ",
       "index of the "},
      {"^([Ww]hich|[Ww]hat) "
       "(day|month|year|hour|week|minute|person|student|pupil|player|team|shop|store|city|town|country|car|sensor|"
       "runner|customer|house|class|"
       "item|product|book|film|song|place|position|index|slot|one of [a-z ]+) "
       "(is|was|has|had|have|scored|got|sold|earned|made|reached)( the| its)? ",
       "index of the "},
      {"^[Ww]ho (is|was|has|had|scored|got|sold|earned|ran|made)( the)? ", "index of the "},
      {"^[Ww]hen (is|was|did|does)( it| the [a-z]+)?( reach| have| get)?( the| its)? ", "index of the "},
      {"index of the (most|highest number of|largest number of)( [a-z]+)?", "index of the maximum"},
      {"index of the (fewest|least|lowest number of|smallest number of)( [a-z]+)?", "index of the minimum"},
      // "how much does each shop earn altogether", "what do all receipts come to in total"
      {"^([Hh]ow (much|many)( [a-z]+)?|[Ww]hat) (do|does|did|have|has|had) (I|we|you|they|he|she) [a-z]+ (.*) "
       "?(altogether|in total|in all|all together|all told)",
       "sum of \\6"},
      {"^([Hh]ow (much|many)( [a-z]+)?|[Ww]hat) (do|does|did|is|are|were|was|have|has|had) (.*) ([a-z]+ "
       ")?(altogether|in total|in all|all together|all told)",
       "sum of \\5"},
      {"^([Hh]ow much|[Hh]ow many [a-z]+) (do|does|did|has|have) (each|every) (row|column) "
       "(earn|earned|save|saved|pay|paid|spend|spent|sell|sold|eat|eaten|use|used|cost|weigh|make|made|score|scored|"
       "produce|produced|get|collect|collected)",
       "sum of \\3 \\4"},
      {"^([Hh]ow much|[Ww]hat) (do|does|did) (.*) (add up|come|amount|sum up) to", "sum of \\3"},
      {"(vector|array|matrix) sum,?:? ([a-z] ?= ?[a-z] ?[+] ?[a-z]($|[^a-z0-9]))",
       "\\1 add \\2"}, // "vector sum c = a + b"
      {",? (one by one|pair by pair|one after the other)", " elementwise"},
      {",? (item by item|entry by entry|place by place|value by value|position by position|number by number)",
       " elementwise"},
      // "into each of 10 age groups"
      {"((fall|falls|fell|go|goes|are|belong|belongs) (in|into|to) (each|every|any|one)( one)?( of)?( the)? ([0-9]+ "
       ")?)([a-z]+ )?(groups?|classes|class|brackets?|bands?|categories|category)",
       "\\1bins"},
      {"(anything|something|any value|any number) (but|other than|except|besides|different from) (0|zeros?)",
       "any nonzero"},
      {"as the crow flies", "euclidean"},
  };
#undef MORE
#undef PLACES
#undef LESS
  static const Rewrites rewrites(rules);
  return rewrites(std::move(text));
}
