"""Secrets: detected by known forms and removed before a memory is written.

Invariants: one pass of one expression, so the cost is linear in the length of the text. Redacted text is not matched again.
Prose, code, commit hashes and placeholders are left alone. A value after a word such as `password=` counts only if it looks
random or mixed, never because of the word alone. A secret in a form missing from the table is not found. Pure.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple


class RedactedText(NamedTuple):
    text: str
    kinds: tuple[str, ...]


# fmt: off
# A kind, and an expression that begins at the start of a word. A group `keep` stays in front of the removed part.
SECRET_FORMS: tuple[tuple[str, str], ...] = (
    ("private key", r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z0-9 ]{0,40}KEY(?: BLOCK)?-----|\Z)"),
    ("Anthropic key", r"sk-ant-[A-Za-z0-9_-]{16,}"),
    ("OpenRouter key", r"sk-or-v1-[0-9a-f]{32,}"),
    ("OpenAI key", r"sk-(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{20,}|sk-[A-Za-z0-9]{32,}"),
    ("AWS access key", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}(?![A-Za-z0-9])"),
    ("GitHub token", r"gh[opusr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{36,}"),
    ("GitLab token", r"gl(?:pat|dt|rt|rtr|ptt|ft|agent|oas|imt|cbt|soat|ffct)-[A-Za-z0-9_-]{20,}(?:\.[A-Za-z0-9_-]+)*|GR1348941[\w-]{20,}"),
    ("Slack token", r"xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-\d-[A-Za-z0-9-]{10,}"),
    ("Slack webhook", r"https://hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9+/]{20,}"),
    ("Discord webhook", r"https://(?:canary\.|ptb\.)?discord(?:app)?\.com/api/webhooks/\d{5,}/[\w-]{20,}"),
    ("Discord token", r"[MNO][A-Za-z\d_-]{23,27}\.[\w-]{6}\.[\w-]{27,}"),
    ("Stripe key", r"(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/=]{24,}"),
    ("Google API key", r"AIza[0-9A-Za-z_-]{35}"),
    ("Google token", r"ya29\.[0-9A-Za-z_-]{20,}|GOCSPX-[0-9A-Za-z_-]{20,}|1//0[0-9A-Za-z_-]{30,}"),
    ("Twilio key", r"SK[0-9a-f]{32}(?![A-Za-z0-9])"),
    ("SendGrid key", r"SG\.[\w-]{16,32}\.[\w-]{16,64}"),
    ("Mailgun key", r"key-[0-9a-f]{32}(?![A-Za-z0-9])"),
    ("Mailchimp key", r"[0-9a-f]{32}-us\d{1,2}(?![A-Za-z0-9])"),
    ("npm token", r"npm_[A-Za-z0-9]{36}"),
    ("PyPI token", r"pypi-[A-Za-z0-9_-]{50,}"),
    ("RubyGems key", r"rubygems_[0-9a-f]{48}"),
    ("Cargo token", r"cio[A-Za-z0-9]{32}(?![A-Za-z0-9])"),
    ("Docker token", r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}"),
    ("DigitalOcean token", r"do[opr]_v1_[0-9a-f]{64}"),
    ("Hugging Face token", r"hf_[A-Za-z0-9]{30,}|api_org_[A-Za-z0-9]{30,}"),
    ("Databricks token", r"dapi[0-9a-f]{32}(?:-\d)?(?![A-Za-z0-9])"),
    ("Shopify token", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    ("Square token", r"sq0(?:atp|csp|idp)-[\w-]{22,}|EAAA[\w-]{60}"),
    ("Telegram token", r"(?P<keep>(?:bot)?)\d{8,10}:[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
    ("Vault token", r"hv[sbr]\.[A-Za-z0-9_-]{24,}"),
    ("Terraform token", r"[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,}"),
    ("Linear key", r"lin_(?:api|oauth)_[A-Za-z0-9]{32,}"),
    ("Notion token", r"ntn_[A-Za-z0-9]{40,}|secret_[A-Za-z0-9]{43,}"),
    ("Figma token", r"figd_[A-Za-z0-9_-]{30,}"),
    ("New Relic key", r"NRAK-[A-Z0-9]{27}|NRII-[A-Za-z0-9_-]{32}"),
    ("Grafana token", r"glsa_[A-Za-z0-9]{32}_[0-9a-f]{8}|glc_[A-Za-z0-9+/]{32,}"),
    ("Sentry token", r"sntry[su]_[A-Za-z0-9+/=_-]{30,}"),
    ("Postman key", r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    ("age key", r"AGE-SECRET-KEY-(?:PQ-)?1[0-9A-Z]{40,}|age-secret-key-(?:pq-)?1[0-9a-z]{40,}"),
    ("Atlassian token", r"ATATT3[A-Za-z0-9_=-]{50,}|ATCTT3[A-Za-z0-9_=-]{50,}"),
    ("Airtable token", r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    ("Groq key", r"gsk_[A-Za-z0-9]{40,}"),
    ("Replicate token", r"r8_[A-Za-z0-9]{37}"),
    ("Perplexity key", r"pplx-[A-Za-z0-9]{40,}"),
    ("xAI key", r"xai-[A-Za-z0-9]{60,}"),
    ("Supabase key", r"sb(?:p|_secret)_[A-Za-z0-9_]{30,}"),
    ("PlanetScale token", r"pscale_(?:tkn|pw|oauth)_[\w.=-]{30,}"),
    ("Doppler token", r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9._-]{30,}"),
    ("Fly.io token", r"fo1_[\w-]{40,}|FlyV1 fm\d[A-Za-z0-9+/=,_-]{60,}"),
    ("Azure key", r"(?P<keep>(?:Account|SharedAccess)Key=)[A-Za-z0-9+/]{40,}={0,2}"),
    ("signed URL", r"(?P<keep>(?:sig|X-Amz-Signature|Signature)=)[A-Za-z0-9%+/_-]{40,}={0,2}"),
    ("npm credential", r"(?P<keep>_(?:authToken|auth|password)=)[\"']?(?![$<{\[])[A-Za-z0-9+/=_-]{10,}"),
    ("netrc password", r"(?P<keep>(?:machine[ \t]+\S{1,200}|default)(?:\s+(?:login|account)\s+\S{1,200}){0,2}\s+password\s+)"
     r"(?![$<{\[])(?=\S{0,200}[^A-Za-z\s])\S{4,}"),
    ("password of curl", r"(?P<keep>curl\b[^\n]{0,300}?[ \t](?:-u|--user)[ =]?[\"']?[^\s:\"'$]{1,100}:)"
     r"(?![$<{\[])[^\s\"']{6,}"),
    ("password of sshpass", r"(?P<keep>sshpass[ \t]+-p[ \t]*[\"']?)(?![$<{\[])[^\s\"']{4,}"),
    ("password of docker", r"(?P<keep>(?:docker|podman) login\b[^\n]{0,300}?[ \t](?:-p|--password)[ \t=][\"']?)"
     r"(?![$<{\[])[^\s\"']{6,}"),
    ("password of mysql", r"(?P<keep>mysql(?:dump|admin)?\b[^\n]{0,300}?[ \t](?:-p|--password=)[\"']?)"
     r"(?![$<{\[])(?=[^\s\"']{0,100}\d)[^\s\"']{6,}"),
    ("session cookie", r"(?P<keep>(?:JSESSIONID|PHPSESSID|ASP\.NET_SessionId|connect\.sid|sid|[a-z_-]{0,20}sess(?:ion)?(?:_?id)?)=)"
     r"(?![0-9a-f]{8}-[0-9a-f]{4}-|[$<{\[])(?=[A-Za-z._%+/-]{0,40}\d)[\w.%+/-]{16,}={0,2}"),
    ("Wi-Fi code", r"(?P<keep>WIFI:(?:[A-Z]:[^;\n]{0,100};){0,4}?P:)(?!\[)[^;\n]{4,100}(?=;)"
     r"|(?:(?:[Cc]lave|[Cc]ontraseña|[Cc]lé|[Cc]ode|[Mm]ot de passe) (?:del?|du) (?:la )?(?:Wi-?Fi|wi-?fi)"
     r"|(?:Wi-?Fi|wi-?fi|WLAN|WPA2?)[ -]?(?:(?:code|key|pin|PIN|[Pp]assword|[Pp]asswort|[Kk]ennwort|[Ss]chlüssel)\b"
     r"|密码|パスワード|비밀번호))"
     r"[^\n:=：]{0,40}?(?:\b(?:is|ist|es|est)\b|[:=：])[ \t]*"
     r"(?!\[)(?=\S{0,20}\d)\S{8,63}(?<![.,;!?])"),
    ("web token", r"eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}"),
    ("password in a URL", r"(?P<keep>[a-z][a-z0-9+.-]{1,20}://[^\s:/@\"'<>{}$]{0,64}:)"
     r"(?![\[{<$*]|\d{1,5}[/?#])[^\s\"'<>{}$]{3,128}(?=@[\w\[])"),
    ("authorization header", r"(?P<keep>(?:[Bb]earer|[Bb]asic)[ \t]+|[Aa]uthorization[\"']?[ \t]*[:=][ \t]*[\"']?[A-Za-z]{3,12}[ \t]+)"
     r"(?=[A-Za-z._~+/=-]{0,40}\d)[A-Za-z0-9._~+/-]{20,}={0,2}"),
)
# fmt: on

# The words for "password".
_PASSWORD_WORDS = (
    r"pass(?:word|wort|wd|phrase|code|ord)?|kennwort|pwd?|contrase[ñn]a|mot de passe|senha|wachtwoord|hasło|şifre|parola|l[öo]senord|heslo"
    r"|salasana|jelszó|adgangskode|kata sandi|mật khẩu|пароль|κωδικός|密码|密碼|口令|パスワード|暗証番号|비밀번호|암호"
    r"|पासवर्ड|รหัสผ่าน|كلمة المرور|סיסמה"
)
_WORDS = (
    rf"{_PASSWORD_WORDS}|secret|token(?!i[sz])|key-data|api[_ -]?key|access[_ -]?key|secret[_ -]?key|client[_ -]?secret"
    r"|private[_ -]?key|auth[_ -]?key|encryption[_ -]?key|signing[_ -]?key|credentials?|clave|密钥|令牌"
)
_IS = r"\b(?:is|ist|lautet|es|est|är|jest|er)\b|é|è|是|为|為|は|는|은"
# `DB_PASSWORD = "…"`, `api-key: …`, `"token": "…"`: the name, the assignment, the value up to a space, a quote or a bracket. The
# beginning of a long value tells whether it is a secret; all of it goes.
_VALUE = r"[^\s\"'`<>{}()\[\],;\u3000-\u9fff\uac00-\ud7af，；]"
_ASSIGNED = (
    rf"(?P<keep>(?:[A-Za-z][\w.-]{{0,40}}?[_.-]|[A-Za-z]{{1,20}}?(?=token|password|secret))?(?:{_WORDS})\w{{0,12}}[\"'`]?[ \t]{{0,4}}"
    rf"(?:=>|:=|=|:|：|{_IS})"
    rf"[ \t]{{0,4}}[\"'`]?)(?P<value>{_VALUE}{{6,200}}){_VALUE}*"
)
_ASSIGNMENT = "assigned secret"
# "the password tR4v3rs3", "the password for the staging admin is tR4v3rs3", "the secret key AbC…": without a sign between them, only a
# value that mixes letters, digits and marks is a password, and only a long one is a key.
_IN_PROSE = (
    rf"(?P<said>(?:(?:{_PASSWORD_WORDS})(?:(?:[ \t]{{1,4}}[^\s:=,;]{{1,20}}){{0,6}}?[ \t]{{0,4}}(?:{_IS}|:))?"
    r"|(?:secret|api|access)[ _-]?key)[ \t]{1,4}[\"'`]?)(?P<word>[^\s\"'`<>{}()\[\],;]{8,100})[^\s\"'`<>{}()\[\],;]*"
)
# A form may have a word glued to its front. Only forms with a beginning that no word has are looked for there.
_GLUED = (
    r"(?:sk-ant-[A-Za-z0-9_-]|sk-proj-[A-Za-z0-9_-]|gh[opusr]_[A-Za-z0-9]|github_pat_[A-Za-z0-9_]|glpat-[A-Za-z0-9_-]|npm_[A-Za-z0-9]"
    r"|hf_[A-Za-z0-9]|AIza[0-9A-Za-z_-]|dckr_pat_[A-Za-z0-9_-])(?=[A-Za-z_-]{0,30}\d)[A-Za-z0-9_-]{29,}|(?:AKIA|ASIA)[A-Z2-7]{16}(?![A-Za-z0-9])"
)
# Keys in vendors' manuals.
_FROM_A_MANUAL = re.compile(r"EXAMPLE(?:KEY)?$")
# What everybody writes for a database on their own machine.
_LOCAL = re.compile(r"@(?:localhost|127\.0\.0\.1|\[::1\])(?![\w.-])")
# A line end that may be inside a key: before it up to 200 characters of a key, after it at least eight more.
_KEY_CHARS = r"[A-Za-z0-9_+/=.-]"
_SPLIT = re.compile(
    rf"(?<![^\s\"'`=:(])(?P<head>{_KEY_CHARS}{{4,200}})(?P<between>\\?\r?\n[ \t]*)"
    rf"(?=(?P<tail>{_KEY_CHARS}{{8,200}})(?P<alone>[ \t]*(?:\r?\n|\Z))?)"
)
_UNSEEN = re.compile("[\u00ad\u200b-\u200f\u2060-\u2064\ufeff]")


@cache
def _known() -> re.Pattern[str]:
    """Return the pattern of all forms. A form is tried only at the start of a word, so most positions of a text cost one
    check. It is compiled at first use: compiling takes longer than opening a memory, and most sessions only read theirs."""
    # Group names must be unique in one expression, so `keep` gets the number of its form.
    forms = (f"(?P<k{number}>{form.replace('<keep>', f'<keep{number}>')})" for number, (_, form) in enumerate(SECRET_FORMS))
    return re.compile(rf"(?<![A-Za-z0-9_])(?:{'|'.join(forms)})|(?P<glued>{_GLUED})")


@cache
def _assign() -> re.Pattern[str]:
    return re.compile(rf"(?<![A-Za-z0-9_])(?:{_ASSIGNED}|{_IN_PROSE})", re.IGNORECASE)


# Names and paths in code, not values: settings.DB_PASSWORD, SECRET_KEY_V2, ./keys/id_1, $TOKEN2, %PWD%.
_REFERENCE = re.compile(
    r"[A-Za-z_]\w*(?:(?:\.|->|::)[A-Za-z_]\w*)+|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|\.{0,2}/\S*|[$%@~&*].*|https?:.*"
)
_PLACEHOLDER = re.compile(
    r"(?i)(?:x{3,}|\*{3,}|\.{3,}|0{4,}|your|my-|example|changeme|placeholder|dummy|redacted|todo|none|null)"
)
# English text has about 2.5 to 3 bits per letter at these lengths, random letters and digits more than 3.
_RANDOM_BITS = 3.0
_LONG_ENOUGH = 20


class _Secret(NamedTuple):
    """A secret in a text: the part in front that stays, the secret, its kind."""

    keep: str
    secret: str
    kind: str


def _known_secret(match: re.Match[str]) -> _Secret | None:
    group = match.lastgroup or ""
    if group == "glued":
        return None if _FROM_A_MANUAL.search(match[0]) else _Secret("", match[0], "key")
    number = int(group.removeprefix("keep").removeprefix("k"))
    keep = match.groupdict().get(f"keep{number}") or ""
    secret, kind = match[0][len(keep) :], SECRET_FORMS[number][0]
    if _FROM_A_MANUAL.search(secret):
        return None
    # "postgres:postgres@localhost" is in every manual; a password that looks like one is a secret there too.
    if kind == "password in a URL" and _LOCAL.match(match.string, match.end()) and not _looks_secret(secret):
        return None
    return _Secret(keep, secret, kind)


def _assigned_secret(match: re.Match[str]) -> _Secret | None:
    keep, value = match["keep"] or match["said"], match["value"] or match["word"]
    if _FROM_A_MANUAL.search(value.rstrip(".:!?…")):
        return None
    if match["said"] is not None:
        marked = any(not char.isalnum() for char in value) if "key" not in keep.lower() else len(value) >= _LONG_ENOUGH
        mixed = _looks_secret(value) and marked and any(map(str.isdigit, value))
        return _Secret(keep, value, _ASSIGNMENT) if mixed else None
    return _Secret(keep, value, _ASSIGNMENT) if _looks_secret(value) or _is_password(keep, value) else None


def redact(text: str, *, part_of: str | None = None) -> RedactedText:
    """Replace secrets by `[secret removed: KIND]`, in Chinese in a Chinese text, and return the text and the kinds found.

    A secret that is split by invisible characters is found too; the text is then returned without these. `part_of` is the text whose
    language counts, if this is a part of it."""
    whole = text if part_of is None else part_of
    once = _redact(_without_split_keys(text), whole)
    if not _UNSEEN.search(text):
        return once
    plain = _redact(_UNSEEN.sub("", text), whole)
    return once if _UNSEEN.sub("", once.text) == plain.text else plain


def _without_split_keys(text: str) -> str:
    """Return the text with each key in one piece that is split by a line end. A key that is whole already goes on
    only in a line of its own with a digit."""

    def joined(split: re.Match[str]) -> str:
        head = split["head"]
        whole = any(match.end() == len(head) for match in _known().finditer(head))
        spans = any(match.start() < len(head) < match.end() for match in _known().finditer(head + split["tail"]))
        more = split["alone"] is not None and any(map(str.isdigit, split["tail"]))
        return head if spans and (more or not whole) else split[0]

    return _SPLIT.sub(joined, text) if "\n" in text else text


def _redact(text: str, whole: str) -> RedactedText:
    kinds: list[str] = []

    @cache
    def language() -> str:  # detected once: that takes longer than finding a secret
        from ...language.detection import language_of

        return language_of(whole)

    def replaced(match: re.Match[str], secret: _Secret | None) -> str:
        if secret is None:
            return match[0]
        kinds.append(secret.kind)
        marker = f"[已去掉密钥（{chinese_kind(secret.kind)}）]" if language() == "zh" else f"[secret removed: {secret.kind}]"
        return secret.keep + marker

    cleaned = _known().sub(lambda match: replaced(match, _known_secret(match)), text)
    cleaned = _assign().sub(lambda match: replaced(match, _assigned_secret(match)), cleaned)
    return RedactedText(cleaned, tuple(dict.fromkeys(kinds)))


def extract_secrets(text: str) -> tuple[str, ...]:
    """Return the secrets themselves, to check whether they occur elsewhere too. They must never be shown or stored."""
    plain = _without_split_keys(_UNSEEN.sub("", text))
    secrets = [_known_secret(match) for match in _known().finditer(plain)]
    secrets += [_assigned_secret(match) for match in _assign().finditer(_known().sub(" ", plain))]
    return tuple(dict.fromkeys(secret.secret for secret in secrets if secret is not None))


# Kinds in a Chinese text. Most are named after a company, and their last word is translated.
_CHINESE_ENDS = {"key": "密钥", "token": "令牌", "webhook": "Webhook 地址"}
_CHINESE_KINDS = {
    "assigned secret": "赋值",
    "private key": "私钥",
    "password in a URL": "网址中的密码",
    "authorization header": "授权头",
}


def chinese_kind(kind: str) -> str:
    company, _, what = kind.rpartition(" ")
    return _CHINESE_KINDS.get(kind) or (f"{company} {_CHINESE_ENDS[what]}" if company and what in _CHINESE_ENDS else kind)


_REMOVED = re.compile(r"\[secret removed: [^\]\n]*\]|\[已去掉密钥（[^\]\n]*）\]")
# Words around a secret that carry no meaning, and the words for it.
_IN_PASSING = re.compile(
    rf"(?i){_WORDS}|\b(?:the|my|our|your|is|for|a|an|it|this|here|key|login|user|und|das|der|ist)\b|是|的|我们|は|です|の"
)


def says_nothing_else(text: str) -> bool:
    """Tell whether a text is nothing but a removed secret and the word for it."""
    words = _IN_PASSING.sub("", _REMOVED.sub("", text))
    return bool(_REMOVED.search(text)) and not any(map(str.isalnum, words))


# A shorter piece of a secret could be any word; a whole secret may be a little shorter.
_TELLING_CHARS = 8
_SHORTEST = 6
# Enough of a long secret to recognise it.
_LOOKED_AT = 400
_MARKS = re.compile(r"[^a-z0-9]+")


def repeats_secret(name: str, secrets: Sequence[str]) -> bool:
    """Tell whether a name contains one of these secrets or a telling piece of one, ignoring case and hyphens."""
    plain = _MARKS.sub("", name.lower())
    pieces = (piece for secret in secrets for piece in _pieces(_MARKS.sub("", secret[:_LOOKED_AT].lower())))
    return any(piece in plain for piece in pieces)


def _pieces(secret: str) -> list[str]:
    if len(secret) < _TELLING_CHARS:
        return [secret] if len(secret) >= _SHORTEST else []
    return [secret[start : start + _TELLING_CHARS] for start in range(len(secret) - _TELLING_CHARS + 1)]


def _looks_secret(value: str) -> bool:
    """Tell whether a value looks mixed like a password, or long and random. Names, paths, numbers, dates and placeholders
    don't."""
    core = value.rstrip(".:!?…")
    if len(core) < 6 or _REFERENCE.fullmatch(core) or _PLACEHOLDER.match(core) or not core.isascii():
        return False
    letters, digits = any(map(str.isalpha, core)), any(map(str.isdigit, core))
    marks = any(not char.isalnum() and char not in "-_./:" for char in core)
    if not letters or not (digits or marks) or _VERSION.fullmatch(core):
        return False
    # Shannon entropy per character, from the counts in this text.
    bits = -sum(count / len(core) * math.log2(count / len(core)) for count in Counter(core).values())
    return bits >= (_RANDOM_BITS if len(core) >= _LONG_ENOUGH else _MIXED_BITS)


