#include "archive/database.h"

#include <sqlite3.h>

#include <system_error>
#include <utility>

#include "base/check.h"

namespace kbeam {
namespace fs = std::filesystem;
namespace {

// A path as a SQLite URI, which gives '?', '#' and '%' a meaning of their own.
std::string uri_of(const fs::path& file) {
  std::string uri = "file:";
  for (const char letter : fs::absolute(file).string()) {
    if (letter == '?')
      uri += "%3f";
    else if (letter == '#')
      uri += "%23";
    else if (letter == '%')
      uri += "%25";
    else
      uri += letter;
  }
  return uri;
}

// A file that nobody writes, in a folder where nobody can: SQLite then needs no shared-memory file
// beside it.
bool is_sealed(const fs::path& file) {
  std::error_code trouble;
  const fs::path log = file.string() + "-wal";
  return fs::exists(file, trouble) &&
         (!fs::exists(log, trouble) || fs::file_size(log, trouble) == 0);
}

}  // namespace

Statement::Statement(Statement&& other) noexcept
    : database_(other.database_),
      handle_(std::exchange(other.handle_, nullptr)),
      bound_(other.bound_) {}

Statement::~Statement() {
  sqlite3_finalize(handle_);
}

Statement& Statement::bind(std::string_view text) {
  const int code = sqlite3_bind_text64(handle_, ++bound_, text.data() ? text.data() : "",
                                       text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  CHECK(code == SQLITE_OK, "the statement has as many parameters as values are bound");
  return *this;
}

Statement& Statement::bind(std::int64_t number) {
  const int code = sqlite3_bind_int64(handle_, ++bound_, number);
  CHECK(code == SQLITE_OK, "the statement has as many parameters as values are bound");
  return *this;
}

Statement& Statement::bind(double number) {
  const int code = sqlite3_bind_double(handle_, ++bound_, number);
  CHECK(code == SQLITE_OK, "the statement has as many parameters as values are bound");
  return *this;
}

Statement& Statement::bind_blob(std::string_view bytes) {
  const int code = sqlite3_bind_blob64(handle_, ++bound_, bytes.data() ? bytes.data() : "",
                                       bytes.size(), SQLITE_TRANSIENT);
  CHECK(code == SQLITE_OK, "the statement has as many parameters as values are bound");
  return *this;
}

Result<bool> Statement::step() {
  const int code = sqlite3_step(handle_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return database_->failure(code);
}

Result<void> Statement::run() {
  ASSIGN_OR_RETURN(const bool row, step());
  CHECK(!row, "a statement that is run() gives no rows");
  return {};
}

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(handle_, column);
}

double Statement::real(int column) const {
  return sqlite3_column_double(handle_, column);
}

std::string Statement::text(int column) const {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(handle_, column));
  const int size = sqlite3_column_bytes(handle_, column);
  return bytes == nullptr ? std::string() : std::string(bytes, static_cast<std::size_t>(size));
}

std::string Statement::blob(int column) const {
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(handle_, column));
  const int size = sqlite3_column_bytes(handle_, column);
  return bytes == nullptr ? std::string() : std::string(bytes, static_cast<std::size_t>(size));
}

Result<Database> Database::open_in_memory() {
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(
      ":memory:", &handle,
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_MEMORY | SQLITE_OPEN_EXRESCODE,
      nullptr);
  Database database("memory", handle);
  if (code != SQLITE_OK) return database.failure(code);
  return database;
}

