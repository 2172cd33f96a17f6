// A thin owner of SQLite handles: a connection, a statement, a transaction. Knows nothing of what
// is stored. Every failure is an Error that names the file, what SQLite said and what to do.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace kbeam {

class Database;

// Values are bound from left to right; columns are numbered from 0. Not used after its Database is
// gone.
class Statement {
 public:
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&&) = delete;
  ~Statement();

  Statement& bind(std::string_view text);
  Statement& bind(const std::string& text) { return bind(std::string_view(text)); }
  Statement& bind(const char* text) { return bind(std::string_view(text)); }
  Statement& bind(std::int64_t number);
  Statement& bind(int number) { return bind(static_cast<std::int64_t>(number)); }
  Statement& bind(double number);  // NaN becomes NULL: SQLite has no other way
  Statement& bind_blob(std::string_view bytes);

  Result<bool> step();  // true: there is a row
  Result<void> run();   // for statements that give no rows

  std::int64_t integer(int column) const;
  double real(int column) const;
  std::string text(int column) const;
  std::string blob(int column) const;

 private:
  friend class Database;
  Statement(const Database& database, sqlite3_stmt* handle)
      : database_(&database), handle_(handle) {}

  const Database* database_;
  sqlite3_stmt* handle_;
  int bound_ = 0;
};

enum class OpenMode { create, append, read_only };

class Database {
 public:
  // `create` fails when the file exists; the others fail when it does not.
  // `busy_timeout_ms`: how long another process's lock is waited for.
  static Result<Database> open(const std::filesystem::path& file, OpenMode mode,
                               int busy_timeout_ms = 10'000);
  static Result<Database> open_in_memory();
  Database(Database&& other) noexcept;
  Database& operator=(Database&&) = delete;
  ~Database();

  Result<Statement> prepare(std::string_view sql) const;
  Result<void> execute(const std::string& script);          // several statements, no values
  Result<std::int64_t> number(std::string_view sql) const;  // the first column of the first row

  const std::filesystem::path& file() const { return file_; }
  bool in_transaction() const;
  Error failure(int sqlite_code) const;

 private:
  Database(std::filesystem::path file, sqlite3* handle) : file_(std::move(file)), handle_(handle) {}

  std::filesystem::path file_;
  sqlite3* handle_;
};

// Takes the write lock at once; undone unless commit() succeeds.
class Transaction {
 public:
  static Result<Transaction> begin(Database& database);
  Transaction(Transaction&& other) noexcept;
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();

  Result<void> commit();

 private:
  explicit Transaction(Database& database) : database_(&database) {}
  Database* database_;
};

}  // namespace kbeam
