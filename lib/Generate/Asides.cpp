//===- Asides.cpp - what a request says beside its point ------------------===//
//
// "Example: input [1, 2, 3] output [1, 3, 6]", "in O(n log n)", "for i in 0..n-1", "with CUDA 12": numbers and names
// that say nothing about what is to be computed, and would be read as sizes and operations.
//
//===----------------------------------------------------------------------===//
#include "Asides.h"
#include "Rewrites.h"
#include "optiml/Generate/Words.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Regex.h"

using namespace optiml;
using namespace optiml::gen;
using llvm::StringRef;

/// Replaces every match of `pattern` by `by` (\1 is its first group).
static std::string replaceAll(std::string text, const llvm::Regex &regex, StringRef by) {
  for (unsigned times = 0; times < 20 && regex.match(text); ++times)
    text = regex.sub(by, text);
  return text;
}

static std::string replaceAll(std::string text, StringRef pattern, StringRef by) {
  return replaceAll(std::move(text), llvm::Regex(pattern), by);
}

/// A sentence ends at a line's end, or at a point with white space behind it.
static llvm::SmallVector<StringRef, 8> sentences(StringRef text) {
  llvm::SmallVector<StringRef, 8> result;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    bool abbreviates = text.take_front(i + 1).ends_with("e.g.") || text.take_front(i + 1).ends_with("i.e.");
    if (text[i] != '\n' &&
        (text[i] != '.' || abbreviates || (i + 1 < text.size() && text[i + 1] != ' ' && text[i + 1] != '\n')))
      continue;
    result.push_back(text.slice(begin, i + 1));
    begin = i + 1;
  }
  result.push_back(text.substr(begin));
  return result;
}

static bool showsData(StringRef text) {
  return text.contains('[') || text.contains('{') || text.contains("->") || text.contains("=>") ||
         text.contains("...") || text.contains("output") || text.contains("input") || text.contains("result");
}

/// Cuts examples off: the rest of their sentence, and the sentences behind it that go on with data.
std::string optiml::gen::withoutExamples(StringRef text) {
  static const llvm::Regex always("(^|[^a-z])examples?( (input|output|case|usage)s?)? ?[:=(]", llvm::Regex::IgnoreCase),
      withData("(^|[^a-z])(for example|for instance|e\\.g\\.|such as|example|i\\.e\\.)", llvm::Regex::IgnoreCase);
  static const llvm::Regex input("^[ \n]*(sample )?inputs?( is)? ?[:=]? ?([a-z] ?= ?)?\\[[-0-9]", llvm::Regex::IgnoreCase),
      output("outputs?[^a-z]", llvm::Regex::IgnoreCase);
  std::string result, assigned = text.contains("<-") ? replaceAll(text.str(), " *<- *", " = ") : text.str(); // "y <- a x + y"
  static const llvm::Regex overIndex("(sum|summation) over (all )?([ijk])( of|:)? +([a-z]+\\[)",
                                     llvm::Regex::IgnoreCase);
  // "x = [1, 7, 4], output = [12, 11, 4]"
  static const llvm::Regex inAndOut("[a-z]+ ?(=|:|is) ?\\[[-0-9., ]+\\],? *(and )?(the )?(output|result|expected|y|answer)[a-z ]*(=|:|is|should "
                                    "be|becomes) *(\\[[-0-9., ]+\\]|-?[0-9]+(\\.[0-9]+)?)",
                                    llvm::Regex::IgnoreCase);
  static const llvm::Regex inWords("(^|[^A-Za-z0-9_])([a-z]) (minus|plus) ([0-9.]+) ?[*]? ?([a-z])($|[ ,;.])");
  llvm::SmallVector<StringRef, 8> parts;
  if (inWords.match(assigned, &parts)) // "y minus 2 x"
    assigned = inWords.sub(parts[3] == "minus" ? "\\1\\2 - \\4*\\5\\6" : "\\1\\2 + \\4*\\5\\6", assigned);
  assigned = replaceAll(std::move(assigned), overIndex, "sum_\\3 \\5"); // "the sum over i of a[i]*b[i]"
  assigned = replaceAll(std::move(assigned), "\\+ ?b\\)(.*bias)", "+ bias)\\1"); // "relu(x + b) with a bias per channel"
  assigned = outputsInSigns(std::move(assigned));
  bool inExample = false;
  for (StringRef sentence : sentences(assigned)) {
    llvm::SmallVector<StringRef, 4> groups;
    size_t cut = StringRef::npos;
    if (always.match(sentence, &groups))
      cut = size_t(groups[0].data() - sentence.data());
    else if (withData.match(sentence, &groups)) {
      size_t at = size_t(groups[0].data() - sentence.data());
      if (showsData(sentence.substr(at)))
        cut = at;
    }
    if (input.match(sentence) && !result.empty() && output.match(sentence)) // "Input: [1, 2] Output: [2, 1]"
      cut = 0;
    if (cut != StringRef::npos) {
      result += sentence.take_front(cut).str() + " ";
      inExample = true;
    } else if (!(inExample && showsData(sentence)))
      result += sentence.str();
  }
  return replaceAll(std::move(result), inAndOut, " ");
}