Result<Database> Database::open(const fs::path& file, OpenMode mode, int busy_timeout_ms) {
  const std::string what =
      (mode == OpenMode::create ? "create archive " : "open archive ") + file.string();
  std::error_code trouble;
  const bool present = fs::exists(file, trouble);
  if (mode == OpenMode::create && present)
    return Error{ErrorCode::bad_input, what, "the file is already there",
                 "resume that run, or choose another --dir"};
  if (mode != OpenMode::create && !present)
    return Error{ErrorCode::not_found, what, "there is no such file",
                 "check the run's name; `kbeam status` lists runs"};

  const auto open_with = [&](const std::string& uri, int flags) -> Result<Database> {
    sqlite3* handle = nullptr;
    const int code = sqlite3_open_v2(uri.c_str(), &handle,
                                     flags | SQLITE_OPEN_URI | SQLITE_OPEN_EXRESCODE, nullptr);
    Database database(file, handle);
    if (code != SQLITE_OK) {
      Error error = database.failure(code);
      error.attempted = what;
      return error;
    }
    sqlite3_busy_timeout(handle, busy_timeout_ms);
    return database;
  };
  if (mode == OpenMode::create)
    return open_with(uri_of(file), SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  if (mode == OpenMode::append) return open_with(uri_of(file), SQLITE_OPEN_READWRITE);

  ASSIGN_OR_RETURN(Database database, open_with(uri_of(file), SQLITE_OPEN_READONLY));
  // Opening is lazy: only a first read shows whether the shared-memory file could be made.
  const Result<std::int64_t> first = database.number("SELECT COUNT(*) FROM sqlite_schema");
  if (first.ok()) return database;
  if (is_sealed(file)) {
    ASSIGN_OR_RETURN(Database sealed,
                     open_with(uri_of(file) + "?immutable=1", SQLITE_OPEN_READONLY));
    if (sealed.number("SELECT COUNT(*) FROM sqlite_schema").ok()) return sealed;
  }
  Error error = first.error();
  error.attempted = what;
  return error;
}

Database::Database(Database&& other) noexcept
    : file_(std::move(other.file_)), handle_(std::exchange(other.handle_, nullptr)) {}

Database::~Database() {
  sqlite3_close_v2(handle_);
}

Result<Statement> Database::prepare(std::string_view sql) const {
  sqlite3_stmt* handle = nullptr;
  const int code =
      sqlite3_prepare_v2(handle_, sql.data(), static_cast<int>(sql.size()), &handle, nullptr);
  if (code != SQLITE_OK) return failure(code);
  return Statement(*this, handle);
}

Result<void> Database::execute(const std::string& script) {
  const int code = sqlite3_exec(handle_, script.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return failure(code);
  return {};
}

Result<std::int64_t> Database::number(std::string_view sql) const {
  ASSIGN_OR_RETURN(Statement statement, prepare(sql));
  ASSIGN_OR_RETURN(const bool row, statement.step());
  CHECK(row, "number() is asked with a query that gives one row");
  return statement.integer(0);
}

bool Database::in_transaction() const {
  return sqlite3_get_autocommit(handle_) == 0;
}

Error Database::failure(int sqlite_code) const {
  const std::string what = "use archive " + file_.string();
  const std::string said =
      handle_ != nullptr ? sqlite3_errmsg(handle_) : sqlite3_errstr(sqlite_code);
  const std::string folder = fs::absolute(file_).parent_path().string();
  switch (sqlite_code & 0xff) {
    case SQLITE_FULL:
      return {ErrorCode::io, what, "the disk is full (" + said + ")",
              "free space in " + folder + "; what was recorded before is whole"};
    case SQLITE_IOERR:
      return {ErrorCode::io, what, said,
              "check the disk, quota and file size limits of " + folder +
                  "; what was recorded before is whole"};
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_CANTOPEN:
      return {ErrorCode::io, what, said, "check that " + folder + " exists and can be written"};
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {ErrorCode::busy, what, "another process holds it locked (" + said + ")",
              "end that process, then try again; what was recorded before is whole"};
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return {ErrorCode::corrupt, what, "the file is damaged or no archive (" + said + ")",
              "restore it from a copy; `sqlite3 FILE .recover` saves what can be read"};
    case SQLITE_CONSTRAINT:
      return {ErrorCode::bad_input, what, said, "an id is recorded once; choose another"};
    default:
      return {ErrorCode::internal, what, said, "report this with the command that led to it"};
  }
}

Result<Transaction> Transaction::begin(Database& database) {
  RETURN_IF_ERROR(database.execute("BEGIN IMMEDIATE"));
  return Transaction(database);
}

Transaction::Transaction(Transaction&& other) noexcept
    : database_(std::exchange(other.database_, nullptr)) {}

// SQLite may have rolled back by itself after a full disk, so a failing ROLLBACK means nothing.
Transaction::~Transaction() {
  if (database_ == nullptr || !database_->in_transaction()) return;
  static_cast<void>(database_->execute("ROLLBACK"));
}

Result<void> Transaction::commit() {
  CHECK(database_ != nullptr, "a transaction is committed once");
  RETURN_IF_ERROR(database_->execute("COMMIT"));
  database_ = nullptr;
  return {};
}

}  // namespace kbeam