# After the word "password", letters with a digit are a password, unless they name an algorithm.
_PASSWORD = re.compile(rf"(?i)(?:{_PASSWORD_WORDS})[\"'`]?[ \t]*(?:=>|:=|=|:|：|{_IS})[ \t]*[\"'`]?$")
_HOW_IT_IS_KEPT = re.compile(
    r"(?i)(?:sha|md|argon|bcrypt|scrypt|pbkdf|base|utf|aes|rsa?|hs|es|ps|v|ed|oauth|sha3|ntlmv?)-?\d[\w-]*|\d+-?[a-z]*"
)


def _is_password(before: str, value: str) -> bool:
    core = value.rstrip(".:!?…")
    if len(core) < 6 or not core.isascii() or not core.isalnum() or core.isalpha():
        return False
    return _PASSWORD.search(before) is not None and not _HOW_IT_IS_KEPT.fullmatch(core) and not _PLACEHOLDER.match(core)


# v1.2.3, 30s, 200k, 4096-bit, RS256, utf-8, sha256: short words with a number, never passwords.
_VERSION = re.compile(
    r"(?i)v?\d+(?:\.\d+)*[a-z%]{0,4}|\d+-[a-z]+|[a-z]{1,6}-?\d{1,4}|\d{4}-\d\d-\d\d\S*|[a-z]+(?:[-_./:][a-z]+)*[-_]?\d{0,2}"
)
# Six different characters.
_MIXED_BITS = 2.5
