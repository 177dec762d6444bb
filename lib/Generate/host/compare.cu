// Counts the elements that are off by more than the tolerance allows; NaN is always off, unless NaN is wanted.
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
