CREATE TABLE evaluations(
  context TEXT NOT NULL, variant TEXT NOT NULL, fidelity INTEGER NOT NULL,
  recipe TEXT NOT NULL, measurement TEXT NOT NULL, time INTEGER NOT NULL,
  PRIMARY KEY(context, variant, fidelity));
CREATE TABLE searches(
  key TEXT PRIMARY KEY NOT NULL, context TEXT NOT NULL,
  recipe TEXT NOT NULL, emitted TEXT NOT NULL, summary TEXT NOT NULL, time INTEGER NOT NULL);
