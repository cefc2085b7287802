"""SQL, and the messages of databases."""

from __future__ import annotations

import re

__all__ = ["BELOW", "MESSAGES", "MESSAGES_NEED", "judge_select"]

# Lines that a driver adds below the first one, and continuation lines of a statement.
BELOW = (
    r"[^\n]*+(?:\n[ \t]*+(?:FROM|WHERE|AND|OR|ON|SET|VALUES|JOIN|LEFT|RIGHT|INNER|OUTER|CROSS|ORDER|GROUP|HAVING|LIMIT"
    r"|OFFSET|UNION|RETURNING|INTO|LINE\ \d+:|DETAIL:|HINT:|CONTEXT:|QUERY:|STATEMENT:|WHERE:|\^|\[SQL|\[parameters"
    r"|\(Background|->|Filter:|Index\ Cond:|Recheck|Hash|Sort|Planning|Execution|Candidate|Did\ you|Possible|Key\ \("
    r"|Failing\ row|Process\ \d)[^\n]*+)*+"
)

# Messages of databases exactly as their drivers write them; `~` matches a short span without line breaks.
MESSAGES = (
    r"syntax error at (?:or near|end of input)",
    r"syntax error in (?:SQL|query)",
    r"you have an error in your SQL syntax",
    r'near "~": syntax error',
    r"incomplete input\b",
    r"unterminated quoted (?:string|identifier)",
    r"unrecognized token:",
    (
        # A server writes them in lower case at the start of a clause; "the role 'editor' does not exist" is a producer's.
        r"(?-i:relation|(?<![a-z] )(?:column|table|schema|function|role|database|type|index|sequence|view|constraint|cursor"
        r"|collation|prepared statement|extension|tablespace|trigger)) (?:\"[^\n\"]{1,120}\"|[\w.]{1,80}\([^)\n]{0,120}\))"
        r"(?: of relation \"~\")? (?:does not exist|already exists|is ambiguous)"
    ),
    r"column \"?[\w.\"]+ (?:must appear in the GROUP BY|is of type|cannot be cast)",
    r"column reference \"~\" is ambiguous",
    r"ambiguous column name:",
    r"operator does not exist:",
    r"no such (?:table|column|index|function|view|collation|savepoint|trigger|module)s?:",
    # Without quotes only where the sentence ends: "column nme does not exist", not "a table reservation already exists".
    r"(?<![a-z] )(?:column|table|index) [\w.]{1,80} (?:does not exist|already exists)",
    r"table \"?[\w.]{1,80}\"? has \d+ columns? but",
    r"(?:UNIQUE|NOT NULL|CHECK|FOREIGN KEY|PRIMARY KEY) constraint failed",
    r"null value in column",
    r"duplicate key (?:value )?violates",
    r"(?:insert or update|update or delete) on table",
    r"new row for relation",
    r"violates (?:foreign key|unique|check|not-null|exclusion|row-level)",
    r"Key \([^)\n]*+\)=\(",
    r"Failing row contains",
    r"value too long for type",
    r"invalid input (?:syntax for type|value for enum)",
    r"(?:smallint|integer|bigint|numeric|double precision) out of range",
    r"value \"~\" is out of range for type",
    r"permission denied for (?:table|relation|schema|sequence|database|function|view|column)",
    r"must be owner of",
    r"current transaction is aborted",
    r"canceling statement due to",
    r"could not (?:serialize access|obtain lock on)",
    r"deadlock (?:detected|found when)",
    r"waits for \w+Lock on",
    r"password authentication failed for",
    r"no pg_hba\.conf entry",
    r"(?:remaining connection slots|too many clients already|too many connections for)",
    r"terminating connection due to",
    r"more than one row returned by a subquery",
    r"aggregate functions? (?:calls )?(?:are|cannot)",
    r"multiple assignments to same column",
    r"subquery (?:in FROM )?must",
    r"unable to open database file",
    r"(?:database|table)(?: table)? is locked",
    r"database disk image is malformed",
    r"incorrect number of bindings",
    r"table '[\w.$-]+' doesn't exist",
    r"unknown (?:column|table|database) '",
    r"duplicate (?:entry '|column name|key value|key error|key \")",
    r"data too long for column",
    r"cannot add or update a (?:child|parent) row",
    r"cannot delete or update a parent row",
    r"access denied for user '",
    r"lock wait timeout exceeded",
    r"column '[\w.]+' (?:cannot be null|in \w+ clause is ambiguous)",
    r"(?:unconfigured|undefined) table\b",
    r"table: \S{1,120} not found",
    r"SQL compilation error",
    r"table with name \w+ does not exist",
    r"(?:Catalog|Binder|Parser|Constraint|Conversion) Error:",
    r"referenced column \"~\" not found",
    r"could not convert string '~' to",
    r"(?:ORA|PLS|DPY|DPI)-\d{4,5}\b",
    r"invalid (?:object|column) name '",
    r"violation of (?:PRIMARY KEY|UNIQUE KEY|FOREIGN KEY) constraint",
    r"cannot insert (?:duplicate key|the value NULL)",
    r"the \w+ statement conflicted with",
    r"E11000 duplicate key",
    r"not authorized on \w+ to execute",
    r"DB::Exception",
    r"SQLSTATE\b",
    r"\[SQL: ",
    r"\((?:sqlite3|psycopg2?|pymysql|MySQLdb|asyncpg|oracledb|cx_Oracle|pyodbc)\.[A-Za-z][\w.]*\)",
    r"QUERY PLAN\b",
    r"(?:Seq|Index(?: Only)?|Bitmap (?:Heap|Index)|Parallel Seq|Tid) Scan (?:on|using)",
    r"(?:Nested Loop|Hash Join|Merge Join|HashAggregate|Sort|Limit|Gather)  \(cost=",
    r"\(cost=[\d.]+",
    r"(?:SCAN|SEARCH) \w+ USING (?:INDEX|INTEGER|COVERING|AUTOMATIC)",
)

# Each of the messages above contains one of these; they are long because this pattern is the most expensive one.
MESSAGES_NEED = (
    "syntax error|your sql syntax|incomplete input|unterminated quoted|unrecognized token|not exist|already exists|ambiguous"
    "|column|no such |constraint failed|duplicate |on table|for relation|violates |key (|failing row"
    "|for type|for enum| out of range|permission denied for|be owner|is aborted|canceling statement|serialize access|obtain lock"
    "|deadlock |lock on|password authentication|pg_hba|connection slots|clients already|connections for|terminating connection"
    "|by a subquery|subquery |aggregate |same column|database file|is locked|disk image|of bindings|doesn't exist|unknown table"
    "|unknown database|child row|parent row|denied for user|lock wait|catalog error|binder error|parser error|constraint error"
    "|conversion error|convert string|ora-|pls-|dpy-|dpi-|object name|violation of|cannot insert|conflicted with|to execute"
    "|db::|sqlstate|[sql: |sqlite3.|psycopg|pymysql.|mysqldb.|asyncpg.|oracledb.|oracle.|pyodbc.|query plan|scan |scan on"
    "|(cost=| using | table|table: |sql compilation|does not|is of type"
)


def judge_select(match: re.Match[str]) -> tuple[int, int] | None:
    """Return the span of a statement; a sentence about selecting has no FROM."""
    return match.span() if match.string.rfind("FROM") > match.start() else None
