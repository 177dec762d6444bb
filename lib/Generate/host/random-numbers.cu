// Inputs depend on their index only: every run and every machine has the same ones.
static unsigned hash(size_t index, unsigned seed) {
  unsigned x = (unsigned)index * 0x9e3779b9u + seed * 0x85ebca6bu + (unsigned)(index >> 32);
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}
