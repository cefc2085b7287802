"""The redaction table: one row per shape of a leak, whole blocks before their parts."""

from __future__ import annotations

import re
from functools import cache

from amends.core.redaction.databases import BELOW, MESSAGES, MESSAGES_NEED, judge_select
from amends.core.redaction.hosts import (
    judge_connect,
    judge_dotted,
    judge_ipv4,
    judge_ipv6,
    judge_port,
    judge_url,
)
from amends.core.redaction.paths import CODE_SUFFIXES, ROOTS, judge_absolute, judge_relative, judge_root
from amends.core.redaction.rule import Judge, Rule
from amends.core.redaction.scanner import CANDIDATE, judge_token
from amends.core.redaction.tokens import (
    LANGUAGES_NEED,
    NAMES_OF_SECRETS,
    OTHER_LANGUAGES,
    WEAK_NAMES,
    judge_card,
    judge_long,
    judge_near,
    judge_option,
    judge_parameter,
    judge_quoted,
    judge_received,
    judge_scheme,
    judge_seed,
    judge_value,
    judge_weak,
)
from amends.core.redaction.traces import judge_class, judge_repr

__all__ = ["rules"]


@cache
def rules() -> tuple[Rule, ...]:
    """Return every row; built when a text first needs one."""

    def rule(kind: str, needs: str, source: str, judge: Judge | None = None, flags: int = 0) -> Rule:
        # File names may use any script; programs, protocols and keys use ASCII.
        return Rule(kind, tuple(needs.split("|")), source, flags | (0 if kind == "path" else re.ASCII), judge)

    fold, lines = re.IGNORECASE, re.MULTILINE
    database = "|".join(MESSAGES).replace("~", r"[^\n]{1,120}?")
    return (
        # --- whole blocks first
        rule("trace", "traceback (most", r"\b(?:Exception Group )?Traceback \(most recent call last\)[\s\S]*+"),
        rule("trace", "goroutine ", r"\bgoroutine \d+ \[[\s\S]*+"),
        rule("trace", "stack trace|stacktrace", r"\b(?:stack ?trace|server stack trace):?[ \t]*\n[\s\S]*+", flags=fold),
        # The name, then a few signs of any syntax, then a value that looks generated.
        rule(
            "token", "passw|passphrase|pwd",
            r"\b(?:\w{1,30}_)?(?:passw(?:or)?ds?|passphrase|pwd)(?:_[A-Z_]{1,20})?[^\w\n]{1,12}(?:\n\s{0,8})?(?:(?:is|was|to|now|set|from|changed|some|string|cdata|value|key|got|tried|used|invalid|wrong|sent|\d{1,3})[^\w\n]{1,8}){0,4}(?P<name>)(?P<value>(?=[^\s\"'`<>|,;()\]\[}]*\d)[^\s\"'`<>|,;()\]\[}]{6,80}+)",
            judge_near, fold,
        ),
        rule("token", "passw|passphrase|pwd", r"passw(?:or)?d[^\n]{0,80}(?:\n[^\n]{0,120}?)?\b(?:got|input_value=|received|value)[:\s]{0,2}(?P<leak>'[^'\n]{3,80}'|\"[^\"\n]{3,80}\")", judge_received, fold),
        rule("token", "passw|passphrase|pwd", r"(?P<leak>'[^'\n]{3,80}'|\"[^\"\n]{3,80}\") (?:for|is|does|was|in|at|of)\b[^\n]{0,60}?(?:\b(?:field|property|parameter|member|argument|key)[\s:]{1,2}[\"'`]?|\binstance\.)\w{0,20}passw", judge_received, fold),
        rule("token", "pass |auth |login ", r"(?<![^\s:>])(?:PASS|AUTH|(?<=\d )LOGIN \S{1,60}) (?P<leak>[^\s\"'\[]{6,80}+)", judge_scheme),
        rule("token", "wpa_passphrase|ipmitool|snmp|keytool|winrs|net use|sudo|cryptsetup|poetry|mc alias", r"\b(?:wpa_passphrase\s{1,3}\S{1,60}\s{1,3}|ipmitool\b[^\n]{0,100}?\s-P\s{1,3}|snmp(?:walk|get|set)\b[^\n]{0,100}?\s-[cAX]\s{1,3}|keytool\b[^\n]{0,100}?\s-(?:store|key)pass\s{1,3}|winrs\b[^\n]{0,100}?\s-p:|net use\b[^\n]{0,100}?/user:\S{1,60}\s{1,3}|echo\s{1,3}(?:-n\s{1,3})?(?=[^\s|]{1,80}\s{0,3}\|\s{0,3}(?:sudo -S|cryptsetup))|poetry config http-basic\.\S{1,60}\s\S{1,60}\s{1,3}|mc alias set\s\S{1,60}\s\S{1,100}\s\S{1,60}\s{1,3})[\"']?(?P<leak>[^\s\"'\[]{3,80}+)"),
        rule("token", "response=", r"\bresponse=\"(?P<leak>[a-f0-9]{32,128})\""),
        rule("token", "phrase|mnemonic", r"\b(?:(?:seed|recovery|backup) phrase|mnemonic)\b[^\w\n]{1,4}(?:is\s)?(?P<leak>(?:[a-z]{3,8}\s){11,23}[a-z]{3,8})", flags=fold),
        rule("token", " code", r"\b(?:recovery|backup|rescue) code[:\s]{1,2}(?P<leak>[a-z0-9]{4,12}(?:-[a-z0-9]{3,12}){0,7})(?!\w)", judge_seed, fold),
        rule("token", "private key", r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----(?:(?!-----END)[\s\S])*+(?:-----END [A-Z ]{0,40}-{0,5})?"),
        # --- trace lines
        rule("trace", 'file "', r'File "[^"\n]{1,500}", line \d+(?:, in [^\n]*+)?(?:\n[ \t]++[^\n]*+)*+'),
        rule("trace", "at ", r"(?:(?<=\n)[ \t]+at |^[ \t]+at (?=[^\n]*[/\\<]))(?:async |new )?[\w.$<>/@#\[\]~:\\-]++(?: \[as [^\]\n]{1,80}\])?(?: ?\([^\n]*+)?$", flags=lines),
        rule("trace", "^", r"^[^\n]*+\n[ \t~]*+\^[\^~ \t]*+$", flags=lines),
        rule("trace", "caused by|exception in thread", r"(?:\bCaused by: (?=[\w$]+(?:\.|:|Error|Exception))|\bException in thread \")[^\n]*+"),
        rule("trace", "exception|error|failure|throwable|fault|violation|errors|exc.|err.", r"(?<![\w.$/@])[A-Za-z_][\w$]*+(?:\.[A-Za-z_][\w$]*+)++", judge_class),
        rule(
            "trace", ".",
            rf"(?<![\w.$@-])[\w$@-][\w.$@-]*?\.(?:{CODE_SUFFIXES})(?::\d+(?::\d+)?|\(\d+(?:,\d+)?\)|\"?,? (?:on )?line:? \d+|:line \d+)(?::in [^\n]*+)?",
            flags=fold,
        ),
        rule("trace", "<", r"<[A-Za-z][^<>\n]{1,200}(?:>|(?=<))", judge_repr),
        rule("trace", "0x", r"\b0x(?=[a-fA-F]*\d)[0-9a-fA-F]{8,16}\b"),
        rule("trace", "node:internal", r"\bnode:internal/[\w/.-]*+(?::\d+)*+"),
        rule("trace", "panicked at", r"thread '[^'\n]{0,80}' (?:\(\d+\) )?panicked at [^\n]*+"),
        rule("trace", "panic: ", r"\bpanic: [^\n]*+"),
        rule("trace", "#", r"(?<=\n)#\d+ (?:/|\{main\}|[A-Za-z]:\\|\[internal)[^\n]*+"),
        # --- SQL and database messages
        rule("sql", "select", r"\bSELECT\b" + BELOW, judge_select),
        rule(
            "sql", "insert|update|delete|create|drop|alter|truncate|merge|explain",
            r"\b(?:INSERT INTO|UPDATE \S{1,80} SET|DELETE FROM|(?:CREATE|DROP|ALTER|TRUNCATE)(?: UNIQUE| TEMP| TEMPORARY)? (?:TABLE|INDEX|VIEW|SCHEMA|DATABASE|ROLE|USER)|MERGE INTO|EXPLAIN (?:ANALYZE|SELECT))\b" + BELOW,
        ),
        rule(
            "sql", "select",
            r"\bselect\s{1,9}(?:\*|count\(|distinct\s|(?:[\w.\"]{1,60}\s{0,9},\s{0,9}){0,20}[\w.\"]{1,60}\s{1,9}from\s{1,9}(?!(?:the|a|an|your|our|this|that|these|those|one|any|among|it|its|at|all)\b)[\w.\"]{1,60}\s{1,9}(?:where|join|order by|group by|limit|left|inner)\b)" + BELOW,
            flags=fold,
        ),
        rule("sql", "insert|update|delete|drop|create|alter|truncate", r"\b(?:insert\s{1,9}into\s{1,9}[\w.\"]{1,80}\s{0,9}(?:\(|values\b|select\b)|update\s{1,9}[\w.\"]{1,80}\s{1,9}set\s{1,9}[\w.\"]{1,80}\s{0,9}=|delete\s{1,9}from\s{1,9}[\w.\"]{1,80}\s{1,9}where\b|(?:drop|alter|create|truncate)\s{1,9}table\s{1,9}\w)" + BELOW, flags=fold),
        rule("sql", MESSAGES_NEED, rf"(?<!\w)(?:{database})(?:(?<![A-Za-z])|\b)" + BELOW, flags=fold),
        rule("sql", "background on", r"\(Background on this error at:[^\n]*+", flags=fold),
        rule("sql", "[parameters:|line ", r"\[parameters: [^\n]*+|^LINE \d+: [^\n]*+(?:\n[ \t]*+\^)?", flags=lines),
        # --- secrets
        rule("token", "eyj", r"(?<![A-Za-z0-9])eyJ[A-Za-z0-9]{13}[\w-]*+(?:\.[\w-]*+){1,4}"),
        rule("token", "", CANDIDATE, judge_token),
        rule("token", "/", r"/(?<=\d/)\d{15,20}(?:/\d{15,20})?:[a-f0-9]{32}"),
        rule("token", ":aa", r"(?<!\d)\d{8,10}:AA[\w-]{30,36}(?![\w-])"),
        rule("token", "bearer|basic|digest|negotiate|apikey|token", r"\b(?:Bearer|Basic|Negotiate|ApiKey|Token)[ \t]{1,4}[\"']?(?P<leak>[A-Za-z0-9._~+/=-]{6,}+)", judge_scheme, fold),
        rule("token", "cookie", r"\b(?:set-)?cookie[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?P<leak>[\w.-]{1,80}=[^\s\"',\[][^\n\"']*+)", flags=fold),
        rule(
            "token", "passw|secret|token|pwd|passphrase|key|credential|onnection|sess|sid|signature|authorization|x-amz",
            rf"{NAMES_OF_SECRETS}(?P<quote>\\{{0,4}}[\"']?)(?P<sign>\s{{0,3}}(?:=>?|:)\s{{0,3}}(?:[>|][+-]?[ \t]{{0,3}}\n\s{{0,8}}|\[\s{{0,3}})?|\s(?:is|was)\s)(?P<value>\\{{1,4}}[\"'][^\"'\\\n]++|\"[^\"\n]++\"|'[^'\n]++'|[^\s\"',;&)\]}}>]++)",
            judge_value, fold,
        ),
        rule("token", "passw|passphrase", r"\b(?:password|passwd|passphrase)\s{1,3}(?P<value>'[^'\n]{3,80}'|\"[^\"\n]{3,80}\"|[^\s\"',;=:]{6,}+)", judge_quoted, fold),
        rule("token", "<|&lt;", rf"(?:<|&lt;)[\w:.-]{{0,40}}?{NAMES_OF_SECRETS}[\w:.-]{{0,20}}(?:\s[^<>\n]{{0,200}})?(?:>|&gt;)(?P<value>[^<>&\n]{{3,200}})(?=<|&lt;)", judge_quoted, fold),
        rule("token", "value", r"\b(?:key|name)\s?=\s?[\"'][\w.-]{0,40}(?:passw|secret|token|api_?key)[\w.-]{0,20}[\"']\s{1,4}value\s?=\s?[\"'](?P<leak>[^\"'\n]{3,200})", flags=fold),
        rule("token", "curl", r"\bcurl\b[^\n]{0,200}?\s(?:-u|--user|--proxy-user)[=\s]?\s{0,3}[\"']?(?P<leak>[^\s\"':\[]{1,80}:[^\s\"']++)"),
        rule("token", "mysql|mariadb", r"\b(?:mysql(?:dump|admin|import)?|mariadb(?:-dump|-admin)?)\b[^\n]{0,200}?\s-p(?P<leak>[^\s\"'\[-][^\s\"']{2,}+)"),
        rule("token", "sshpass|redis-cli|docker login|ldap", r"\b(?:sshpass|redis-cli|docker login|ldap(?:search|modify|add|delete))\b[^\n]{0,200}?\s-[paw]\s{1,3}[\"']?(?P<leak>[^\s\"'\[-][^\s\"']{2,}+)"),
        rule("token", "smbclient", r"\bsmbclient\b[^\n]{0,200}?\s-U\s{0,3}[\"']?[^\s%\"']{1,60}%(?P<leak>[^\s\"'\[]{3,}+)"),
        rule("token", "?|&", r"[?&](?:key|sig|code|auth|k|t|pw|jwt|hmac|magic|ticket|invite|api_?key|access_token|client_secret)=(?P<leak>[^\s&#\"'<>;\[]{8,}+)", judge_parameter, fold),
        rule("token", "auth", r"(?:[\"']auth[\"']\s{0,3}:\s{0,3}[\"']|\b_auth\s?=\s?[\"']?)(?P<leak>[A-Za-z0-9+/=]{8,}+)"),
        rule("token", "/webhook|/services/|/hooks/|/triggers/|/reset/|/magic/|/invite/|discord.gg/", r"/(?:(?:webhooks?|webhookb2|hooks|services|triggers|reset|magic|invite)/(?:[\w@%.-]{1,80}/){0,6}?|/discord\.gg/)(?P<leak>[\w-]{20,}+)"),
        rule("token", "/hooks/catch/", r"/hooks/catch/\d{1,20}/(?P<leak>\w{6,})"),
        rule("token", "@", r"://(?P<leak>[A-Za-z0-9_-]{16,200})(?::[\w-]{0,40})?@"),
        rule("token", "identified", r"\bidentified (?:by|with \w{1,40} by)\s{1,3}(?P<leak>'[^'\n]{1,80}'|\"[^\"\n]{1,80}\"|[^\s\"';]{3,80})", flags=fold),
        rule("token", "-", r"(?<!\S)--?(?:\w{1,30}-){0,4}(?P<name>password|passwd|passphrase|pass|pw|token|secret|secret-key|api-?key|access-key|private-key|auth)(?:[ \t]{1,4}|=)(?P<leak>\"[^\"\n]{1,80}\"|'[^'\n]{1,80}'|[^\s\"',;\[-][^\s\"',;]*+)", judge_option, fold),
        rule("token", "pass|pw|psk|pat|key", rf"(?<![A-Za-z])(?P<name>{WEAK_NAMES})(?P<quote>\\{{0,4}}[\"']?)(?:\s{{0,3}}(?:=>?|:)\s{{0,3}}|\s(?:is|was)\s)(?P<value>\\{{1,4}}[\"'][^\"'\\\n]++|\"[^\"\n]++\"|'[^'\n]++'|[^\s\"',;&)\]}}>]++)", judge_weak, fold),
        rule("token", "_pass|_pwd|_pw|_secret|_token|_key|_pat", r"\b[A-Z][A-Z0-9_]{0,40}_(?P<name>PASS|PASSWORD|PWD|PW|SECRET|TOKEN|KEY|PAT)[ \t]{1,4}(?P<value>[^\s\"',;]{6,}+)", judge_weak),
        rule("token", LANGUAGES_NEED, rf"(?:{OTHER_LANGUAGES})\w{{0,3}}(?P<name>)(?:[^\w\n]{{1,6}}|\s(?:est|ist|es|er|är|on|et|incorr\w{{1,4}}|inv[aá]\w{{2,6}})[^\w\n]{{1,4}})(?P<value>[^\s\"',;]*\d[^\s\"',;]*+)", judge_near, fold),
        rule("token", "passw|secret|token|key", r"name=\"[\w.-]{0,40}(?:passw|secret|token|api_?key)[\w.-]{0,20}\"\s*?\r?\n(?:[\w-]{1,40}:[^\n]{0,100}\n){0,3}\r?\n(?P<leak>[^\r\n\[][^\r\n]{2,200})", flags=fold),
        rule("token", "az|sqlcmd|bcp|cqlsh|zip|7z|mongo|isql|tsql|impdp|clickhouse", r"\b(?:az login|sqlcmd|bcp|cqlsh|unzip|zip|7z|mongo(?:sh|dump|restore)?|isql|tsql|impdp|clickhouse-client)\b[^\n]{0,200}?\s-[pP]\s{0,3}[\"']?(?P<leak>[^\s\"'\[-][^\s\"']{2,}+)"),
        rule("token", "htpasswd|sqlplus|ssh-keygen|vault login|securestring|pass:|auth ", r"\b(?:htpasswd\s{1,3}-\w*b\w*\s{1,3}\S{1,80}\s{1,3}\S{1,80}\s{1,3}|sqlplus\s{1,3}(?:-\w{1,5}\s{1,3}){0,3}[^\s/@]{1,60}/|ssh-keygen\b[^\n]{0,100}?\s-[NP]\s{1,3}|vault login\s{1,3}|ConvertTo-SecureString\s{1,3}(?:-String\s{1,3})?|-pass(?:in|out)?\s{1,3}pass:|AUTH (?:PLAIN|LOGIN)\s{1,3})[\"']?(?P<leak>[^\s\"'@\[-][^\s\"'@]{5,}+)"),
        rule("token", "log|cred", r"\b(?:login|logon|credentials?|creds|logged in as)[:=]?\s{1,2}(?:for\s)?[\"']?[\w.@+-]{1,60}[:/](?P<leak>[^\s\"',;:/)\]]{6,80}+)", judge_scheme, fold),
        rule("token", ":", r":(?:\d{2,5}|\*):[\w*-]{1,63}:[\w*-]{1,63}:(?P<leak>[^\s:\"'\[]{6,100}+)(?!:)", judge_scheme),
        rule("token", "otp|2fa|mfa|authenticator", r"(?i:otp|2fa|mfa|authenticator)\b[^\n]{0,40}?\b(?P<leak>[A-Z2-7]{16,64}+)(?!\w)", judge_seed),
        rule("token", "code|pin|otp", r"\b(?:(?:verification|one[- ]time|security|login|sign-?in|auth(?:entication)?|2fa|mfa)[ -]?(?:pass)?(?:code|pin)|otp(?: code)?|pin(?: code)?)(?:\s(?:is|was)|:)\s{1,3}(?P<leak>\d{4,8})(?![\w.]\w|\w)", flags=fold),
        rule("token", "card", r"\bcard\b[^\n]{0,40}?(?<!\d)(?P<leak>\d(?:[ -]?\d){12,18})(?!\d)", judge_card, fold),
        rule("token", "secret|key", r"\b(?:\w{1,40}_)?(?:secret|(?:hmac|signing|master|encryption|private) key)[ \t]{1,3}[\"'(]?(?P<leak>[A-Za-z0-9_+=-]{16,}+)(?!/)", judge_scheme, fold),
        rule("token", "session|api key|access key|token", r"\b(?:session|api key|access key|token)(?: id)?(?: provided)?[:=#]?\s{1,3}[\"'(]?(?P<leak>[A-Za-z0-9_+/=-]{16,}+)", judge_scheme, fold),
        rule("token", "", r"(?<![\w+/.-])[A-Za-z0-9+/_-]{36,}+={0,2}", judge_long),
        rule("token", "://", r"://[^\s/@:\"'<>]{0,100}:(?!\[redacted\]@)(?P<leak>[^\s/@\"'<>]{1,200})@"),
        # --- URLs, hosts, addresses
        rule("host", "://", r"://[^\s\"'<>`]*+", judge_url),
        rule("host", "arn:aws", r"\barn:aws[\w-]*+:[^\s\"',;)]*+"),
        rule("host", ".", r"(?<![\w.$-])(?P<name>[A-Za-z0-9-]++(?:\.[A-Za-z0-9-]++)++)(?P<port>:\d{1,5})?(?![\w\[(])", judge_dotted),
        rule("host", ":", r"(?<![\w.:@$-])(?P<name>[A-Za-z][A-Za-z0-9-]*+):(?P<port>\d{1,5})(?!\w|\.\d|:\d)", judge_port),
        rule(
            "host", "host|server|resolv|lookup|connect|enotfound|eai_again|broker|upstream",
            r"\b(?:host(?: ?name)?|server(?: at)?|broker|upstream|resolv(?:e|ing)|lookup|connect(?:ing|ed)? to|connection to(?: server at)?)[\"']?\s{0,3}[:=]?\s{0,3}[\"'`](?P<leak>[\w.:-]{2,}+)[\"'`]",
            flags=fold,
        ),
        rule("host", "enotfound|eai_again|resolve host|connecting to|lookup", r"(?:\bENOTFOUND|\bEAI_AGAIN|could not resolve host(?:name)?:?|error -?\d+ connecting to|dial \w{2,4}:? lookup)\s{1,3}(?P<leak>\w[\w.:-]*+)", flags=fold),
        rule("host", "connect|reach|resolv", r"\b(?:connect(?:ing|ed|ion)? (?:to|with)|reach(?:ing)?|resolv(?:e|ing)|connection refused(?: by)?:?)\s(?P<leak>[A-Za-z0-9][\w.-]*+)", judge_connect, fold),
        rule("host", "=", r"(?<![\w.])(?:host|hostaddr|hostname|server|data source|addr|endpoint|accountname|endpointsuffix|dbname|initial catalog|user id)\s?=\s?[\"']?(?P<leak>[^\s\"';,)&\[]++)", flags=fold),
        rule("address", ".", r"(?<![\w.])(?P<address>\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})(?P<port>:\d{1,5}|/\d{1,2})?(?!\w|\.\d)", judge_ipv4),
        rule("address", "ip-", r"\bip(?:-\d{1,3}){4}\b"),
        rule("host", "@", r"\bgit@[\w.-]++:[\w./~-]++"),
        rule("address", ":", r"(?<![\w:.])(?P<open>\[?)(?P<run>(?=[^:\s]{0,4}:)[0-9A-Fa-f:.]{2,}+)(?:%\w++)?(?P<port>\](?::\d{1,5})?)?(?!\w)", judge_ipv6),
        # --- paths
        rule("path", "[errno|[winerror", r"\[(?:Errno|WinError) -?\d+\] [^:'\"\n]{1,100}: (?P<leak>(?P<q>[\"'])(?:(?!(?P=q))[^\n])++(?P=q)(?: -> (?P<r>[\"'])(?:(?!(?P=r))[^\n])++(?P=r))?)"),
        rule("path", "with url:", r"\bwith url: (?P<leak>[^\s\[]\S*+)"),
        rule("path", "'", r"\b(?:ENOENT|EACCES|EISDIR|ENOTDIR|EEXIST|EPERM|EXDEV|EROFS|EMFILE|ENOTEMPTY|EBUSY|ELOOP|ENOSPC): [a-z ,-]{1,60}(?P<leak>'[^'\n]++'(?: -> '[^'\n]++')?)"),
        rule("path", "/", rf"(?<![\w/.~%-])/(?:{ROOTS})(?![\w-])(?:/[^\s\"'`<>|,;()\[\]{{}}]*+)?", judge_root),
        rule("path", "/", r"(?<![\w/.~%}-])(?:/[\w.@+~=-]++)++:?", judge_absolute),
        rule("path", "/", r"(?<![\w./-])(?:~\w*|\.{1,2}|\$\w+|\$\{\w+\}|%\w+%)/[\w.-][^\s\"'`<>|,;()\[\]]*+"),
        rule("path", "/", r"(?<![\w/.~@%$+-])\.?[\w@+-][\w.@+-]*+(?:/[\w.@+~=-]++)++", judge_relative),
        rule("path", ":\\|:/", r"(?<![A-Za-z0-9])[A-Za-z]:(?:\\(?:[^\\/:*?\"'<>|\r\n]{0,200}\\)*+[^\s\\/:*?\"'<>|]*+|/(?!/)[^\s\"'<>|]++)"),
        rule("path", "\\\\", r"(?<!\\)\\{2,4}[A-Za-z0-9][\w.-]++\\{1,2}[^\s\"']++"),
    )  # fmt: skip