bool optiml::gen::examplesAreIntegers(StringRef text) {
  static const llvm::Regex list("(^|[^a-zA-Z])(inputs?|outputs?|example|examples?)[^[]*\\[ *-?[0-9]+ *, *-?[0-9]",
                                llvm::Regex::IgnoreCase),
      fraction("[0-9]\\.[0-9]");
  return list.match(text) && !fraction.match(text);
}

/// "dropout p=0.1" drops a tenth.
static std::string keepProbability(std::string text) {
  static const llvm::Regex dropped("drop(out|ping)?[- ]*(with )?(a )?(p|rate|probability|ratio|prob)( of| is)? *=? *(0?\\.[0-9]+)");
  llvm::SmallVector<StringRef, 8> groups;
  double share;
  if (!StringRef(text).contains("drop") || !dropped.match(text, &groups) || groups[6].getAsDouble(share))
    return text;
  return dropped.sub("dropout with keep probability " + shortestNumber(1 - share), text);
}

std::string optiml::gen::withoutAsides(StringRef request) {
  std::string text = binsInWords(callsInWords(withoutExamples(request)));
  static const Rewrite rules[] = {
      // "[1, 2, 3] -> [1, 3, 6]"
      {"\\[[-0-9., ]*\\] *(->|=>|gives|becomes) *\\[?[-0-9., ]*\\]?", " "},
      {"^(and|or|xor) (two|the two|both) ", "bitwise \\1 of \\2 "},
      {"(^|[^0-9.^e])([0-9]+)\\.0+($|[^0-9.a-z])", "\\1\\2\\3"},
      // Fortran's types
      {"(^|[^a-z0-9_])(real ?(\\* ?8|\\((kind ?= ?)?8\\))|real64)", "\\1double"},
      {"(^|[^a-z0-9_])(real ?(\\* ?4|\\((kind ?= ?)?4\\))|real32)", "\\1float"},
      {"(^|[^a-z0-9_])integer ?(\\* ?8|\\((kind ?= ?)?8\\))", "\\1int64"},
      {"(^|[^a-z0-9_])integer ?(\\* ?4|\\((kind ?= ?)?4\\))", "\\1int"},
      {"complex ?\\* ?16", "complex double"},
      {"complex ?\\* ?8", "complex float"},
      {"backwards? (dft|fft|fourier|discrete|fast|transform)", "inverse \\1"},
      {"(^|[^a-z0-9_])(global|overall|grand) (sum|total|min|max|minimum|maximum|mean|average|product)($|[^a-z ]| "
       "(of|over))",
       "\\1\\3\\4"},
      // "O(n log n)", "O(n^2)"
      {"(^|[^a-z0-9_])(in )?o\\([^()]*\\)( time| work| steps| memory)?", "\\1 "},
      // "for (all) i in 0..n-1", "i = 0, ..., n-1", "0 <= i < n"
      {"(^|[^a-z0-9_])(for )?(all |each |every )?[a-z] *(in|from|=|:) *[[(]? *[01] *(\\.\\.+|to|, *\\.\\.+ *,) *[a-z]+ "
       "*(- *1)? *[])]?",
       "\\1 "},
      {"(^|[^a-z0-9_.])[01] *<=? *[ijkt] *<=? *[a-z]+( *- *1)?", "\\1 "},
      {"(^|[^a-z0-9_])[ijk] *<=? *([0-9])", "\\1n = \\2"},
      {"(^|[^a-z0-9_])[ijk] *<=? *n($|[^a-z0-9_])", "\\1 \\2"},
      // Versions of tools.
      {"(^|[^a-z0-9_])(cuda|c\\+\\+|compute capability|pytorch|nvcc) ?[0-9]+(\\.[0-9]+)*", "\\1 "},
      {"(^|[^a-z0-9_])sm_?[0-9]+a?($|[^a-z0-9_])", "\\1 \\2"},
      // "(not a power of two)", "(not ...)"
      {"\\(not [^()]*\\)", " "},
      // "the second largest"
      {"(^|[^a-z0-9_])second[- ](largest|biggest|highest|greatest|max|maximum|smallest|lowest|least|min|minimum)",
       "\\1 2nd \\2"},
      {"(^|[^a-z0-9_])third[- ](largest|biggest|highest|greatest|max|maximum|smallest|lowest|least|min|minimum)",
       "\\1 3rd \\2"},
      // "For my project I need ...", "..., for a CUDA class"
      {"^(for|in) (a|an|my|our|the|some) [a-z "
       "-]*(code|project|class|course|homework|simulation|application|app|solver|pipeline|game|demo|"
       "paper|thesis|assignment|benchmark|package|study)(,| i | we | please | write )",
       "\\4 "},
      {",? for (my|our|an?) [a-z "
       "-]*(class|course|homework|demo|assignment|project|lecture|tutorial|thesis|paper|benchmark)($|[.,;])",
       "\\3"},
      {"(^|[^a-z0-9_])(gpt|llama|resnet|vgg|yolo|efficientnet|mobilenet|densenet|inception|bert|t5|gemma|qwen|mistral|"
       "phi)[- ]?v?[0-9]+"
       "(\\.[0-9]+)?b?($|[^a-z0-9.])",
       "\\1\\4"},
      {"(^|[^a-z0-9_])u-net", "\\1unet"},
      // "[512, 768] x [768, 3072]", "KL(p || q)", "mean pooling over 100 tokens"
      {"[[(]([0-9]+) *, *([0-9]+)[])] *(x|times|by|\\*|@) *[[(]([0-9]+) *, *([0-9]+)[])]", "\\1x\\2 times \\4x\\5"},
      {"(^|[^a-z0-9_])kl ?\\(", "\\1kl divergence ("},
      {"(mean|average|max)[- ]?pool(ing)? (over|across) (the )?([0-9]+ )?(tokens|time ?steps|positions)",
       "\\1 of each column over \\5 rows"},
      {"(top[- ]?[0-9]+) (gating|routing|selection)", "\\1"},
      {"square ((half|single|double)[- ]precision |float |double |int |half |dense "
       ")?(matri(x|ces)|matmul|gemm|grid|domain|board)($|[^a-z "
       "]| [^e])",
       "\\1\\3\\5"},
      // What labels are.
      {"(labels?|targets?|classes|signs)( of| in| are| being)? *[({]?\\+?1( and| or|,|/) *-1[)}]?", "\\1"},
      {"(labels?|targets?|classes|signs)( of| in| are| being)? *[({]?-1( and| or|,|/) *\\+?1[)}]?", "\\1"},
      // "|x|", "x*x", "with n-1 in the denominator"
      {"(^|[^a-z|])\\| ?([a-z]) ?\\|($|[^|])", "\\1 absolute value of \\2 \\3"},
      {"(^|[^a-z0-9_])x ?\\* ?x($|[^a-z0-9_([])", "\\1 square\\2"},
      {"(varian|deviation)([^.;]*)(with|using|by|over|dividing by|divided by)( the| a)?( divisor| denominator)? \\(?n "
       "?- ?1\\)?( in the denominator| as (the )?(divisor|denominator)| normali[sz]ation| instead of n)?",
       "\\1\\2 unbiased"},
      {"ddof *= *1", "unbiased"},
      {"(^|[^a-z])logit of", "\\1logit function of"},
      {"(y *= *)x *\\*? *w(\\^t)? *\\+ *b([^.;]* (inputs|input features|in features|features))", "linear layer \\3"},
      {"(create|make|generate|build|produce|allocate) (.*) (all )?(elements )?(equal|set) to", "fill \\2 with"},
      {"^(the )?nearest (integers|whole numbers) of", "round each of"},
      {"\\(f ?- ?32\\) ?[*x] ?5 ?/ ?9", "fahrenheit to celsius"},
      {"3 ?x ?3 median($|[^a-z]+[^f])", "median filter 3x3\\1"},
      {"(double|quad)-double", "quad precision"},
      {"gelu \\([^()]*erf[^()]*\\)", "gelu"},
      {"(std::|thrust::)?greater<[a-z]*>(\\(\\))?", "descending"},
      {"(std|thrust)::greater", "descending"},
      {"(^|[^a-z0-9_])bt\\.? ?(601|709)", "\\1 "},
      {"where ?\\( *(mask|cond|condition|flags?|m|c) *,", "where ("},
      {"^([a-z])\\.t (for|of|on)", "transpose \\2"},
      {"cublas([sdh][a-z]+)", "\\1"},
      {"embedding(s| lookup)? with ([0-9]+) words", "embedding\\1 with vocabulary \\2"},
      // A column of a table is an array where there is no matrix.
      {"x *\\*? *w(\\^t)? *\\+ *b(\\)?[^;.]*[0-9]+ *->)", "linear layer\\2"},
      {"\\(i, ?j\\)(.*)\\(j, ?i\\)", "transpose\\1"},
      {"sum of (the )?first (k|i) ?\\+ ?1 (inputs|elements|values|numbers|entries)", "prefix sum"},
      {"(column|row) (at|in) which", "index where"},
      {"rgb ?(2|to) ?gr[ae]y(scale)?", "rgb to greyscale"},
      {"(non|not)[- ]causal", "unmasked"},
      {"([0-9]+)th power of (each|every|all)", "to the power \\1 of \\2"},
      {"(^|[^a-z-])(partially |fully )?pivoted", "\\1unofferedoption"},
      {"exceed(s|ing)? (-?[0-9])", "above \\2"},
      // "1 where it is above, else 0"
      {"(write|give|put|output|return|set|store)s? (a |an )?(1|one) (for|where|if|when|at) "
       "(.*)(larger|greater|bigger|higher|more) than",
       "1 where above \\5"},
      {"(and |, )?(otherwise|else|elsewhere)( to| is)? *(0|zero)", " "},
      {"(and |, )?(0|zero) (otherwise|else|elsewhere)", " "},
      {"(^|[^a-z0-9_.])1 (where|if|when) ", "\\1 \\2 "},
      {"(^|[^a-z0-9_.])(give|write|output|put|return|be|is)s? 1 for ", "\\1 for "},
      {"(^|[^a-z0-9_])a\\*( search| algorithm| path|$|[.,;])", "\\1astar\\2"},
      {"(^|[^a-z0-9_])(minimum|maximum|min|max|smallest|largest|sum|product)( values?)?( of| from| among| over)*( "
       "all)?( the)?( values| "
       "elements| numbers)?( from| at| in| with)*( indices| indexes| positions| index)? (0|1|the first) "
       "(through|to|up to|until|thru) (i|k|itself)($|[^a-z0-9_])",
       "\\1prefix \\2 "},
      {"([0-9]+) channels in,? (and )?([0-9]+)( channels)? out", "\\1 input channels, \\3 output channels"},
      {"(sum|mean|average|max|maximum|min|minimum)( of)?( the)? (each|every) ([0-9]+ ?x ?[0-9]+) (block|tile)",
       "\\1 pool \\5"},
      {"(strided?|stride of|stride) \\(([0-9])\\)", "stride \\2"},
      {"^(are|is) (the |an? |this )?([a-z0-9 ^,-]*) sorted", "whether sorted \\3"},
      {"(^|[^a-z0-9_])where ?\\(", "\\1select by condition ("},
      {"(^|[^a-z0-9_])merge[- ]sort($|[^a-z])", "\\1mergesort\\2"},
      {"(^|[^a-z0-9_])([0-9]+)-body( problem)?", "\\1n body with \\2 bodies"},
      {"(use|using|with|subtract|subtracting)( the)?( row)? max(imum)?( value)?( of each row)?( trick| for (numerical "
       ")?stability)",
       " "},
      {"(^|[^a-z0-9_])radix[- ]?[0-9]+", "\\1"},
      {"(sum|total|mean|average|maximum|max|minimum|min|norm|variance|deviation|product)(s?) of the ([0-9]+) "
       "(rows|columns)",
       "\\1\\2 of each of the \\3 \\4"},
      {"sum of (all )?(the )?(elements|values|numbers)? ?from (i|its index|its position) (on|onwards?|to the end)",
       "suffix sum"},
      // Short forms: "gemm NT", "top8", "p75", "30 it", "max|x|", "clamp 0 255", "median 3x3"
      {"gemm ?nt($|[^a-z])", "gemm with b transposed \\1"},
      {"gemm ?tn($|[^a-z])", "gemm with a transposed \\1"},
      {"gemm ?tt($|[^a-z])", "gemm with both transposed \\1"},
      {"gemm ?nn($|[^a-z])", "gemm \\1"},
      {"(^|[^a-z0-9_])top([0-9]+)($|[^a-z0-9])", "\\1top \\2\\3"},
      {"(^|[^a-z0-9_])p([0-9][0-9])( percentile)?($|[ ,;])", "\\1\\2th percentile\\4"},
      {"(take|keep|select|get|return|pick) (only )?the (first|last) [0-9]+", "unofferedoption"},
      {"([0-9]) (it|its|iters?)($|[.,; ])", "\\1 iterations\\3"},
      {"(max|min|sum|mean) ?\\| ?([a-z]) ?\\|", "\\1 of the absolute values of \\2"},
      {"(clamp|clip)( to| at)? (-?[0-9.]+)(,| to| and)? (-?[0-9.]+)($|[ ,;])", "\\1 between \\3 and \\5\\6"},
      {"(median|box|gaussian)( filter| blur)? 3 ?x ?3($|[^0-9])", "\\1 filter 3x3\\3"},
      {"(^|[^a-z0-9_])mc (pi|option|estimate)", "\\1monte carlo \\2"},
      {"(^|[^a-z0-9_])2 (sorted |float |double |int |unsigned |half |integer |dense |equal |real "
       ")?(arrays|vectors|matrices|lists|images|inputs|tensors)",
       "\\1two \\2\\3"},
      {" *== *(-?[0-9])", " equal to \\1"},
      // "the largest 16 values", "the 7-point moving average", "(64x32) * (32x16)", "A = L L^T", "from 100 -> 50 units"
      {"(^|[^a-z0-9_])(largest|biggest|highest|greatest|smallest|lowest) ([0-9]+) "
       "(values|elements|entries|numbers|logits|scores|items|of|per|in|floats|ints|doubles|keys)",
       "\\1 \\3 \\2 \\4"},
      {"([0-9]+)[- ]?(point|pt|tap|element|sample|day) (simple )?(moving|running|rolling|sliding)", "window \\1 \\4"},
      {"\\(? *([0-9]+ *x *[0-9]+) *\\) *[*@] *\\(? *([0-9]+ *x *[0-9]+) *\\)?", " matrix multiply \\1 and \\2 "},
      {"(^|[^a-z0-9_])(l *\\*? *l\\^t *= *a|a *= *l *\\*? *l\\^t)($|[^a-z0-9_])", "\\1 cholesky \\3"},
      {"(^|[^a-z0-9_])(l *\\*? *u *= *a|a *= *l *\\*? *u)($|[^a-z0-9_])", "\\1 lu decomposition \\3"},
      {"adaptive (average|avg|mean|max) pool(ing)?( 2d)?( layer)? to( an?| size)? 1 ?x ?1( output)?",
       "global \\1 pooling"},
      {"group_?norm ?\\( *([0-9]+) *, *([0-9]+) *\\)", "group norm with \\1 groups, \\2 channels"},
      {"(batch|instance)_?norm(2d)? ?\\( *([0-9]+) *\\)", "\\1 norm with \\3 channels"},
      {"(max|min|average|mean|avg)[- ]?pool(ing)? (with|of) (a )?((window|kernel|stride|size|width)[a-z0-9 ,]*) "
       "(over|of|on) ([0-9][0-9,.kme^]*( million| thousand)? "
       "(floats?|doubles?|samples?|elements?|values?|halfs?))",
       "\\1 pooling over \\8 , \\5"},
      {"(max|min|average|mean|avg)[- ]?pool(ing)? (of|over|on) ([0-9][0-9,.kme^]*( million| thousand)?) "
       "(floats?|doubles?|samples?|elements?|values?|halfs?)",
       "1d \\1 pooling of \\4 \\6"},
      // Where results go, and what is false where it is not true.
      {",?( and)? (store|save|write|put|record|place) (the |all |each |its |your "
       ")*(results?|counts?|output|answers?|sums?|ranks?|values?) "
       "(back )?(in|into|to) (the )?(vector |array |matrix |variable |list "
       ")?[\"'`]?(bins|output|out|result|results|ranks|hull|mask|counts|[a-z])"
       "[\"'`]?($|[.,;])",
       "\\10"},
      {",? (and )?(return )?false otherwise", ""},
      {"(each|every) (pixel|cell|element|point|value) (of [a-z`]+ )?(is|will be|becomes|gets) (replaced (by|with) )?(a "
       "|the )?weighted sum of "
       "(its|the) [a-z ]*neighbou?r[a-z]*( pixels| values)?",
       " "},
      {"(double|half|float) time($|[^a-z])", "\\1 \\2"},
      {"returns? true (if|when|iff)", "whether"},
      {"(take|takes|taking) (the |its |their )?roots?($|[^a-z])", "sqrt\\3"},
      {"hal(ve|f|ves|ving) (the )?(resolution|size) of", "downsample"},
      {"cosine (of )?(the|their) (enclosed )?angle", "cosine similarity"},
      {"(to|with|of|by|is|from|between|and|value|than|above|below) minus (one|1)($|[^a-z0-9])", "\\1 -1\\3"},
      {"(to|with|of|by|is|from|between|and|value|than|above|below) (minus|negative) ([0-9])", "\\1 -\\3"},
      {"(image|images|input|inputs|tensor|photo|picture) (to|into|giving|producing|yielding) ([0-9]+) (output "
       ")?(channels|features|feature maps|filters)",
       "\\1 \\3 output \\5"},
      {"which (one )?(is|are|was) the (highest|largest|biggest|greatest|smallest|lowest|maximum|minimum) "
       "(value|number|element|entry)",
       "the \\3 \\4"},
      {"(^|[^a-z])(entry by entry|value by value|item by item|number by number|component by component|position by "
       "position|term by term|pixel by pixel|place by place|index by index|slot by slot)($|[^a-z])",
       "\\1elementwise\\3"},
      {",? *(which|that|and)? *(is|are|need|does|do|must)? *(not|no)( be)?( necessarily| always)?( an?)? powers? of "
       "(2|two)",
       " "},
      {"(into|as) (a )?(lower triangular )?(matrix |factor )?[a-z]( times| and)? (its |the )(own )?transposed?",
       "cholesky"},
      {"(that |which )?(are |is |do |does )?(differ(s|ing)?|different|distinct) from (0|zero)($|[^.0-9])",
       "nonzero\\6"},
      {"(that |which )?(are |is )?(not (equal to )?|unequal to |other than |!= ?)(0|zero)($|[^.0-9])", "nonzero\\6"},
      {"(^|[^0-9])(0 ?[-/] ?1|0 (or|and) 1) (targets?|labels?|mask|flags?|classes)", "\\1\\4"},
      {"(^|[^a-z])add(s|ing|ed)?( them| these| those| everything| it| the results?| the products?)?( all)? "
       "(up|together)($|[^a-z])",
       "\\1sum\\4\\6"},
      {"[a-z] is an? (0[-/]1|0/1|binary|zero-one) matrix", " "},
      {"(between|from|in) (-?[0-9.]+) (and|to) (-?[0-9]+\\.?[0-9]*),? *\\(?(both )?inclusive(ly)?\\)?",
       "\\1 \\2 \\3 \\4"},
      {"(^|[^a-z0-9_])sparse (csr |coo |csc )?matrices", "\\1two sparse matrix"},
      {"([0-9]+) (input|in) (and|,) ([0-9]+) (output|out) (channels|features|units|neurons|filters)",
       "\\1 input \\6, \\4 output \\6"},
      {"(,? (and|or))? ?(a )?(0|zero) (for|in) (the rest|all (the )?others?|the others?|every(thing)? else|all (the "
       ")?other (elements|values))",
       " "},
      {"(row|column) (number|index|position) (of|where)", "index \\3"},
      {"(as|into|form) (l *\\*? *l\\^t|ll\\^t|l \\* l')($|[^a-z0-9_])", "cholesky \\3"},
      {"multipl[a-z]* (.*) by pi ?/ ?180", "\\1 degrees to radians "},
      {" mod ([0-9])", " modulo \\1"},
      {"base[- ]ten", "base 10"},
      {"base[- ]two", "base 2"},
      {"([a-z0-9]) (million|thousand|billion)s($|[^a-z])", "\\1 \\2\\3"},
      {"([0-9]+\\^3|[0-9]+ ?x ?[0-9]+ ?x ?[0-9]+) (float |double )?(cube|box|block)", "\\1 \\2grid"},
      {"(in|of|inside) (a|the) cube($|[^a-z])", "in 3d \\3"},
      {"double the (resolution|size) of (the |an? |all |each |my )?([a-z0-9 "
       "]*)(image|picture|photo|frame|map|tensor|texture)",
       "upsample by a factor of 2 \\2\\3\\4"},
      {"triple the (resolution|size) of", "upsample by a factor of 3 "},
      {"(whether|if|that) (.*) (are|is) in (ascending|increasing|sorted|non-?decreasing) order", "whether sorted \\2"},
      {"(^|[^a-z])(a|b|d|e|g|h|i|j|k|l|m|n|o|p|q|r|s|t|u|v|w|x|y|z|c[a-z])[a-z]*-(like|style)($|[^a-z])", "\\1\\4"},
      {"(^|[^a-z0-9.])([0-9]+(e[0-9]+)?) (elements? |entries |values? )?long($|[.,;)])", "\\1length \\2\\5"},
      {"(points?|queries|vertices) (in|of|on) the (2d |xy )?plane", "\\1 in 2d"},
      {"([^a-z0-9_]|^)(two|2) (raised to|to the power of) (each|every|the|x)", "\\1exp2 of \\4"},
      // "is the array sorted?", "limit x to [-1, 1]"
      {"^(.*(array|vector|list|sequence)[a-z0-9 ]*) sorted *\\?", "whether sorted \\1"},
      {"(linear|dense|fully[- ]connected)( layer)?( of| from|:|,)? *([0-9]+) *(->|to) *([0-9]+)",
       "linear layer \\4 input features, \\6 output features"},
      // "1024 pixels wide and 768 pixels high", "the upper quartile", "raised to the third power"
      {"([0-9]+)[- ]*(pixels?|px|cells?|points?|elements?)?[- ](wide|in width|across)($|[^a-z])", "\\1 width\\4"},
      {"([0-9]+)[- ]*(pixels?|px|cells?|points?|elements?)?[- ](high|tall|in height)($|[^a-z])", "\\1 height\\4"},
      {"(lower|first) quartile", "25th percentile"},
      {"(upper|third) quartile", "75th percentile"},
      {"to the (third power|power of three)", "to the power of 3"},
      // "an array containing 1000 floats", "times the transpose of a 64x256 matrix", "2^x"
      {"(containing|that contains?|which contains?|holding|that holds?|comprising|consisting of) (exactly |about "
       ")?([0-9]+[0-9,.^a-z]* [a-z])",
       "of \\3"},
      {"(by|times|and|with) (the )?transpose of (an? |the )?(second |other |another )?([0-9]+ ?x ?[0-9]+)",
       "\\1 b transposed \\5"},
      // "row-wise dot product of two matrices", "the distance between corresponding rows"
      {"(row|column)[- ]?wise (dot|inner|scalar) products?", "elementwise product then sum of each \\1"},
      {"(elementwise product|subtract then abs) then sum of each (row|column) of (the |these )?two",
       "\\1 then sum of each \\2 of a"},
      {"(dot|inner|scalar) products? (of|between) (each|every|the|all|corresponding)( pairs? of)?( corresponding)? "
       "(row|column)s? of (the |these )?two",
       "elementwise product then sum of each \\6 of a"},
      {"(manhattan|l1|taxicab) distances? (between|of) (the |each pair of )?corresponding (row|column)s? of ([^.;]*)",
       "subtract then abs then sum of each \\4 of \\5"},
      {"(euclidean |l2 )?distances? (between|of) (the |each pair of )?corresponding (row|column)s? of ([^.;]*)",
       "subtract then square then sum of each \\4 of \\5 then sqrt"},
      {"product of (the |a )?transpose of (matrix )?[a-z] (with|and|by|times) (matrix )?[a-z]($|[^a-z])",
       "matrix multiply with a transposed \\5"},
      {"transpose of (an? |the )?([0-9]+ ?x ?[0-9]+)([a-z -]*) (times|multiplied by|by|with) ",
       "a transposed \\2\\3 matrix times "},
      {"(^|[^a-z0-9_.])2(\\^|\\*\\*)\\(?x\\)?($|[^a-z0-9_])", "\\1exp2\\3"},
      // "a third-degree polynomial", "the distinct values in sorted order", "a single tridiagonal system"
      {"(third|3rd|3)[- ](degree|order) polynomials?|polynomials? of (degree (3|three)|third degree)",
       "cubic polynomial"},
      {"(distinct|unique|different)( values| elements| numbers)?([a-z0-9 ]*) in (sorted|ascending|increasing) order",
       "unique\\2\\3"},
      {"(^|[^a-z0-9_])(a single|just one|only one) (tridiagonal|linear|dense|system|matrix|image|problem)",
       "\\1one \\3"},
      // "above 0.5 to 1 and all others to 0"
      {"(to|with|become|are|is) (1|one)( and|,| and set)* (all |every |the )*(others?|rest|remaining)( elements| "
       "values| ones)?( "
       "to| become| are)? (0|zero)",
       "\\1 1"},
      // "The kernel is launched with at least as many threads as values in x."
      {"the kernel (is|will be) launched[^.]*(\\.|$)", " "},
      // "3x3/2", "half a million"
      {"(^|[^a-z0-9_])([0-9]+ ?x ?[0-9]+) ?/ ?([0-9]+)", "\\1\\2 stride \\3"},
      {"(^|[^a-z0-9_])half a? ?million", "\\1 500 thousand"},
      {"(^|[^a-z0-9_])half a? ?billion", "\\1 500 million"},
      // "the sum of x[0] through x[i]", "x[i] + ... + x[n-1]"
      {"(^|[^a-z0-9_])sum of (all )?[a-z]\\[[01]\\] *(through|to|up to|until|and so on to|\\+ *\\.\\.+ *\\+|,? "
       "*\\.\\.+,?) *[a-z]\\[i\\]",
       "\\1prefix sum"},
      {"(^|[^a-z0-9_])sum of (all )?[a-z]\\[i\\] *(through|to|up to|until|and so on to|\\+ *\\.\\.+ *\\+|,? "
       "*\\.\\.+,?) *[a-z]\\[n *(- *1)?\\]",
       "\\1suffix sum"},
      // "x > 128", "x >= 128"
      {" >= *(-?[0-9])", " notless \\1"},
      {" <= *(-?[0-9])", " notmore \\1"},
      {" > *(-?[0-9])", " above \\1"},
      {" < *(-?[0-9])", " below \\1"},
      {"([a-z])\\.t($|[^a-z0-9_])", "\\1^t\\2"},
      {"(^|[^a-z0-9_])x *@ *w(\\^t)? *\\+ *b", "\\1x*w\\2 + b"},
      // "x W^T + b"
      {"(^|[^a-z0-9_])(x *\\*? *w|w *\\*? *x) *\\+ *b($|[^a-z0-9_])", "\\1 matmul + bias \\3"},
      {"(^|[^a-z0-9_])x *\\*? *w\\^t *\\+ *b($|[^a-z0-9_])", "\\1 matmul with second matrix transposed + bias \\2"},
      // "64 -> 128 channels", "x^T y", "norm(x, ord=1)", "softmax(Q K^T / 8) V"
      {"([0-9]+) *(->|to) *([0-9]+) *(channels|features|filters)", "\\1 input \\4, \\3 output \\4"},
      {"(^|[^a-z0-9_])([xuv])\\^t *\\*? *([yvx])($|[^a-z0-9_])", "\\1 dot product \\4"},
      {"(^|[^a-z0-9_])([xuvy]) *\\*? *([yvxu])\\^t($|[^a-z0-9_])", "\\1 outer product \\4"},
      {"norm ?\\(([a-z]), *(ord *= *|p *= *)?1($|[^0-9.])", "l1 norm (\\1 \\3"},
      {"norm ?\\(([a-z]), *(ord *= *|p *= *)?2($|[^0-9.])", "l2 norm (\\1 \\3"},
      {"norm ?\\(([a-z]), *(ord *= *|p *= *)?(float\\()?[\"']?(np\\.|torch\\.|math\\.)?inf[\"']?",
       "infinity norm (\\1"},
      {"softmax *\\( *q *[*@]? *k(\\^t|'|\\.t)? */ *[^,;.]*\\) *[*@]? *v", "attention"},
      {"(^|[^a-z0-9_])g *= *1(\\.0)?($|[^0-9.])", "\\1 \\3"},
      // What layers are made with.
      {"conv([123])d ?\\(([a-z]+), *([a-z]+), *b(ias)?([,)])", "conv\\1d with bias ( \\2, \\3 \\5"},
      {"adaptive_?(avg|average)_?pool2d ?\\(( *[a-z]+ *,)? *\\(? *1 *(, *1 *\\))?", "global average pool ( "},
      {"linear ?\\( *([0-9]+), *([0-9]+)", "linear layer ( \\1 input features, \\2 output features"},
      {"conv1d ?\\( *(1, *1, *)?([0-9]+)", "conv1d ( \\2 taps "},
      {"conv2d ?\\( *([0-9]+), *([0-9]+), *(kernel_size *= *)?([0-9]+)",
       "conv2d ( \\1 input channels, \\2 output channels, \\4x\\4 filter"},
      {"pool([123])d ?\\( *([0-9]+) *([,)])", "pool\\1d ( window \\2 \\3"},
      {"embedding ?\\( *([0-9]+), *([0-9]+)", "embedding ( table of \\1x\\2"},
      {"(layer|rms) ?norm ?\\( *([0-9]+)", "\\1norm ( hidden size \\2"},
      // "keepdim=True", "unreachable ones get -1", "b [256]" that is added
      {"return_(inverse|counts?|index|indices) *= *true", "unofferedoption"},
      {",? *(descending|reverse|exclusive|inclusive|causal|inverse|bidirectional|unbiased|inplace|ascending) *= *true",
       " , \\1 "},
      {",? *is_causal *= *true", " , causal "},
      {",? *largest *= *false", " , smallest "},
      {",? *[a-z_]+ *= *(false|true|none)($|[^a-z])", "\\2"},
      {"(,|;|and)? *unreachable [^.;,]*", " "},
      // "x W + bias"
      {"(^|[^a-z0-9_])x +w($|[^a-z0-9_])", "\\1 matmul \\2"},
      // "A.T @ B"
      {"([])a-z]) *@ *([[(a-z])", "\\1 matmul \\2"},
      {"(^|[^a-z0-9_])(one|1|single)[- ]dimension(s|al)?($|[^a-z])", "\\1 1d \\4"},
      {"(^|[^a-z0-9_])1080p", "\\1 1920x1080"},
      {"(^|[^a-z0-9_])720p", "\\1 1280x720"},
      {"(^|[^a-z0-9_])full[- ]hd", "\\1 1920x1080"},
  };
  static const Rewrites rewrites(rules);
  text = rewrites(std::move(text));
  // "100x75 times 75x50"
  static const llvm::Regex product("([0-9]+ ?x ?[0-9]+) *(times|by|\\*|@) *([0-9]+ ?x ?[0-9]+)($|[^0-9x])"),
      named("mat|gemm|product|multipl|linear|bmm|conv|filter|pool|attention|mm");
  if (StringRef(text).contains('x') && product.match(text) && !named.match(text))
    text = product.sub("matrix multiply \\1 and \\3\\4", text);
  // "a 3x3 convolution 64 -> 128"
  static const llvm::Regex channels("(^|[^0-9.x])([0-9]+) *-> *([0-9]+)($|[^0-9.x])"), convolution("conv");
  static const llvm::Regex linear("linear|fully connected|dense layer");
  if (linear.match(text))
    text = channels.sub("\\1 \\2 input features, \\3 output features \\4", text);
  if (convolution.match(text))
    text = channels.sub("\\1 \\2 input channels, \\3 output channels \\4", text);
  text = timesInWords(std::move(text));
  // How a loss is brought to one number, which those of the library are by the mean.
  static const llvm::Regex byMean(",? *(with )?((mean|average) reduction|reduction *(=|:|of)? *[\"']?mean[\"']?)");
  if (StringRef(text).contains("loss") || StringRef(text).contains("error"))
    text = byMean.sub("", text);
  text = keepProbability(std::move(text));
  // "SGEMM with alpha = 0.5", where there is no beta
  static const llvm::Regex alpha(
      "((gemm|matmul|matrix[- ](product|multipl[a-z]*)).*)(with |and )?alpha *(=|:|of|is)? *(-?[0-9.]*[0-9])");
  if (StringRef(text).contains("alpha") && !StringRef(text).contains("beta") &&
      !StringRef(text).contains("scaled by alpha"))
    text = alpha.sub("\\1 scaled by \\6", text);
  // "for b in 0..31" counts 32.
  static const llvm::Regex counted(
      "(^|[^a-z0-9_])for (all |each |every )?[a-z] *(in|from|=) *[[(]? *0 *(\\.\\.+|to) *([0-9]+) *[])]?");
  llvm::SmallVector<StringRef, 8> groups;
  unsigned last = 0;
  if (StringRef(text).contains("for ") && counted.match(text, &groups) && !groups[5].getAsInteger(10, last))
    text = counted.sub("\\1 " + std::to_string(last + last % 2) + " ", text);
  static const llvm::Regex range(
      "(in |to |between |within )?(the range )?(of )?(-?[0-9]+(\\.[0-9]+)?) *\\.\\.+ *(-?[0-9]+(\\.[0-9]+)?)");
  if (StringRef(text).contains(".."))
    text = range.sub("between \\4 and \\6", text); // "clamp to 0..255"
  static const llvm::Regex bias("(^|[^a-z0-9_])b *(=|:|of|of shape|is)? *[[(] *[0-9]+ *,? *[])]"),
      power("(^|[^a-z0-9_])a\\^([0-9]+)($|[^0-9a-z^])");
  if (StringRef(text).contains('+') && bias.match(text))
    text = replaceAll(std::move(text), "\\+ *b($|[^a-z0-9_])", "+ bias\\1");
  if (StringRef(text).contains("matri"))
    text = power.sub("\\1 matrix power \\2\\3", text);
  static const llvm::Regex fourK(
      "(^|[^a-z0-9_])(4k|uhd)( |-)(uhd )?(image|picture|photo|frame|video|resolution|rgb|screen|display)"),
      shape("[0-9] ?(x|by) ?[0-9]");
  if ((StringRef(text).contains("4k") || StringRef(text).contains("uhd")) && fourK.match(text))
    text = fourK.sub(shape.match(text) ? "\\1 \\5" : "\\1 3840x2160 \\5", text);
  return text;
}
