"""Words before a parenthesis that do not call a stored or loadable function.

These are the functions that all servers from MySQL 5.7 and MariaDB 10.5 on have built in, none of
which changes a table, and keywords, which cannot be names of functions. A function that only some
servers have is left out: on the others a stored function may have its name.

Sources: MySQL manual, "Built-In Function and Operator Reference" and "Keywords and Reserved Words".
The tests call each of these functions on several servers.
"""

from __future__ import annotations

from typing import Final

_FUNCTIONS: Final = """
abs acos adddate addtime aes_decrypt aes_encrypt ascii asin atan atan2 avg benchmark bin bit_and
bit_count bit_length bit_or bit_xor cast ceil ceiling char_length character_length coercibility
compress concat concat_ws connection_id conv convert_tz cos cot count crc32 curdate curtime
date_add date_format date_sub datediff dayname dayofmonth dayofweek dayofyear degrees elt exp
export_set extract extractvalue field find_in_set floor format found_rows from_base64 from_days
from_unixtime get_lock greatest group_concat hex ifnull inet6_aton inet6_ntoa inet_aton
inet_ntoa instr is_free_lock is_used_lock isnull json_array json_contains json_contains_path
json_depth json_extract json_insert json_keys json_length json_merge json_merge_patch
json_merge_preserve json_object json_quote json_remove json_replace json_search json_set
json_type json_unquote json_valid last_day last_insert_id lcase least length ln load_file locate
log log10 log2 lower lpad ltrim make_set makedate maketime max mid min monthname name_const
now nullif oct octet_length ord period_add period_diff pi position pow power quote radians rand
release_lock repeat reverse round row_count rpad rtrim sec_to_time session_user sha2
sign sin sleep soundex space sqrt std stddev stddev_pop stddev_samp str_to_date strcmp subdate
substr substring substring_index subtime sum sysdate system_user tan time_format time_to_sec
timediff to_base64 to_days to_seconds trim ucase uncompress uncompressed_length unhex
unix_timestamp updatexml upper uuid uuid_short var_pop var_samp variance weekday weekofyear
yearweek
"""
_KEYWORD_TEXT: Final = """
ALL AND ANY AS ASCII BETWEEN BIGINT BINARY BIT BLOB BY CASE CHAR CHARACTER CHARSET COALESCE
COLLATION CONVERT CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER DATABASE DATE
DATETIME DAY DEC DECIMAL DEFAULT DISTINCT DIV DOUBLE ELSE ELSEIF ENUM EXISTS FLOAT FROM
HAVING HOUR IF IN INDEX INSERT INT INTEGER INTERVAL INTO IS JOIN KEY LEFT LIKE LIMIT LOCALTIME
LOCALTIMESTAMP MATCH MEDIUMINT MICROSECOND MINUTE MOD MONTH NCHAR NOT NUMERIC NVARCHAR ON OR
PARTITION QUARTER REAL REGEXP REPLACE RETURN RIGHT RLIKE ROW SCHEMA SECOND SELECT SET SMALLINT
SOME TEXT THEN TIME TIMESTAMP TIMESTAMPADD TIMESTAMPDIFF TINYINT TRUNCATE UNION USER USING
UTC_DATE UTC_TIME UTC_TIMESTAMP VALUE VALUES VARBINARY VARCHAR WEEK WHEN WHERE WHILE XOR YEAR
"""

BUILT_IN: Final = frozenset(_FUNCTIONS.split())
KEYWORDS: Final = frozenset(_KEYWORD_TEXT.split())
