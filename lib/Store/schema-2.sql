CREATE TABLE memory(
  source TEXT NOT NULL, kernel TEXT NOT NULL, memory TEXT NOT NULL, time INTEGER NOT NULL,
  PRIMARY KEY(source, kernel));
